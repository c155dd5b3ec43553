"""Make the files that come with bnnviz from the published ones: ``python -m tests.data.embedding``.

Small tables are whole, byte for byte, and compressed. Of images a part is kept: the rows that `ImageSet.chosen` chooses
with seed 0, each class with an equal share, and their numbers in the published set. Made again, each file has the same
bytes, whose checksum the data set's entry knows; `bnnviz/data/embedded/README.md` says where they are from.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bnnviz.data.files import EMBEDDED, DataFile, fetch
from bnnviz.data.formats.idx import read_idx
from bnnviz.data.images import balanced_rows
from bnnviz.data.sets import images_28, uci, uci_pmcnet

_WHOLE = ["boston", "yacht", "concrete", "energy", "ionosphere", "glass", "wine", "pmcnet_ionosphere", "pmcnet_glass"]
_DIGITS = 1500, 500  # training and test rows
_LETTERS = 500


def tables() -> list[DataFile]:
    """Return the files of tables that are kept whole, and of the weights that are published for them."""
    entries = [entry for entry in (*uci.SETS, *uci_pmcnet.SETS) if entry.name in _WHOLE]
    weights = [file for entry in entries if entry.weights for pair in entry.weights.files for file in pair]
    return [*(file for entry in entries for file in entry.sources()), *weights]


def digits() -> dict[str, np.ndarray]:
    """Return the part of MNIST that is kept."""
    x_train, y_train, x_test, y_test = (read_idx(fetch(file)) for file in images_28.MNIST_FILES)
    train, test = balanced_rows(y_train, _DIGITS[0], "train"), balanced_rows(y_test, _DIGITS[1], "test")
    return _part(x_train, y_train, train, x_test, y_test, test)


def letters() -> dict[str, np.ndarray]:
    """Return the part of notMNIST that is kept."""
    x_test, y_test = (read_idx(fetch(file)) for file in images_28.NOT_MNIST_FILES)
    return _part(x_test, y_test, np.empty(0, np.int64), x_test, y_test, balanced_rows(y_test, _LETTERS, "test"))


def _part(x_train: Any, y_train: Any, train: Any, x_test: Any, y_test: Any, test: Any) -> dict[str, np.ndarray]:
    found = {"x_train": x_train[train], "y_train": y_train[train], "train_rows": train.astype(np.uint16)}
    return found | {"x_test": x_test[test], "y_test": y_test[test], "test_rows": test.astype(np.uint16)}


def main(folder: Path = EMBEDDED) -> None:
    """Write all files into a folder, and print the name, the size and the SHA-256 of each."""
    for file in tables():
        content = _content(fetch(file), file)
        packed = content if file.path.endswith(".mat") else gzip.compress(content, 9, mtime=0)
        _write(folder / (file.path if packed is content else f"{file.path}.gz"), packed)
    for file, arrays in ((images_28.MNIST_PART, digits()), (images_28.NOT_MNIST_PART, letters())):
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(place, **arrays)
        _tell(place)


def _content(place: Path, file: DataFile) -> bytes:
    packed = place.suffix == ".gz" and not file.path.endswith(".gz")
    return gzip.decompress(place.read_bytes()) if packed else place.read_bytes()


def _write(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    _tell(place)


def _tell(place: Path) -> None:
    content = place.read_bytes()
    sys.stdout.write(f"{place.relative_to(place.parents[1])} {len(content):,} {hashlib.sha256(content).hexdigest()}\n")


if __name__ == "__main__":
    main()

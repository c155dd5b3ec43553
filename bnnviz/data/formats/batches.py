"""Read the CIFAR sets' archives (A. Krizhevsky): batches of images as pickles of Python 2, in a tar file.

A pickle may call any function, so this module has an unpickler for dictionaries, lists, numbers, texts and arrays only.
"""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bnnviz.data.formats import reading

SIDE = 32
_MOST_BYTES = 2**28  # of one batch; the largest that is published has 154 MB
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return a name of NumPy's arrays; refuse all other names."""
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch needs and which is not run")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def read_batches(place: Path, folder: str, names: Sequence[str], label: str) -> tuple[np.ndarray, np.ndarray]:
    """Read batches of an archive as images (rows, 3, 32, 32) and labels (rows,)."""
    found = []
    with reading(place, "archive of batches"), tarfile.open(place) as archive:
        for name in names:
            member = archive.getmember(f"{folder}/{name}")
            stream = archive.extractfile(member)
            if stream is None or member.size > _MOST_BYTES:
                raise ValueError(f"{name} in it is not a file of a batch's size")
            with reading(place, f"archive of batches, in {name}"):
                batch = _Unpickler(io.BytesIO(stream.read()), encoding="bytes").load()
                images, labels = batch[b"data"], batch[label.encode()]
                if getattr(images, "dtype", None) != np.uint8 or not all(type(number) is int for number in labels):
                    raise TypeError("its images are not an array of bytes, or its labels not numbers")
                found.append((images.reshape(len(labels), 3, SIDE, SIDE), np.array(labels, np.int64)))
    return np.concatenate([x for x, _ in found]), np.concatenate([y for _, y in found])

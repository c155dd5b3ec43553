"""MNIST and the sets in its format: grey images of 28 x 28, ten classes.

MNIST is by Y. LeCun and C. Cortes, Fashion-MNIST by Zalando SE (MIT licence), notMNIST by Y. Bulatov.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bnnviz.data.files import DataFile
from bnnviz.data.formats.idx import read_idx
from bnnviz.data.forms import Form, Images, Rows

_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"


def read_four(x_train: Path, y_train: Path, x_test: Path, y_test: Path) -> Rows:
    """Read training images and labels, test images and labels, each an idx file."""
    return Rows(
        x_train=one_channel(read_idx(x_train)),
        y_train=read_idx(y_train),
        x_test=one_channel(read_idx(x_test)),
        y_test=read_idx(y_test),
    )


def one_channel(images: np.ndarray) -> np.ndarray:
    """Return images (rows, height, width) as (rows, 1, height, width)."""
    return images[:, None]


def _four(folder: str, origin: str, md5s: tuple[str, str, str, str]) -> tuple[DataFile, ...]:
    names = [f"{part}-{held}-ubyte.gz" for part in ("train", "t10k") for held in ("images-idx3", "labels-idx1")]
    return tuple(
        DataFile(f"{folder}/{name}", f"{origin}/{name}", f"md5:{md5}") for name, md5 in zip(names, md5s, strict=True)
    )


MNIST_FILES = _four(
    "mnist",
    _MNIST,
    (
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
)

SETS = (
    Images(
        name="mnist",
        title="MNIST",
        doc="Handwritten digits, grey, 28 x 28: 60,000 images to train on and 10,000 to test on.",
        shape=(1, 28, 28),
        rows=60_000,
        class_names=tuple("0123456789"),
        mean=(0.1307,),
        sd=(0.3081,),
        forms=(Form(MNIST_FILES, read_four),),
    ),
)

"""MNIST and the sets in its format: grey images of 28 x 28, ten classes.

MNIST is by Y. LeCun and C. Cortes, Fashion-MNIST by H. Xiao, K. Rasul and R. Vollgraf (Zalando SE, MIT licence),
notMNIST by Y. Bulatov; its 10,000 test images in MNIST's format are those of the public repository
davidflanagan/notMNIST-to-MNIST.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bnnviz.data.files import DataFile
from bnnviz.data.formats.idx import read_idx
from bnnviz.data.formats.npz import read_npz
from bnnviz.data.forms import Form, Images, Rows
from bnnviz.data.images import ImageSet

MOST_DEGREES = 45.0
_ROTATION_SEED = 7
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_NOT_MNIST = (
    "https://raw.githubusercontent.com/davidflanagan/notMNIST-to-MNIST/17823f4d4a3acd8317c07866702d2eb2ac79c7a0"
)


def read_four(x_train: Path, y_train: Path, x_test: Path, y_test: Path) -> Rows:
    """Read training images and labels, test images and labels, each an idx file."""
    return _rows(read_idx(x_train), read_idx(y_train), x_test, y_test)


def read_first(train: Path, x_test: Path, y_test: Path) -> Rows:
    """Read the first training rows from `x` and `y` of an ``.npz``, test images and labels from idx files."""
    return _rows(*read_npz(train, ("x", "y")), x_test, y_test)


def read_part(place: Path) -> Rows:
    """Read some rows of a set and their numbers in it from an ``.npz`` that `bnnviz.data.embedding` has made."""
    names = ("x_train", "y_train", "x_test", "y_test", "test_rows")
    x, y, x_test, y_test, numbers = read_npz(place, names)
    return Rows(x_train=x[:, None], y_train=y, x_test=x_test[:, None], y_test=y_test, test_rows=numbers)


def read_test_only(x_test: Path, y_test: Path) -> Rows:
    """Read test images and labels from idx files; there are no training rows."""
    return _rows(np.empty((0, 28, 28), np.uint8), np.empty(0, np.uint8), x_test, y_test)


def _rows(x: np.ndarray, y: np.ndarray, x_test: Path, y_test: Path) -> Rows:
    return Rows(x_train=x[:, None], y_train=y, x_test=read_idx(x_test)[:, None], y_test=read_idx(y_test))


def rotate_test(upright: ImageSet, rows: Rows) -> ImageSet:
    """Turn each test image by an angle of its own, uniform between -45 and 45 degrees; a fixed seed draws them.

    An image has the same angle in the whole set and in a part of it.
    """
    numbers = np.arange(len(upright.y_test)) if rows.test_rows is None else rows.test_rows
    angles = np.random.default_rng(_ROTATION_SEED).uniform(-MOST_DEGREES, MOST_DEGREES, int(numbers.max()) + 1)
    return upright.rotated(angles[numbers])


def _files(folder: str, origin: str, checksums: dict[str, str]) -> tuple[DataFile, ...]:
    return tuple(DataFile(f"{folder}/{name}", f"{origin}/{name}", checksum) for name, checksum in checksums.items())


MNIST_FILES = _files(
    "mnist",
    _MNIST,
    {
        "train-images-idx3-ubyte.gz": "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "md5:d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "md5:9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "md5:ec29112dd5afa0611ce80d1b7f02629c",
    },
)
FASHION_FILES = _files(
    "fashion_mnist",
    _FASHION,
    {
        "train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
    },
)
FASHION_FIRST = DataFile(
    "fashion_mnist/train_first10k.npz", None, "4fac744d67173ce9ef523137bc3f78d0e8409170c5eb3339a8615e124e0fbcdd"
)
NOT_MNIST_FILES = _files(
    "notmnist",
    _NOT_MNIST,
    {
        "t10k-images-idx3-ubyte.gz": "70ae9e06201f2827e5b0a3781a3169d735dd2efc69996b9eeaee7f10ed4044d7",
        "t10k-labels-idx1-ubyte.gz": "1fa03836e01c862542f8eb83463bb951bebec6fcb3efa28dad748c6b38a9021b",
    },
)
MNIST_PART = DataFile(
    "mnist/mnist_1500_500.npz", None, "48967cf7d9365193dd1868ee7441b83bda205a282dfa44906712b69810cd6a44"
)
_MNIST_PART_FORM = Form(
    (MNIST_PART,),
    read_part,
    "A part stands in for MNIST: 1,500 of 60,000 training and 500 of 10,000 test images, which come with bnnviz.",
)
NOT_MNIST_PART = DataFile(
    "notmnist/notmnist_500.npz", None, "fbb161d6efd881a564d4fdb3c815a6fd68c44981e3c9ce27c954db880afc6908"
)
_MNIST_SCALE = {"mean": (0.1307,), "sd": (0.3081,)}

SETS = (
    Images(
        name="mnist",
        title="MNIST",
        doc="Handwritten digits, grey, 28 x 28: 60,000 images to train on and 10,000 to test on.",
        shape=(1, 28, 28),
        rows=60_000,
        class_names=tuple("0123456789"),
        **_MNIST_SCALE,
        forms=(Form(MNIST_FILES, read_four), _MNIST_PART_FORM),
    ),
    Images(
        name="fashion_mnist",
        title="Fashion-MNIST",
        doc="Articles of clothing, grey, 28 x 28: 60,000 images to train on, or their first 10,000 where only these are"
        " there, and 10,000 to test on.",
        shape=(1, 28, 28),
        rows=60_000,
        class_names=(
            *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
            *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
        ),
        mean=(0.2860,),
        sd=(0.3530,),
        forms=(
            Form(FASHION_FILES, read_four),
            Form(
                (FASHION_FIRST, *FASHION_FILES[2:]),
                read_first,
                "Of Fashion-MNIST only the first 10,000 of the 60,000 training images are here.",
            ),
        ),
    ),
    Images(
        name="rotated_mnist",
        title="Rotated MNIST",
        doc="MNIST with its test images turned, each by an angle of its own, uniform between -45 and 45 degrees (a"
        " fixed seed); the training images are upright. In the place of MNIST-C: what a network says of images that"
        " have drifted from those it was trained on.",
        shape=(1, 28, 28),
        rows=60_000,
        class_names=tuple("0123456789"),
        **_MNIST_SCALE,
        forms=(Form(MNIST_FILES, read_four), _MNIST_PART_FORM),
        finish=rotate_test,
    ),
    Images(
        name="notmnist",
        title="notMNIST",
        doc="Letters A to J in many typefaces, grey, 28 x 28: 10,000 images to test on, drawn from notMNIST_small, and"
        " none to train on. For a network on digits each is from outside of its data; a few are junk, as in the"
        " original.",
        shape=(1, 28, 28),
        rows=0,
        trainable=False,
        class_names=tuple("ABCDEFGHIJ"),
        forms=(
            Form(NOT_MNIST_FILES, read_test_only),
            Form(
                (NOT_MNIST_PART,),
                read_part,
                "A part stands in for notMNIST: 500 of 10,000 test images, which come with bnnviz.",
            ),
        ),
    ),
)

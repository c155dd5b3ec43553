"""List MNIST and the sets in its format: grey images of 28 x 28, ten classes.

MNIST is by Y. LeCun and C. Cortes, Fashion-MNIST by H. Xiao, K. Rasul and R. Vollgraf (Zalando SE, MIT licence),
notMNIST by Y. Bulatov; its 10,000 test images in MNIST's format are those of the public repository
davidflanagan/notMNIST-to-MNIST.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bnnviz.data.files import published
from bnnviz.data.formats import reading
from bnnviz.data.formats.idx import read_idx
from bnnviz.data.forms import Form, ImageRows, Images, facts, read_part
from bnnviz.data.images import ImageSet

MOST_DEGREES = 45.0
_ROTATION_SEED = 7


def _read_rows(images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read images (rows, 1, height, width) and labels (rows,), an idx file each."""
    return read_idx(images)[:, None], read_idx(labels)


def read_four(x_train: Path, y_train: Path, x_test: Path, y_test: Path) -> ImageRows:
    """Read training images and labels, test images and labels, each an idx file."""
    return ImageRows(*_read_rows(x_train, y_train), *_read_rows(x_test, y_test))


def read_first(train: Path, x_test: Path, y_test: Path) -> ImageRows:
    """Read the first training rows from `x` and `y` of an ``.npz``, test images and labels from idx files."""
    with reading(train, ".npz file"), np.load(train, allow_pickle=False) as found:
        x, y = found["x"][:, None], found["y"]
    return ImageRows(x, y, *_read_rows(x_test, y_test))


def read_test_only(x_test: Path, y_test: Path) -> ImageRows:
    """Read test images and labels from idx files; there are no training rows."""
    x, y = _read_rows(x_test, y_test)
    return ImageRows(x[:0], y[:0], x, y)


def rotate_test(upright: ImageSet, rows: ImageRows) -> ImageSet:
    """Rotate each test image by a fixed random angle between -45 and 45 degrees, the same in a part of the set."""
    numbers = np.arange(len(upright.y_test)) if rows.test_rows is None else rows.test_rows
    angles = np.random.default_rng(_ROTATION_SEED).uniform(-MOST_DEGREES, MOST_DEGREES, int(numbers.max()) + 1)
    return upright.rotated(angles[numbers])


_TRAIN = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
_TEST = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
MNIST_FILES = published(*(f"mnist/{name}" for name in _TRAIN + _TEST))
FASHION_FILES = published(*(f"fashion_mnist/{name}" for name in _TRAIN + _TEST))
NOT_MNIST_FILES = published(*(f"notmnist/{name}" for name in _TEST))
FASHION_FIRST, MNIST_PART, NOT_MNIST_PART = published(
    "fashion_mnist/train_first10k.npz", "mnist/mnist_1500_500.npz", "notmnist/notmnist_500.npz"
)
_MNIST_PART_FORM = Form(
    (MNIST_PART,),
    read_part,
    "MNIST is replaced by a part that comes with bnnviz: 1,500 of 60,000 training and 500 of 10,000 test images.",
)

SETS = (
    Images(
        **facts("mnist"),
        forms=(Form(MNIST_FILES, read_four), _MNIST_PART_FORM),
    ),
    Images(
        **facts("fashion_mnist"),
        forms=(
            Form(FASHION_FILES, read_four),
            Form(
                (FASHION_FIRST, *FASHION_FILES[2:]),
                read_first,
                "Only the first 10,000 of Fashion-MNIST's 60,000 training images are on this machine.",
            ),
        ),
    ),
    Images(
        **facts("rotated_mnist"),
        forms=(Form(MNIST_FILES, read_four), _MNIST_PART_FORM),
        finish=rotate_test,
    ),
    Images(
        **facts("notmnist"),
        forms=(
            Form(NOT_MNIST_FILES, read_test_only),
            Form(
                (NOT_MNIST_PART,),
                read_part,
                "notMNIST is replaced by a part that comes with bnnviz: 500 of 10,000 test images.",
            ),
        ),
    ),
)

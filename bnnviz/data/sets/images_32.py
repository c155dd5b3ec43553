"""List coloured images of 32 x 32: house numbers (SVHN) and the CIFAR sets.

SVHN is by Y. Netzer et al. (2011), for use that is not commercial; CIFAR-10 and CIFAR-100 by A. Krizhevsky (2009).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bnnviz.data.files import published
from bnnviz.data.formats.batches import read_batches
from bnnviz.data.formats.house_numbers import grey, read_digits
from bnnviz.data.forms import Form, ImageRows, Images, facts, read_part


def read_svhn(train: Path, test: Path) -> ImageRows:
    """Read SVHN's cropped digits."""
    return ImageRows(*read_digits(train), *read_digits(test))


def read_grey_svhn(train: Path, test: Path) -> ImageRows:
    """Read SVHN's cropped digits as grey images."""
    rows = read_svhn(train, test)
    return rows._replace(x_train=grey(rows.x_train), x_test=grey(rows.x_test))


def read_archive(place: Path, folder: str, train: tuple[str, ...], test: str, label: str) -> ImageRows:
    """Read the batches of a CIFAR archive."""
    return ImageRows(*read_batches(place, folder, train, label), *read_batches(place, folder, (test,), label))


SVHN_FILES = published("svhn/train_32x32.mat", "svhn/test_32x32.mat")
CIFAR10_FILE, CIFAR10_PART = published("cifar10/cifar-10-python.tar.gz", "cifar10/cifar10_4000_1000.npz")
CIFAR100_FILE, CIFAR100_PART = published("cifar100/cifar-100-python.tar.gz", "cifar100/cifar100_test_1000.npz")

SETS = (
    Images(
        **facts("svhn"),
        forms=(Form(SVHN_FILES, read_svhn),),
    ),
    Images(
        **facts("svhn_grey"),
        forms=(Form(SVHN_FILES, read_grey_svhn),),
    ),
    Images(
        **facts("cifar10"),
        forms=(
            Form(
                (CIFAR10_FILE,),
                partial(
                    read_archive,
                    folder="cifar-10-batches-py",
                    train=tuple(f"data_batch_{number}" for number in range(1, 6)),
                    test="test_batch",
                    label="labels",
                ),
            ),
            Form(
                (CIFAR10_PART,),
                read_part,
                "Of CIFAR-10 only 4,000 of the 50,000 training images and 1,000 of the 10,000 test images are here,"
                " equally many of each class.",
            ),
        ),
    ),
    Images(
        **facts("cifar100"),
        forms=(
            Form(
                (CIFAR100_FILE,),
                partial(read_archive, folder="cifar-100-python", train=("train",), test="test", label="fine_labels"),
            ),
            Form(
                (CIFAR100_PART,),
                read_part,
                "Of CIFAR-100 only 1,000 of the 10,000 test images are here, ten of each class, and no training"
                " images.",
            ),
        ),
    ),
)

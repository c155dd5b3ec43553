"""List GTSRB, the German Traffic Sign Recognition Benchmark (J. Stallkamp et al. 2012)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bnnviz.data.files import published
from bnnviz.data.formats import broken
from bnnviz.data.formats.npz import read_npz
from bnnviz.data.formats.signs import numbered_tracks, read_test, read_training
from bnnviz.data.forms import Form, ImageRows, Images, facts
from bnnviz.data.sets.images_32 import colours_first


def read_archives(train: Path, test: Path, labels: Path) -> ImageRows:
    """Read the published zip files."""
    x_train, y_train, tracks = read_training(train)
    x_test, y_test = read_test(test, labels)
    return ImageRows(x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test, groups=tracks)


def read_unpacked(train: Path, test: Path, labels: Path) -> ImageRows:
    """Read the unpacked zip files."""
    x_train, y_train, tracks = read_training(train, root="")
    x_test, y_test = read_test(test, labels.parent, root="", table=labels.name)
    return ImageRows(x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test, groups=tracks)


def read_part(place: Path) -> ImageRows:
    """Read some rows from an ``.npz``, colours last; names such as ``00001/00041_00024.ppm`` contain the tracks."""
    names = ("x_train", "y_train", "name_train", "x_test", "y_test")
    x_train, y_train, files, x_test, y_test = read_npz(place, names)
    try:
        tracks = np.array([int(name.rpartition(b"/")[2].partition(b"_")[0]) for name in files.tolist()], np.int64)
        groups = numbered_tracks(y_train, tracks)
    except (ValueError, TypeError, AttributeError) as error:
        raise broken(place, ".npz file of GTSRB's", "its names contain no tracks") from error
    return ImageRows(
        x_train=colours_first(x_train), y_train=y_train, x_test=colours_first(x_test), y_test=y_test, groups=groups
    )


FILES = published(*(f"gtsrb/GTSRB_Final_{name}.zip" for name in ("Training_Images", "Test_Images", "Test_GT")))
UNPACKED = published("gtsrb/GTSRB/Final_Training/Images", "gtsrb/GTSRB/Final_Test/Images", "gtsrb/GT-final_test.csv")
PART = published("gtsrb/gtsrb32_860_430.npz")

SETS = (
    Images(
        **facts("gtsrb"),
        forms=(
            Form(FILES, read_archives),
            Form(UNPACKED, read_unpacked, "GTSRB was read from unpacked pictures, which have no checksum."),
            Form(
                PART,
                read_part,
                "Of GTSRB only 860 of the 39,209 training pictures and 430 of the 12,630 test pictures are here,"
                " equally many of each class.",
            ),
        ),
    ),
)

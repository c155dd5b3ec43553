"""List GTSRB, the German Traffic Sign Recognition Benchmark (J. Stallkamp et al. 2012)."""

from __future__ import annotations

from pathlib import Path

from bnnviz.data.files import published
from bnnviz.data.formats.signs import read_test, read_training
from bnnviz.data.forms import Form, ImageRows, Images, facts, read_part


def read_archives(train: Path, test: Path, labels: Path) -> ImageRows:
    """Read the published zip files."""
    return ImageRows(*read_training(train), *read_test(test, labels))


FILES = published(*(f"gtsrb/GTSRB_Final_{name}.zip" for name in ("Training_Images", "Test_Images", "Test_GT")))
PART = published("gtsrb/gtsrb32_860_430.npz")

SETS = (
    Images(
        **facts("gtsrb"),
        forms=(
            Form(FILES, read_archives),
            Form(
                PART,
                read_part,
                "Of GTSRB only 860 of the 39,209 training pictures and 430 of the 12,630 test pictures are here,"
                " equally many of each class.",
            ),
        ),
    ),
)

"""Read GTSRB's traffic signs (J. Stallkamp et al. 2012): small picture files and their labels in CSV files."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import numpy as np

from bnnviz import optional
from bnnviz.data.formats import reading

SIDE = 32
_MOST_SIDE = 2048  # of a picture; the largest that is published is 250 wide
_MOST_BYTES = 2**26
_WHAT = "archive of GTSRB"


def read_training(place: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the training pictures (rows, 3, 32, 32) and labels: a folder with a table ``GT-*.csv`` for each class."""
    with reading(place, _WHAT), zipfile.ZipFile(place) as archive:
        tables = sorted(path for path in map(PurePosixPath, archive.namelist()) if path.match("GT-*.csv"))
        rows = [(table.parent / file, label) for table in tables for file, label in _table(archive, table)]
        return _pictures(archive, (path for path, _ in rows)), np.array([label for _, label in rows], np.int64)


def read_test(pictures: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the test pictures (rows, 3, 32, 32) and their labels (rows,), which are published apart."""
    with reading(labels, _WHAT), zipfile.ZipFile(labels) as archive:
        rows = _table(archive, PurePosixPath("GT-final_test.csv"))
    with reading(pictures, _WHAT), zipfile.ZipFile(pictures) as archive:
        found = _pictures(archive, (PurePosixPath("GTSRB/Final_Test/Images", file) for file, _ in rows))
    return found, np.array([label for _, label in rows], np.int64)


def _read(archive: zipfile.ZipFile, path: PurePosixPath) -> bytes:
    if archive.getinfo(str(path)).file_size > _MOST_BYTES:
        raise ValueError(f"{path} in it is not a file of a picture's size")
    return archive.read(str(path))


def _table(archive: zipfile.ZipFile, path: PurePosixPath) -> list[tuple[str, int]]:
    """Return file names and class numbers of a table separated by semicolons."""
    rows = csv.DictReader(io.StringIO(_read(archive, path).decode("ascii")), delimiter=";")
    return [(PurePosixPath(row["Filename"]).name, int(row["ClassId"])) for row in rows]


def _pictures(archive: zipfile.ZipFile, paths: Iterable[PurePosixPath]) -> np.ndarray:
    """Return pictures (rows, 3, 32, 32)."""
    image = optional.require("PIL.Image", "Reading pictures needs")
    found = []
    for path in paths:
        with image.open(io.BytesIO(_read(archive, path)), formats=("PPM", "PNG")) as picture:
            if max(picture.size) > _MOST_SIDE:
                raise ValueError(f"{path} in it is {picture.size[0]} x {picture.size[1]}")
            small = picture.convert("RGB").resize((SIDE, SIDE), image.Resampling.BILINEAR)
        found.append(np.asarray(small).transpose(2, 0, 1))
    if not found:
        raise ValueError("no table in it lists a picture")
    return np.stack(found)

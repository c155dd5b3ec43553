"""Read GTSRB's traffic signs (J. Stallkamp et al. 2012): small picture files and their labels in CSV files."""

from __future__ import annotations

import csv
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from types import ModuleType

import numpy as np

from bnnviz import optional
from bnnviz.data.formats import broken

SIDE = 32
_MOST_SIDE = 2048  # of a picture; the largest that is published is 250 wide
_MOST_BYTES = 2**26
_WHAT = "archive of GTSRB"


def read_training(place: Path, root: str = "GTSRB/Final_Training/Images") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read the training pictures: a folder for each class, with a table ``GT-*.csv`` in it.

    Shapes: x (rows, 3, 32, 32), y (rows,), tracks (rows,).
    """
    with _Tree(place) as tree:
        tables = [path for path in tree.paths(root) if path.match("GT-*.csv")]
        rows = [(table.parent / file, label) for table in tables for file, label in tree.table(table)]
        tracks = [tree.number(path.name.partition("_")[0]) for path, _ in rows]
        y = np.array([label for _, label in rows], np.int64)
        return tree.pictures(path for path, _ in rows), y, numbered_tracks(y, np.array(tracks, np.int64))


def read_test(
    pictures: Path, labels: Path, root: str = "GTSRB/Final_Test/Images", table: str = "GT-final_test.csv"
) -> tuple[np.ndarray, np.ndarray]:
    """Read the test pictures and their table, which is published apart.

    Shapes: x (rows, 3, 32, 32), y (rows,).
    """
    with _Tree(labels) as tree:
        rows = tree.table(PurePosixPath(table))
    with _Tree(pictures) as tree:
        found = tree.pictures(PurePosixPath(root, file) for file, _ in rows)
    return found, np.array([label for _, label in rows], np.int64)


def numbered_tracks(y: np.ndarray, tracks: np.ndarray) -> np.ndarray:
    """Return numbers (rows,) of tracks that differ between classes, in each of which they begin from 0."""
    return y.astype(np.int64) * 10**6 + tracks


class _Tree:
    """The files in a zip file or in a folder, read alike."""

    def __init__(self, place: Path) -> None:
        self.place = place
        try:
            self._archive = None if place.is_dir() else zipfile.ZipFile(place)
        except (OSError, zipfile.BadZipFile) as error:
            raise broken(place, _WHAT, error) from error

    def __enter__(self) -> _Tree:
        return self

    def __exit__(self, *_: object) -> None:
        if self._archive is not None:
            self._archive.close()

    def paths(self, root: str) -> list[PurePosixPath]:
        """Return all paths under a folder, sorted."""
        if self._archive is None:
            return sorted(PurePosixPath(path.relative_to(self.place)) for path in (self.place / root).rglob("*"))
        return sorted(path for path in map(PurePosixPath, self._archive.namelist()) if path.is_relative_to(root))

    def read(self, path: PurePosixPath) -> bytes:
        """Return the bytes of a file."""
        try:
            if self._archive is None:
                return (self.place / path).read_bytes()
            if self._archive.getinfo(str(path)).file_size > _MOST_BYTES:
                raise broken(self.place, _WHAT, f"{path} in it is not a file of a picture's size")
            return self._archive.read(str(path))
        except KeyError as error:
            raise broken(self.place, _WHAT, f"there is no {path} in it") from error
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError) as error:
            raise broken(self.place, _WHAT, f"{path}: {error}") from error

    def table(self, path: PurePosixPath) -> list[tuple[str, int]]:
        """Return file names and class numbers of a table separated by semicolons."""
        try:
            rows = csv.DictReader(io.StringIO(self.read(path).decode("ascii")), delimiter=";")
            return [(PurePosixPath(row["Filename"]).name, self.number(row["ClassId"])) for row in rows]
        except (KeyError, TypeError, UnicodeDecodeError, csv.Error) as error:
            raise broken(self.place, _WHAT, f"{path} has no columns Filename and ClassId") from error

    def number(self, text: str | None) -> int:
        """Return a number that is written in a name or a table."""
        if text is None or not text.isdecimal() or len(text) > 6:
            raise broken(self.place, _WHAT, f"{text!r} is not the number of a track or a class")
        return int(text)

    def pictures(self, paths: Iterable[PurePosixPath]) -> np.ndarray:
        """Return pictures (rows, 3, 32, 32)."""
        found = [self._picture(path) for path in paths]
        if not found:
            raise broken(self.place, _WHAT, "no table in it lists a picture")
        return np.stack(found)

    def _picture(self, path: PurePosixPath) -> np.ndarray:
        image = _pillow()
        content = self.read(path)
        try:
            with image.open(io.BytesIO(content), formats=("PPM", "PNG")) as picture:
                if max(picture.size) > _MOST_SIDE:
                    raise ValueError(f"it is {picture.size[0]} x {picture.size[1]}")
                small = picture.convert("RGB").resize((SIDE, SIDE), image.Resampling.BILINEAR)
        except (OSError, EOFError, ValueError, SyntaxError, image.DecompressionBombError) as error:
            raise broken(self.place, _WHAT, f"{path}: {error}") from error
        return np.asarray(small).transpose(2, 0, 1)


def _pillow() -> ModuleType:
    return optional.require("PIL.Image", "Reading pictures needs")

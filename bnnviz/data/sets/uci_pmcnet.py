"""The sets of the PMCnet paper (Huang et al. 2023) with its division into training, validation and test rows.

The rows and the starting weights come from the public repository yunshihuang/PMCnet at a fixed commit, which states no
terms; the sets are UCI's. Of wine no division is public: ours is drawn here, in the paper's proportion of 6:2:2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnnviz.data.dataset import PARTS, DataSet, Standardiser, Task
from bnnviz.data.entry import Entry
from bnnviz.data.files import DataFile
from bnnviz.data.published import PublishedWeights, read_mat
from bnnviz.data.sets.uci_classes import SETS as TABLES
from bnnviz.data.sets.uci_classes import LabelledTable

_ORIGIN = "https://raw.githubusercontent.com/yunshihuang/PMCnet/745d4fa0df78a5d63d401a6931f8f88cba220ab4"
_WINE_SIZES = (106, 36)  # training and validation rows; the other 36 are test rows
_SHA256 = {
    "Ionosphere": {
        "train_data": "249c3ef8171b1e2f999dd19df0221870e0f5c4f5d5aedc3222221f5c2fc59a61",
        "val_data": "0387d30c128dcd8011669964aa00bc1edefe1d0cfe9a4d071673f0b1f4abda6d",
        "test_data": "a0a630d2f46a45a5b4a8654e749e411f4e43df63369e1f150174c39000eab4c6",
        "init_W1": "13e5a968a3a0ea3eb52d84cd7d0b033833ddb44ddf952914f25fd84bc3a2ff78",
        "init_b1": "8194e610f04aed435583c0dc07806a6018229612e66270f5b2d4031bffe1dfc0",
        "init_W2": "c32b78ee70448f1b1b7155b18d992d47793951dd8a4f4638424490ae6f26e0ee",
        "init_b2": "e15e91dbaade965ebad68cab79e408ee289b693c5e2a51e90cbbed316523c8e7",
    },
    "Glass": {
        "train_data": "08c3371cb22b978306cb933a9cca346730bcbfebf3745eca281b0f1bcf61c15d",
        "val_data": "de1daeb391f7007c322144df54488a5385e03ef3897401900f14d69d74fbd4a7",
        "test_data": "d0a5cf3826a990421399986ab7a0d672a399a0cba70fe842d8df53e105fdb5b4",
        "init_W1": "7d5e2d755d2fa647d0a153f26e47e724300422916c41d1ab66ce27b74dd9243c",
        "init_b1": "8389737c2dc03a46e4c7f49e6cb0bac1b784553d2f44fed991b3bb54e6f23366",
        "init_W2": "3acda8b0f9855983d9558450150fb94f210cd4fdd0b8c28debc90b59768f05b0",
        "init_b2": "679c621df1e6e6fafea3b6657adc8d3024f1bf16bdd3d5eb147c8eae62118756",
    },
    "Naval": {
        "train_data": "71f9a569357d64efdbba19633e3da7dad931e45ee4763d26a760ab44a477b991",
        "val_data": "cd1afe28be691c845a2cd83fa27c39039d9cfd956b46bcda2efa3614d104ebd4",
        "test_data": "7f6a582549f86c0de30e6ad159ff34ffe104ba80eab10a74ecab49a652c11de0",
        "init_W1": "755157ffa92aee0ac4fccaf23e55d2b2fcf040c9049be6381ed9a1ba0b968c4b",
        "init_b1": "8d976582be0b6698de8e90b352652bb0bae6eebf88d0c6f2b7baba483c7e7444",
        "init_W2": "5605a634538d191ecbe5f428ecea377ef1a6bea1eedbc0eb19ce27455f1342e6",
        "init_b2": "d22d191e95213ba6347f8463bc7b0a3152b4cce69578c82021d59f329e37bff9",
        "init_W3": "4fc29238dd080ca2e2e752ae9995caff4c3b6f48d5926a23f4b0452a4fa7e8fa",
        "init_b3": "b3fcc6459659f7ebc762e2182c92c3fd536c23de38e0063664f88eaa0a603ff8",
    },
    "Protein": {
        "train_data": "a69a40d5a2a5d4499214ef4604ca195e2bf8cc4e6e3f4fdc4a9e0855c2120835",
        "val_data": "6823cc2883e3b4288ae3b8fd8a2fcad712263b1e8708ac1eb438d7315014d375",
        "test_data": "a548660459605a7d034655e2f0c3c9743bbf0e8a7b51ba5facca039e0057ffd3",
        "init_W1": "2cae9cae6b355af7d6aa71b6b7b113c4a4b493812d839c0c87423a6bf03530be",
        "init_b1": "9e3cb5c659858870eea334faecbca650c5ed125c29823a8b4705d71862b6007a",
        "init_W2": "b5fc123b12c113f18c86eb258daa349b09c7edd018e58f1bf6817796f468527d",
        "init_b2": "73917d98c916477eb1931bc5a090a17a99d895c411809678605fe4f804572825",
        "init_W3": "e62b03e6934a4e4890f42d26b12c62c4a679ec7523ba4fadb61e5d3d9343b5ea",
        "init_b3": "938e02530669f399b543072d60b046b37c93ceafdb6a336be810fbada36d98f1",
    },
}


def _file(folder: str, name: str) -> DataFile:
    stem = name.removeprefix("init_")
    place = f"data/{folder}" if stem == name else f"params/{folder}"
    return DataFile(f"pmcnet_splits/{folder}/{name}.mat", f"{_ORIGIN}/{place}/{stem}.mat", _SHA256[folder][name])


def _weights(folder: str, hidden: str, activation: str) -> PublishedWeights:
    layers = len(hidden.split("-")) + 1
    files = tuple((_file(folder, f"init_W{i}"), _file(folder, f"init_b{i}")) for i in range(1, layers + 1))
    return PublishedWeights(hidden, activation, files)


@dataclass(frozen=True, kw_only=True)
class PaperSplit(Entry):
    """Rows in three MATLAB files, one for each part.

    Parameters
    ----------
    folder : str
        Of its files.
    y_label, y_unit : str
        What the target is called and its unit, empty where it has none.
    y_key : str, default "y"
        What the target's array is called, before the underscore.
    class_names : tuple of str, default ()
        What each class is called; empty for a regression.
    first_class : int, default 0
        The number that the files give to the first class.
    positive : int, default 1
        Of two classes the one that the paper's precision, recall and specificity are about.
    noise_sd : float or None, default None
        The observation noise to assume where none is given, in the target's unit.
    """

    folder: str
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
        for part, file in zip(PARTS, (self.file, *self.more_files), strict=True):
            arrays = read_mat(file)
            rows[f"x_{part}"] = arrays[f"x_{part}"]
            rows[f"y_{part}"] = arrays[f"{self.y_key}_{part}"].ravel() - self.first_class
        return DataSet(
            name=self.name,
            title=self.title,
            doc=self.doc,
            task=self.task,
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


@dataclass(frozen=True, kw_only=True)
class ThreeParts(Entry):
    """A table that is divided 6:2:2 here, by a seed for each split.

    Parameters
    ----------
    table : LabelledTable
        Where the rows are from.
    """

    table: LabelledTable
    splits: int = 20
    validation: bool = True

    def load(self, split: int) -> DataSet:
        """Read one split, downloading the file if needed."""
        x, y, class_names = self.table.read()
        order = np.random.default_rng(split).permutation(len(x))
        train, val, test = (np.sort(part) for part in np.split(order, np.cumsum(_WINE_SIZES)))
        return DataSet(
            name=self.name,
            title=self.title,
            doc=self.doc,
            task=self.task,
            x_train=x[train],
            y_train=y[train],
            x_val=x[val],
            y_val=y[val],
            x_test=x[test],
            y_test=y[test],
            x_label=f"{self.inputs} features",
            y_label=self.table.y_label,
            class_names=class_names,
        )


def _paper(folder: str, hidden: str, activation: str, **more: object) -> PaperSplit:
    train, val, test = (_file(folder, f"{part}_data") for part in PARTS)
    weights = _weights(folder, hidden, activation)
    return PaperSplit(folder=folder, file=train, more_files=(val, test), weights=weights, **more)


_CLASSIFICATION: Task = "classification"
_WINE = next(table for table in TABLES if table.name == "wine")

SETS = (
    _paper(
        "Ionosphere",
        "5",
        "tanh",
        name="pmcnet_ionosphere",
        title="Ionosphere, PMCnet's split",
        doc="Radar returns from the ionosphere, good (1) or bad (0), with 33 features: 210 training, 70 validation and"
        " 71 test rows, those of the PMCnet paper, with its starting weights for hidden=5.",
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
        doc="Six kinds of glass from nine features: 128 training, 43 validation and 43 test rows, those of the PMCnet"
        " paper, of two kinds one row each in the test, with its starting weights for hidden=10.",
        inputs=9,
        rows=214,
        task=_CLASSIFICATION,
        classes=6,
        class_names=("1", "2", "3", "4", "5", "6"),
        first_class=1,
        y_label="kind of glass",
    ),
    ThreeParts(
        name="pmcnet_wine",
        title="Wine, 6:2:2",
        doc="Three cultivars of wine from 13 results of a chemical analysis: 106 training, 36 validation and 36 test"
        " rows, in the proportion of the PMCnet paper, whose own division is not public.",
        inputs=13,
        rows=178,
        task=_CLASSIFICATION,
        classes=3,
        table=_WINE,
        file=_WINE.file,
    ),
    _paper(
        "Naval",
        "100-100",
        "relu",
        name="pmcnet_naval",
        title="Naval propulsion, PMCnet's split",
        doc="Decay of a frigate's gas turbine compressor from 14 features: 7160 training, 2387 validation and 2387 test"
        " rows, those of the PMCnet paper, with its starting weights for hidden=100-100 and relu. The target is not"
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
        " validation and 9146 test rows, those of the PMCnet paper, with its starting weights for hidden=100-100 and"
        " relu. The target is not standardised.",
        inputs=9,
        rows=45730,
        y_label="RMSD",
        y_unit="angstrom",
        noise_sd=4.0,
    ),
)

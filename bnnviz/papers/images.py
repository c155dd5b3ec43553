"""Networks on images: Table 2 of the PDMP paper (corrected text), at the paper's scale or one that ends in minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bnnviz import data as datasets
from bnnviz.errors import BnnvizError
from bnnviz.papers.experiment import Case, Experiment
from bnnviz.spec import Spec

SEEDS = range(5)
SMALL_SEEDS = range(1)
#: Published figures by data set and row: accuracy, nll, ece (x100), ess_pc1.
PUBLISHED: dict[str, dict[str, tuple[float, float, float, float]]] = {
    "mnist": {
        "BPS": (0.99, 0.08, 5.22, 2.88),
        "sigma-BPS": (0.99, 0.02, 0.48, 2.72),
        "Boomerang": (0.99, 0.03, 0.85, 175.26),
        "SGLD": (0.99, 0.02, 0.19, 22.74),
        "SGLD-ND": (0.99, 0.02, 0.15, 3.00),
        "SGHMC": (0.99, 0.02, 0.17, 2.71),
    },
    "fashion_mnist": {
        "BPS": (0.91, 0.25, 1.00, 2.73),
        "sigma-BPS": (0.91, 0.30, 3.94, 2.74),
        "Boomerang": (0.91, 0.28, 3.82, 143.05),
        "SGLD": (0.90, 0.30, 3.09, 102.52),
        "SGLD-ND": (0.91, 0.33, 4.71, 2.97),
        "SGHMC": (0.91, 0.34, 4.88, 2.71),
    },
    "svhn": {
        "BPS": (0.95, 0.18, 0.61, 2.71),
        "sigma-BPS": (0.95, 0.19, 0.63, 2.75),
        "Boomerang": (0.95, 0.21, 3.58, 172.02),
        "SGLD": (0.96, 0.16, 1.33, 21.84),
        "SGLD-ND": (0.96, 0.16, 1.34, 2.97),
        "SGHMC": (0.95, 0.19, 0.83, 2.71),
    },
    "cifar10": {
        "BPS": (0.80, 0.67, 4.91, 2.70),
        "sigma-BPS": (0.79, 0.72, 8.55, 2.73),
        "Boomerang": (0.81, 0.59, 4.17, 200.00),
        "SGLD": (0.81, 1.01, 15.32, 19.78),
        "SGLD-ND": (0.81, 0.99, 15.15, 2.85),
        "SGHMC": (0.80, 0.96, 14.64, 2.71),
    },
    "cifar100": {
        "BPS": (0.63, 1.43, 10.16, 2.72),
        "sigma-BPS": (0.63, 1.42, 8.70, 2.80),
        "Boomerang": (0.63, 1.42, 12.67, 54.96),
        "SGLD": (0.64, 1.42, 11.24, 26.79),
        "SGLD-ND": (0.64, 1.45, 12.22, 2.69),
        "SGHMC": (0.63, 1.46, 12.63, 2.71),
    },
}
SCALES = ("small", "paper")
_NETWORKS = {"svhn": "resnet20", "cifar10": "resnet20", "cifar100": "resnet20"}
_BATCHES = {"cifar10": 512, "cifar100": 512}


@dataclass(frozen=True)
class ImageTable(Experiment):
    """A table with a part for each data set, at two scales.

    Parameters
    ----------
    data : str
        The data set of this part.
    scale : {"small", "paper"}
    """

    data: str = "mnist"
    scale: str = "small"

    def at(self, data: str | None, scale: str | None) -> ImageTable:
        """Return the part of a data set at a scale; None leaves what it is."""
        data, scale = data or self.data, scale or self.scale
        if data not in PUBLISHED:
            raise BnnvizError(f"{self.name} has no part {data!r}; choose one of {', '.join(PUBLISHED)}.", "data")
        if scale not in SCALES:
            raise BnnvizError(f"There is no scale {scale!r}; choose one of {', '.join(SCALES)}.", "scale")
        return _table(data, scale)

    def check(self) -> None:
        """Raise a `BnnvizError` if the images are not to be had."""
        rows = len(datasets.load(self.data).y_train)
        if not rows:
            raise BnnvizError(
                f"There are no training images of {self.data} here: fetch the whole set, or take another part with"
                " --data.",
                "data",
            )


def _rows(data: str, scale: str) -> dict[str, Mapping[str, Any]]:
    """Return the sampler and its settings for each row of the table."""
    batch = {"batch_size": _BATCHES.get(data, 100)}
    small = scale == "small"
    start = {"start": "mode", "mode_steps": 400 if small else 10_000}
    # Two hundred draws, a tenth of the moves that the paper keeps between two, at the small scale.
    moves = {"every": 5 if small else 10}
    common = {**batch, **start}
    return {
        "BPS": {"sampler": "bps", **common},
        "sigma-BPS": {"sampler": "sigma_bps", **common},
        "Boomerang": {"sampler": "boomerang", **common},
        "SGLD": {"sampler": "sgld", "decay": 0.55, **moves, **common},
        "SGLD-ND": {"sampler": "sgld", **moves, **common},
        "SGHMC": {"sampler": "sghmc", **moves, **common},
    }


def _table(data: str, scale: str) -> ImageTable:
    small = scale == "small"
    network = _NETWORKS.get(data, "lenet5" if small else "lenet5_swish")
    target = {"data": data, "network": network, "train_rows": 1000 if small else None}
    target["test_rows"] = 500 if small else 10_000
    draws = 60 if small else 200
    cases = []
    for name, settings in _rows(data, scale).items():
        given = dict(settings)
        sampler = given.pop("sampler")
        specs = tuple(
            Spec("images", target, sampler, given, chains=1, draws=draws, warmup=5, seed=seed)
            for seed in (SMALL_SEEDS if small else SEEDS)
        )
        accuracy, nll, ece, ess = PUBLISHED[data][name]
        published = {"accuracy": accuracy, "nll": nll, "ece": ece / 100, "ess_pc1": ess}
        cases.append(Case(name, specs, published, _NOTES.get(name, "")))
    return ImageTable(
        name="pdmp-table2",
        title=f"{network} on {data}, all samplers from one MAP (PDMP paper, Table 2; scale {scale})",
        doc=_SMALL if small else _PAPER,
        measures=("accuracy", "nll", "ece", "ess_pc1", "ess_function_median", "ess_per_million"),
        cases=tuple(cases),
        minutes=9 if small else None,
        data=data,
        scale=scale,
    )


_SMALL = (
    "Reduced: 1,000 training and 500 test rows, one run of 60 draws of each sampler, and on MNIST and Fashion-MNIST the"
    " LeNet-5 of 61,706 weights in place of the paper's of 545,546. ECE from 0 to 1, where the paper prints it times"
    " 100. ess_pc1 is at most the number of draws, 60, where the paper has 200."
)
_PAPER = (
    "All training rows, five runs of 200 draws of each sampler. ECE from 0 to 1, where the paper prints it times 100."
    " The paper's step sizes and refresh rates are in no public file: ours are the defaults."
)
_NOTES = {
    "Boomerang": "The posterior itself with N(0, 1), where the paper's has a flat prior and its reference.",
    "SGLD": "The paper's noise is added to the gradient, which makes it SGD in effect: its draws converge to a point.",
}
TABLE2 = replace(_table("mnist", "small"))

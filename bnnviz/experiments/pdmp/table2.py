"""Run networks on images: Table 2 of the PDMP paper, at the paper's scale or one that ends in minutes."""

from __future__ import annotations

from typing import Any, NamedTuple

from bnnviz import data as datasets
from bnnviz.experiments import published
from bnnviz.experiments.experiment import Case, repeated
from bnnviz.experiments.pdmp.table1 import PAPER
from bnnviz.experiments.uncertainty import UncertaintyExperiment

SEEDS = range(5)
SMALL_SEEDS = range(1)
_MEASURES = ("accuracy", "nll", "ece", "ess_function_median")
#: Data sets of the table.
_DATA = ("mnist", "fashion_mnist", "svhn", "cifar10", "cifar100")
_NETWORKS = {"svhn": "resnet20", "cifar10": "resnet20", "cifar100": "resnet20"}
_OOD = {"svhn": "cifar10", "cifar10": "cifar100", "cifar100": "cifar10"}  # images of the same shape
_TITLES = {"lenet5": "LeNet-5", "lenet5_swish": "LeNet-5 with swish", "resnet20": "ResNet-20"}
_BATCHES = {"cifar10": 512, "cifar100": 512}


#: Algorithm 2 as in the paper, with a batch held between events.
ALGORITHM_2 = PAPER | {"batch": "event"}
#: Settings of the authors' code; gamma is that for CIFAR-10, and the warm-up of sigma-BPS is unknown.
_SLOW = {"velocity_sd": 1e-3, "t_init": 10.0}
_NARROW = {"reference": "prior", "gamma": 1e-3}
_PDMPS = {"BPS": "bps", "sigma-BPS": "sigma_bps", "Boomerang": "boomerang"}


class _SmallScale(NamedTuple):
    """Small-scale rows, draws, batch size, steps to the mode, warm-up events, and total minutes."""

    rows: int
    test_rows: int
    draws: int
    batch: int
    mode_steps: int
    warmup_events: int
    minutes: int


_SIZES = {"lenet5": _SmallScale(400, 500, 40, 100, 400, 100, 8), "resnet20": _SmallScale(100, 200, 10, 25, 100, 30, 20)}


def _rows(data: str, size: _SmallScale | None) -> dict[str, dict[str, Any]]:
    """Return sampler and settings of each row: all samplers, then the three PDMPs with Algorithm 2 as printed."""
    small = size is not None
    batches = {"batch_size": size.batch if small else _BATCHES.get(data, 100)}
    # An envelope that bounds all batches rejects nearly every proposal. All rows are feasible at the small scale; at
    # the paper's scale the regression of noisy rates (Pakman and others) is used, which is approximate.
    whole = {"bound": "interpolated"} if small else {"bound": "regression", "sds_above": 3.0, **batches}
    learned = {"warmup_events": size.warmup_events} if small else {}
    # A tenth of the step size from the curvature: at the full size, batch noise makes SGHMC diverge.
    short = {"step_size": 5e-6} if small else {}
    moves = {"thin": 60 if small else 10}  # for about equal gradients at the small scale
    rows = {
        "BPS": {"sampler": "bps", **whole},
        "sigma-BPS": {"sampler": "sigma_bps", **learned, **whole},
        "Boomerang": {"sampler": "boomerang", **whole},
        "SGLD": {"sampler": "sgld", "decay": 0.55, **moves, **batches},
        "SGLD-ND": {"sampler": "sgld", **moves, **batches},
        "SGHMC": {"sampler": "sghmc", **short, **moves, **batches},
    }
    readings = {"BPS": _SLOW, "sigma-BPS": {"variant": "paper", **_SLOW, **learned}, "Boomerang": _NARROW}
    for name, sampler in _PDMPS.items():
        rows[f"{name}, Algorithm 2"] = {"sampler": sampler, **readings[name], **ALGORITHM_2, **batches}
    start = {"start": "mode", "mode_steps": size.mode_steps if small else 10_000}
    return {name: row | start for name, row in rows.items()}


def _table(data: str, scale: str) -> UncertaintyExperiment:
    small = scale == "small"
    network = _NETWORKS.get(data, "lenet5" if small else "lenet5_swish")
    size = _SIZES[network] if small else None
    rows, test_rows = (size.rows, size.test_rows) if small else (None, 10_000)
    target = {"data": data, "network": network, "train_rows": rows, "test_rows": test_rows}
    title = datasets.describe(data)["title"]
    return UncertaintyExperiment(
        name="pdmp-table2",
        title=f"{_TITLES[network]} on {title}, all samplers from one MAP, {scale} scale (PDMP paper, Table 2)",
        doc=_reduced(size, network) if small else _PAPER,
        measures=_MEASURES if small else (*_MEASURES, "ess_pc1", "ess_per_million"),
        cases=tuple(_case(name, data, target, row, size) for name, row in _rows(data, size).items()),
        why=_WHY,
        pictures=("reliability",),
        minutes=size.minutes if small else None,
        ood=_OOD.get(data, "notmnist"),
        base=2,
        data=data,
        scale=scale,
        parts=_DATA,
        build=_table,
    )


def _case(name: str, data: str, target: dict[str, Any], row: dict[str, Any], size: _SmallScale | None) -> Case:
    settings = {key: value for key, value in row.items() if key not in ("sampler", "warmup")}
    draws, seeds = (200, SEEDS) if size is None else (size.draws, SMALL_SEEDS)
    specs = repeated("images", target, row["sampler"], settings, seeds=seeds, draws=draws, warmup=row.get("warmup", 5))
    figures = published.read("pdmp-table2", data).get(name.removesuffix(", Algorithm 2"), {})
    label = name if "batch_size" in row else f"{name}, interpolated, all rows"
    return Case(label, specs, figures)


def _reduced(size: _SmallScale, network: str) -> str:
    other = ", the LeNet-5 of 61,706 weights in place of the paper's of 545,546." if network == "lenet5" else "."
    return (
        f"Reduced: {size.rows} training and {size.test_rows} test rows, one run of {size.draws} draws of each sampler,"
        f" at about equal numbers of gradients{other} ECE from 0 to 1; the printed one is read as percent."
    )


_PAPER = (
    "All training rows, five runs of 200 draws of each sampler. The PDMPs read batches, with the regression bound of"
    " Pakman and others, and with Algorithm 2. ECE from 0 to 1; the printed one is read as percent. Step sizes and"
    " refresh rates are our defaults. ESS is ArviZ's; a straight line has about 1.4 of 200 draws. The authors'"
    " estimator does not go below about 2.7."
)
_WHY = (
    "Draws of the posterior under N(0, 1) predict less well than the MAP when there are few rows; the paper's Boomerang"
    " has a flat prior and a reference. The rows 'Algorithm 2' hold a batch from one event to the next, with velocities"
    " of 0.001 (BPS, sigma-BPS) or gamma 0.001 (Boomerang), and stay near the MAP. At the small scale there are few"
    " training rows and one run."
)
TABLE2 = _table("mnist", "small")

"""Run the PMCnet paper's experiments on images: Tables 9 and 12 and Figure 9, with a substitute for MNIST-C.

Settings that the paper omits are ours: the prior, sigma0, batches, and the settings of the competitors.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from bnnviz.experiments import published
from bnnviz.experiments.experiment import Case, repeated
from bnnviz.experiments.paper import named
from bnnviz.experiments.pmcnet.tables import COMPETITORS, MEANS
from bnnviz.experiments.predictive import PredictiveExperiment
from bnnviz.specs.run import Spec

SEEDS = range(5)
_CHAINS = 20  # proposals, and draws from each
_BATCH = 128
#: The paper's name of each data set, its training rows, and its test rows.
_SETS = {
    "rotated_mnist": ("MNIST-C", 45_000, 10_000),
    "svhn_grey": ("SVHN-G", 54_942, 26_032),
    "cifar10": ("CIFAR10", 45_000, 10_000),
}
_MEASURES = ("auc", "f1", "accuracy")
#: Small-scale training and test rows, and settings in addition to those of `COMPETITORS`.
_SMALL_ROWS = {"rotated_mnist": (500, 500), "svhn_grey": (500, 500), "cifar10": (100, 200)}
_SMALL_ITERATIONS = 3
_SHORT: dict[str, dict[str, Any]] = {
    "ADAM-MLE": {"steps": 400},
    "ADAM-MAP": {"steps": 400},
    "BBP": {"steps": 600, "first_sd": 0.001},
    "SGLD": {"thin": 10, "mode_steps": 400},
    "MCDropout": {"steps": 1000},
    "SAE": {"first_epochs": 40, "epochs": 1},
}
_PRIORS = {"BBP": {"prior_sd": 0.1}}  # as in its paper; N(0, 1) for all others
_LIGHT = {"draws_each": _CHAINS, "sigma0": 0.001, "start": "mode"}


def _target(data: str, small: bool) -> dict[str, Any]:
    rows, test_rows = _SMALL_ROWS[data] if small else _SETS[data][1:]
    return {
        "data": data,
        "network": "resnet20" if data == "cifar10" else "lenet5",
        "train_rows": rows,
        "test_rows": test_rows,
    }


def _trained(method: str, target: dict[str, Any], small: bool) -> tuple[Spec, ...]:
    sampler, settings, draws, warmup = COMPETITORS[method]
    target = target | _PRIORS.get(method, {})
    chosen = {"batch_size": _BATCH, **settings, **(_SHORT[method] if small else {})}
    return repeated("images", target, sampler, chosen, seeds=SEEDS[:1] if small else SEEDS, draws=draws, warmup=warmup)


def _light(target: dict[str, Any], small: bool) -> tuple[Spec, ...]:
    earlier = _CHAINS * ((_SMALL_ITERATIONS if small else 20) - 1)
    chosen = _LIGHT | {"batches": max(1, target["train_rows"] // _BATCH), "mode_steps": 200 if small else 3000}
    runs = {"seeds": SEEDS[:1] if small else SEEDS, "chains": _CHAINS, "draws": _CHAINS, "warmup": earlier}
    return repeated("images", target, "pmcnet_light", chosen, **runs)


def _cases(data: str, small: bool, known: dict[str, published.Values]) -> tuple[Case, ...]:
    target = _target(data, small)
    specs = {name: _trained(name, target, small) for name in COMPETITORS} | {"PMCnet-light": _light(target, small)}
    return tuple(Case(name, found, known.get(name, {})) for name, found in specs.items())


_WHY = (
    "PMCnet-light starts from modes of the posterior with sigma0 0.001; about one draw of the last iteration has all"
    " the weight. BBP has the prior N(0, 0.1^2); at the small scale it starts with standard deviations of 0.001 and"
    " stops early. The printed accuracy of SAE on MNIST-C, 0.9998, contradicts its F1 score."
)
_STAND_INS = {"rotated_mnist": "Rotated MNIST digits replace MNIST-C."}
_MINUTES = {"rotated_mnist": 4, "svhn_grey": 4}  # of the small scale
_REDUCED = (
    "Reduced: {} training and {} test rows, one run of each method, "
    f"{_SMALL_ITERATIONS} iterations of {_CHAINS} proposals and {_CHAINS} draws of each, short training of the others."
)
_PAPER = (
    f"The paper's rows, five runs of each method, 20 iterations of {_CHAINS} proposals and {_CHAINS} draws of each."
)


#: Place in the paper, title and description; measures, table of published values, pictures.
_PLACES: tuple[tuple[str, str, str, tuple[str, ...], str, tuple[str, ...]], ...] = (
    ("Table 9", "all methods", MEANS, _MEASURES, "pmcnet-table9", ()),
    (
        "Table 12",
        "times",
        "The runs of pmcnet-table9. Seconds of a run, and milliseconds to predict a test row by 100 draws. Published:"
        " at full scale on a Tesla V100, and for MNIST-C only.",
        ("seconds", "test_ms"),
        "pmcnet-table12",
        (),
    ),
    (
        "Fig. 9",
        "confusion matrices",
        "The runs of pmcnet-table9; means over 100 draws.",
        ("accuracy",),
        "",
        ("confusion",),
    ),
)


def _part(row: int, data: str, scale: str) -> PredictiveExperiment:
    """Return a table or figure of the paper for a data set and scale."""
    place, what, doc, measures, table, pictures = _PLACES[row]
    small = scale == "small"
    parts = (_REDUCED.format(*_SMALL_ROWS[data]) if small else _PAPER, _STAND_INS.get(data, ""), doc)
    return PredictiveExperiment(
        **named("pmcnet", place, f"{_SETS[data][0]}, {what}, {scale} scale"),
        doc=" ".join(filter(None, parts)),
        measures=measures,
        cases=_cases(data, small, published.read(table, data) if table else {}),
        why=_WHY,
        pictures=pictures,
        taken=("confusion",),  # all rows of `_PLACES` share runs
        minutes=_MINUTES.get(data) if small else None,
        data=data,
        scale=scale,
        parts=tuple(_SETS),
        build=partial(_part, row),
    )


PMCNET_IMAGES = tuple(_part(row, "rotated_mnist", "small") for row in range(len(_PLACES)))

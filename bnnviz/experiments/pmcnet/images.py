"""The PMCnet paper's experiments on images: Tables 9 and 12 and Figure 9, with a stand-in for MNIST-C.

What the paper does not say is ours: the prior, sigma0, batches, and the settings of the competitors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bnnviz.experiments import cache
from bnnviz.experiments.experiment import Case
from bnnviz.experiments.pmcnet.tables import COMPETITORS, SAID, figures
from bnnviz.experiments.predictive import Scored
from bnnviz.experiments.scales import Parted
from bnnviz.specs.run import Spec

SEEDS = range(5)
_CHAINS = 20  # proposals, and draws of each
_BATCH = 128
#: The paper's name of each data set, its training rows, and its test rows.
_SETS = {
    "rotated_mnist": ("MNIST-C", 45_000, 10_000),
    "svhn_grey": ("SVHN-G", 54_942, 26_032),
    "cifar10": ("CIFAR10", 45_000, 10_000),
}
_MEASURES = ("auc", "f1", "accuracy")
PUBLISHED: dict[str, dict[str, dict[str, float]]] = {
    "rotated_mnist": {
        "ADAM-MLE": figures(_MEASURES, 0.9998, 0.9833, 0.9834),
        "ADAM-MAP": figures(_MEASURES, 0.9988, 0.9547, 0.9550),
        "BBP": figures(_MEASURES, 0.9998, 0.9855, 0.9856),
        "SGLD": figures(_MEASURES, 0.9949, 0.9115, 0.9126, 0.0008, 0.0135, 0.0132),
        "MCDropout": figures(_MEASURES, 0.9998, 0.9837, 0.9838, 0.0, 0.0008, 0.0008),
        "SAE": figures(_MEASURES, 0.9998, 0.9824, 0.9998, 0.0, 0.0009, 0.0003),
        "PMCnet-light": figures(_MEASURES, 1.0000, 0.9913, 0.9914, 0.0, 0.0002, 0.0002),
    },
    "svhn_grey": {
        "ADAM-MLE": figures(_MEASURES, 0.9817, 0.8446, 0.8591),
        "ADAM-MAP": figures(_MEASURES, 0.9812, 0.8483, 0.8619),
        "BBP": figures(_MEASURES, 0.9826, 0.8567, 0.8701),
        "SGLD": figures(_MEASURES, 0.9806, 0.8451, 0.8594, 0.0002, 0.0009, 0.0008),
        "MCDropout": figures(_MEASURES, 0.9842, 0.8506, 0.8642, 0.0002, 0.0018, 0.0016),
        "SAE": figures(_MEASURES, 0.9837, 0.8490, 0.8621, 0.0022, 0.0103, 0.0092),
        "PMCnet-light": figures(_MEASURES, 0.9880, 0.8742, 0.8867, 0.0, 0.0003, 0.0002),
    },
    "cifar10": {
        "ADAM-MLE": figures(_MEASURES, 0.9951, 0.9149, 0.9149),
        "ADAM-MAP": figures(_MEASURES, 0.9954, 0.9141, 0.9142),
        "BBP": figures(_MEASURES, 0.9968, 0.9310, 0.9310),
        "SGLD": figures(_MEASURES, 0.9881, 0.8610, 0.8600, 0.0010, 0.0069, 0.0070),
        "MCDropout": figures(_MEASURES, 0.9829, 0.8281, 0.8287, 0.0002, 0.0023, 0.0023),
        "SAE": figures(_MEASURES, 0.9622, 0.7414, 0.7419, 0.0024, 0.0080, 0.0080),
        "PMCnet-light": figures(_MEASURES, 0.9972, 0.9364, 0.9364, 0.0, 0.0002, 0.0002),
    },
}
TIMES: dict[str, dict[str, float]] = {
    "ADAM-MLE": {"seconds": 1760, "test_ms": 2},
    "ADAM-MAP": {"seconds": 1800, "test_ms": 2},
    "BBP": {"seconds": 1035, "test_ms": 2},
    "SGLD": {"seconds": 560, "test_ms": 77},
    "MCDropout": {"seconds": 680, "test_ms": 168},
    "SAE": {"seconds": 2100, "test_ms": 261},
    "PMCnet-light": {"seconds": 1240, "test_ms": 535},
}
#: At the small scale: training and test rows, and settings beside those of `COMPETITORS`.
_SMALL_ROWS = {"rotated_mnist": (500, 500), "svhn_grey": (500, 500), "cifar10": (100, 200)}
_SMALL_ITERATIONS = 3
_SHORT: dict[str, dict[str, Any]] = {
    "ADAM-MLE": {"steps": 400},
    "ADAM-MAP": {"steps": 400},
    "BBP": {"steps": 600, "first_sd": 0.001},
    "SGLD": {"every": 10, "mode_steps": 400},
    "MCDropout": {"steps": 1000},
    "SAE": {"first_epochs": 40, "epochs": 1},
}
_PRIORS = {"BBP": {"prior_sd": 0.1}}  # its paper's; N(0, 1) for all others
_LIGHT = {"draws_each": _CHAINS, "sigma0": 0.001, "start": "mode"}


@dataclass(frozen=True)
class ScoredImages(Parted, Scored):
    """Figures of single draws on images, with a part for each data set.

    All that is drawn of a run is taken at once, so that the table, the figure and the times have the same runs.
    """

    def _place(self, spec: Spec) -> Any:
        return cache.place(spec.checked().to_json(), ["confusion"])

    def result(self, spec: Spec) -> dict[str, Any]:
        """Run a spec of one of its cases to the end, and return what is kept of it."""
        from bnnviz.experiments.predictive_run import result  # with torch

        return result(spec, ("confusion",), ())


def _target(data: str, small: bool) -> dict[str, Any]:
    rows, test_rows = _SMALL_ROWS[data] if small else _SETS[data][1:]
    return {
        "data": data,
        "network": "resnet20" if data == "cifar10" else "lenet5",
        "train_rows": rows,
        "test_rows": test_rows,
    }


def _trained(method: str, target: dict[str, Any], small: bool) -> list[Spec]:
    sampler, settings, draws, warmup = COMPETITORS[method]
    target = target | _PRIORS.get(method, {})
    chosen = {"batch_size": _BATCH, **settings, **(_SHORT[method] if small else {})}
    seeds = SEEDS[:1] if small else SEEDS
    return [Spec("images", target, sampler, chosen, chains=1, draws=draws, warmup=warmup, seed=s) for s in seeds]


def _light(target: dict[str, Any], small: bool) -> list[Spec]:
    iterations = _SMALL_ITERATIONS if small else 20
    chosen = _LIGHT | {"batches": max(1, target["train_rows"] // _BATCH), "mode_steps": 200 if small else 3000}
    return [
        Spec(
            "images",
            target,
            "pmcnet_light",
            chosen,
            chains=_CHAINS,
            draws=_CHAINS,
            warmup=_CHAINS * (iterations - 1),
            seed=seed,
        )
        for seed in (SEEDS[:1] if small else SEEDS)
    ]


def _cases(data: str, small: bool, published: dict[str, dict[str, float]]) -> tuple[Case, ...]:
    target = _target(data, small)
    specs = {name: _trained(name, target, small) for name in COMPETITORS} | {"PMCnet-light": _light(target, small)}
    return tuple(
        Case(name, tuple(found), published.get(name, {}), _NOTES.get(name, "")) for name, found in specs.items()
    )


_NOTES = {
    "BBP": "Prior N(0, 0.1^2). At the small scale it begins with standard deviations of 0.001 and stops early: at the"
    " largest ELBO 500 rows leave nearly every weight its prior, and the network says nothing.",
    "SAE": "The paper's accuracy of it on MNIST-C, 0.9998, contradicts its F1 score.",
    "PMCnet-light": "Starting means are modes of the posterior, and sigma0 0.001. By their weights the draws are worth"
    " as few as the table says: of the last iteration one draw counts, and its figures are that network's.",
}
_STAND_INS = {"rotated_mnist": "Digits of MNIST that were rotated stand in for MNIST-C."}
_MINUTES = {"rotated_mnist": 4, "svhn_grey": 4}  # of the small scale
_REDUCED = (
    "Reduced: {} training and {} test rows, one run of each method, "
    f"{_SMALL_ITERATIONS} iterations of {_CHAINS} proposals and {_CHAINS} draws of each, short training of the others."
)
_PAPER = (
    f"The paper's rows, five runs of each method, 20 iterations of {_CHAINS} proposals and {_CHAINS} draws of each."
)


def _part(
    made: Callable[[str, str], ScoredImages],
    data: str,
    scale: str,
    *,
    name: str,
    title: str,
    doc: str,
    published: dict[str, dict[str, float]],
    **more: Any,
) -> ScoredImages:
    """Return what the paper's table or figure is on a data set at a scale."""
    small, known = scale == "small", _SETS[data][0]
    said = (_REDUCED.format(*_SMALL_ROWS[data]) if small else _PAPER, _STAND_INS.get(data, ""), doc)
    return ScoredImages(
        name=f"pmcnet-{name.lower().replace('. ', '').replace(' ', '')}",
        title=f"{known}, {title}, {scale} scale (PMCnet paper, {name})",
        doc=" ".join(filter(None, said)),
        cases=_cases(data, small, published),
        minutes=_MINUTES.get(data) if small else None,
        data=data,
        scale=scale,
        parts=tuple(_SETS),
        made=made,
        **more,
    )


def _table9(data: str, scale: str) -> ScoredImages:
    of = {"name": "Table 9", "title": "all methods", "doc": SAID, "published": PUBLISHED[data]}
    return _part(_table9, data, scale, **of, measures=_MEASURES)


def _table12(data: str, scale: str) -> ScoredImages:
    doc = (
        "The runs of pmcnet-table9. Seconds of a run, and milliseconds to predict a test row by 100 draws. Published:"
        " at full scale on a Tesla V100, and for MNIST-C only."
    )
    published = TIMES if data == "rotated_mnist" else {}
    of = {"name": "Table 12", "title": "times", "doc": doc, "published": published}
    return _part(_table12, data, scale, **of, measures=("seconds", "test_ms"))


def _fig9(data: str, scale: str) -> ScoredImages:
    doc = "The runs of pmcnet-table9; means over 100 draws."
    of = {"name": "Fig. 9", "title": "confusion matrices", "doc": doc, "published": {}}
    return _part(_fig9, data, scale, **of, measures=("accuracy",), pictures=("confusion",))


PMCNET_IMAGES = tuple(made("rotated_mnist", "small") for made in (_table9, _table12, _fig9))

"""Run a figure on images: predictions for test rows and out of distribution, with its pictures."""

from __future__ import annotations

import math
from typing import Any

from bnnviz import data as datasets
from bnnviz import diagnostics
from bnnviz.engine.evaluation.attack import attack
from bnnviz.engine.evaluation.uncertainty import uncertainty
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.experiments.experiment import ran
from bnnviz.experiments.predictive import PredictiveExperiment
from bnnviz.experiments.predictive_run import outcome
from bnnviz.experiments.uncertainty import UncertaintyExperiment
from bnnviz.files import to_json
from bnnviz.specs.run import Spec

_ATTACKED = 200  # rows
_EPS = (0.0, 0.05, 0.1, 0.2, 0.3)
_BARS = 20  # of a histogram of entropies
_SHOWN = ("trace", "acf")


def result(spec: Spec, experiment: UncertaintyExperiment) -> dict[str, Any]:
    """Run a spec and return the results of its averaged prediction, and the arrays of its pictures."""
    run = ran(spec)
    if run.store.common(run.alive) < 1:
        return outcome(run, error=_message(run) or "There are no draws.")
    ood, unit_base = experiment.ood, math.e if experiment.base is None else experiment.base
    found = uncertainty(run, ood=_available(ood), rows=range(len(run.target.held_out()[1])), base=unit_base)
    attacked = _attacked(run, unit_base)
    figures = _figures(run, found["summary"], attacked)
    pictures = _pictures(run, found, attacked, ood, unit_base)
    return outcome(run, figures, pictures, error=_message(run))


def mixed(spec: Spec, experiment: PredictiveExperiment) -> dict[str, Any]:
    """Run a spec and return how well its chains mixed, and the arrays of its trace."""
    run = ran(spec)
    if run.store.common(run.alive) < 1:
        return outcome(run, error=_message(run) or "There are no draws.")
    summary, predicted = run.summary(), uncertainty(run)["summary"]
    functions = (predicted["function_ess"] or {}).get("median")
    figures = {
        "ess_pc1": summary.get("ess_pc1"),
        "rhat_max": summary.get("rhat_max"),
        "ess_per_million": _per_million(summary.get("ess_pc1"), run),
        "ess_function_median": functions,
        "function_ess_per_million": _per_million(functions, run),
        "accuracy": predicted["accuracy"],
        "nll": predicted["nll"],
    }
    return outcome(run, figures, _shown(run), error=_message(run))


def _message(run: ViewedRun) -> str:
    return str(run.error or " ".join(map(str, run.notes)))


def _per_million(ess: float | None, run: ViewedRun) -> float | None:
    """Return effective draws for a million gradients of one example each."""
    return None if ess is None else 1e6 * ess / run.gradients


def _shown(run: ViewedRun) -> dict[str, dict[str, Any]]:
    """Return the parts of the last frame that are pictures."""
    parts, scene = run.frame(list(_SHOWN)), {"dim": run.target.dim, "names": list(run.target.names()[:2])}
    return {name: to_json(parts[name]) | {"scene": scene} for name in _SHOWN if parts.get(name)}


def _available(ood: str) -> str | None:
    """Return the data set, or None if unavailable, so that results on test rows remain."""
    try:
        datasets.load(ood)
    except BnnvizError:
        return None
    return ood


def _attacked(run: ViewedRun, base: float) -> dict[str, Any]:
    """Attack one draw and evaluate the others, or the same draw if there is only one."""
    alone = run.store.common(run.alive) * int(run.alive.sum()) < 2 or not run.sampler.traits.converges
    judge = "attacker" if alone else "others"
    return attack(run, eps=_EPS, rows=_ATTACKED, judge=judge, examples=0, base=base)


def _figures(run: ViewedRun, predicted: dict[str, Any], attacked: dict[str, Any]) -> dict[str, float | None]:
    ess = predicted["function_ess"] or {}
    detection, outside = (predicted[name] or {} for name in ("detection", "ood"))
    by_eps = dict(zip(attacked["eps"], zip(attacked["accuracy"], attacked["entropy"], strict=True), strict=True))
    summary = run.summary()
    return {
        **{name: predicted[name] for name in ("accuracy", "nll", "brier", "ece")},
        "entropy_test": predicted["test"]["entropy"],
        "entropy_foreign": outside.get("entropy"),
        "auroc": detection.get("auroc"),
        "fpr95": detection.get("fpr95"),
        "accuracy_attacked": by_eps[0.1][0],
        "entropy_attacked": by_eps[0.3][1],
        "ess_pc1": summary.get("ess_pc1"),
        "ess_function_median": ess.get("median"),
        "ess_per_million": _per_million(summary.get("ess_pc1"), run),
        "grad_evals": run.gradients,
    }


def _pictures(
    run: ViewedRun, found: dict[str, Any], attacked: dict[str, Any], ood: str, base: float
) -> dict[str, dict[str, Any]]:
    arrays, classes = found["arrays"], found["summary"]["class_names"]
    top = math.log(len(classes)) / math.log(base)
    unit = "bits" if base == 2 else "nats"
    against = {"label": "change of each pixel (of 1)", "unit": unit, "top": top}
    steps = {key: value for key, value in attacked.items() if key == "eps" or key.startswith(("accuracy", "entropy"))}
    return {
        **({} if arrays["ood"] is None else _entropies(run, found, ood, unit, top)),
        "reliability": {"scene": {}, "entry": arrays["reliability"]},
        "attack": {"scene": against, "entry": steps},
        "attack_entropy": {"scene": against, "entry": steps},
        "digit": {"classes": classes, "entropy": arrays["test"]["entropy"], **arrays["intervals"]},
        **_shown(run),
    }


def _entropies(run: ViewedRun, found: dict[str, Any], ood: str, unit: str, top: float) -> dict[str, dict[str, Any]]:
    """Return the arrays of both plots of the entropies of test rows and of rows out of distribution."""
    inside, outside = f"{run.target.data_set.title}, test", datasets.describe(ood)["title"]
    scene = {"unit": unit, "top": top, "inside": inside, "outside": outside}
    both = {"inside": found["arrays"]["test"]["entropy"], "outside": found["arrays"]["ood"]["entropy"]}
    detection = {"auroc": found["summary"]["detection"]["auroc"]}
    steps = {side: diagnostics.score_ecdf(each)._asdict() for side, each in both.items()}
    bars = {side: diagnostics.score_histogram(each, top, _BARS)._asdict() for side, each in both.items()}
    return {
        "entropy": {"scene": {"kind": "ecdf", **scene}, "entry": steps | detection},
        "entropy_bars": {"scene": {"kind": "histogram", **scene}, "entry": bars | detection},
    }

"""One run of a figure on images: what its draws say of test rows and of others, and the arrays of its pictures."""

from __future__ import annotations

import math
from typing import Any

from bnnviz import data as datasets
from bnnviz import diagnostics
from bnnviz.engine.attack import attack
from bnnviz.engine.run import Run
from bnnviz.engine.uncertainty import uncertainty
from bnnviz.papers.framed_run import plain
from bnnviz.spec import Spec

_SLICE_S = 0.5
_ATTACKED = 200  # rows
_EPS = (0.0, 0.05, 0.1, 0.2, 0.3)
_BARS = 20  # of a histogram of entropies
_SHOWN = ("trace", "acf")


def result(spec: Spec, foreign: str, base: float | None) -> dict[str, Any]:
    """Run a spec and return the figures of its averaged prediction, and the arrays of its pictures.

    Parameters
    ----------
    spec : Spec
        Of a network with classes.
    foreign : str
        The data set whose test rows come from elsewhere.
    base : float or None
        Of the entropies' logarithm; None: e.
    """
    run = Run(spec)
    while not run.finished:
        run.advance(_SLICE_S)
    said = run.error or " ".join(run.notes)
    if run.store.common(run.alive) < 1:
        return {"error": said or "There are no draws.", "figures": {}, "pictures": {}, "seconds": run.seconds}
    told = math.e if base is None else base
    found = uncertainty(run, ood=foreign, rows=range(len(run.target.held_out()[1])), base=told)
    attacked = _attacked(run, told)
    figures = _figures(run, found["summary"], attacked)
    pictures = _pictures(run, found, attacked, foreign, told)
    return {"error": said, "figures": figures, "pictures": pictures, "seconds": run.seconds}


def _attacked(run: Run, base: float) -> dict[str, Any]:
    """Attack one draw and let the others judge; a draw that is alone judges itself."""
    alone = run.store.common(run.alive) * int(run.alive.sum()) < 2 or not run.sampler.converges
    judge = "attacker" if alone else "others"
    return attack(run, eps=_EPS, rows=_ATTACKED, judge=judge, examples=0, base=base)


def _figures(run: Run, said: dict[str, Any], attacked: dict[str, Any]) -> dict[str, float | None]:
    detection, ess = said["detection"], said["function_ess"] or {}
    by_eps = dict(zip(attacked["eps"], zip(attacked["accuracy"], attacked["entropy"], strict=True), strict=True))
    summary = run.summary()
    return {
        **{name: said[name] for name in ("accuracy", "nll", "brier", "ece")},
        "entropy_test": said["test"]["entropy"],
        "entropy_foreign": said["ood"]["entropy"],
        "auroc": detection["auroc"],
        "fpr95": detection["fpr95"],
        "accuracy_attacked": by_eps[0.1][0],
        "entropy_attacked": by_eps[0.3][1],
        "ess_pc1": summary.get("ess_pc1"),
        "ess_function_median": ess.get("median"),
        "ess_per_million": None if not summary.get("ess_pc1") else 1e6 * summary["ess_pc1"] / run.gradients,
        "grad_evals": run.gradients,
    }


def _pictures(
    run: Run, found: dict[str, Any], attacked: dict[str, Any], foreign: str, base: float
) -> dict[str, dict[str, Any]]:
    arrays, classes = found["arrays"], found["summary"]["class_names"]
    top, unit = math.log(len(classes)) / math.log(base), "bits" if base == 2 else "nats"
    images = run.target.data_set
    sides = {"inside": f"{images.title}, test", "outside": datasets.describe(foreign)["title"]}
    entropies = {"unit": unit, "top": top, **sides}
    detection = {"auroc": found["summary"]["detection"]["auroc"]}
    both = arrays["test"]["entropy"], arrays["ood"]["entropy"]
    steps_of = dict(zip(("inside", "outside"), (diagnostics.score_ecdf(each)._asdict() for each in both), strict=True))
    bars = (diagnostics.score_histogram(each, top, _BARS)._asdict() for each in both)
    bars_of = dict(zip(("inside", "outside"), bars, strict=True))
    against = {"label": "change of each pixel (of 1)", "unit": unit, "top": top}
    steps = {key: value for key, value in attacked.items() if key == "eps" or key.startswith(("accuracy", "entropy"))}
    shown, scene = run.frame(list(_SHOWN)), {"dim": run.target.dim, "names": list(run.target.names()[:2])}
    return {
        "entropy": {"scene": {"kind": "ecdf", **entropies}, "lane": steps_of | detection},
        "entropy_bars": {"scene": {"kind": "histogram", **entropies}, "lane": bars_of | detection},
        "reliability": {"scene": {}, "lane": arrays["reliability"]},
        "attack": {"scene": against, "lane": steps},
        "attack_entropy": {"scene": against, "lane": steps},
        "digit": {"classes": classes, "entropy": arrays["test"]["entropy"], **arrays["intervals"]},
        **{name: plain(shown[name]) | {"scene": scene} for name in _SHOWN if shown.get(name)},
    }

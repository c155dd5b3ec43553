"""Run one spec of an experiment over draws: its results, and the arrays of its pictures."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from bnnviz import diagnostics
from bnnviz.engine.evaluation.metrics import RESAMPLES, chosen, measure, predict
from bnnviz.engine.evaluation.predictions import observed_rows
from bnnviz.engine.run.run import Run
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.experiments.experiment import ran
from bnnviz.experiments.predictive import PredictiveExperiment
from bnnviz.specs.run import Spec

Names = tuple[str, ...]
Logs = np.ndarray | None  # logarithms of weights

_ROWS = 4  # whose probabilities are drawn


def result(spec: Spec, experiment: PredictiveExperiment) -> dict[str, Any]:
    """Run a spec and return its results, and the arrays of its pictures."""
    pictures = experiment.taken or experiment.pictures
    run = ran(spec)
    if run.error is not None:
        return outcome(run)
    draws, logs = _last(run, "history" in pictures)
    found = measure(run.target, draws, logs)
    figures = {name: one["mean"] for name, one in found["per_draw"].items()}
    return outcome(
        run,
        figures | {"seconds": run.seconds, "test_ms": _test_ms(run, draws)},
        {name: PICTURES[name](experiment.followed, run, draws, logs, found) for name in pictures},
        sds={name: one["sd"] for name, one in found["per_draw"].items()},
        **{name: found[name] for name in ("averaged", "weights_ess", "unknown")},
    )


def outcome(
    run: ViewedRun, figures: dict[str, Any] | None = None, pictures: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return what an experiment stores of a run; without figures only its error."""
    found = {"error": run.error and str(run.error), "seconds": run.seconds, "sds": {}, "averaged": {}}
    return found | {"figures": figures or {}, "pictures": pictures or {}} | more


def _last(run: Run, whole: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Return draws (chains, draws, dim) and their log weights; those of the last iteration of a history."""
    draws, logs = run.draws, run.log_weights
    if not whole:
        return draws, logs
    each = _each(run)
    return draws[:, -each:], None if logs is None else logs[:, -each:]


def _each(run: Run) -> int:
    """Return the number of draws per chain and iteration."""
    return getattr(run.sampler, "draws_each", run.draws.shape[1])


def _test_ms(run: Run, draws: np.ndarray) -> float:
    """Return the time in milliseconds to predict a test row by a hundred draws."""
    theta = _flat(run, draws)[:RESAMPLES]
    begun = time.perf_counter()
    predict(run.target, theta)
    return 1000 * (time.perf_counter() - begun) / len(observed_rows(run.target))


def _flat(run: Run, draws: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(draws, dtype=run.target.dtype, device=run.target.device).reshape(-1, draws.shape[-1])


def _resampled(run: Run, draws: np.ndarray, logs: np.ndarray | None) -> Any:
    """Return the predictions of a hundred draws, resampled by weight."""
    theta = _flat(run, draws)
    return predict(run.target, theta[chosen(len(theta), None if logs is None else logs.ravel(), RESAMPLES, 0)])


def _roc(followed: Names, run: Run, draws: np.ndarray, logs: Logs, found: dict) -> dict[str, Any] | None:
    observed = observed_rows(run.target)
    positive = run.target.data_set.positive
    probabilities = _resampled(run, draws, logs)[..., positive]
    return diagnostics.roc_envelopes(probabilities, observed == positive)._asdict()


def _history(followed: Names, run: Run, draws: np.ndarray, logs: Logs, found: dict) -> dict[str, Any]:
    """Return the followed metrics of each iteration, with their standard deviations over draws."""
    each, all_draws, all_logs = _each(run), run.draws, run.log_weights
    count = all_draws.shape[1] // each
    figures: dict[str, dict[str, list]] = {name: {"mean": [], "sd": []} for name in followed}
    for t in range(count):
        part = slice(t * each, (t + 1) * each)
        one = measure(run.target, all_draws[:, part], None if all_logs is None else all_logs[:, part])["per_draw"]
        for name, lists in figures.items():
            for kind, values in lists.items():
                values.append(np.nan if one[name][kind] is None else one[name][kind])
    return {"iteration": list(range(1, count + 1)), **figures}


def _confusion(followed: Names, run: Run, draws: Any, logs: Any, found: dict) -> dict[str, Any]:
    return {"matrix": found["confusion_per_draw"], "classes": found["class_names"]}


def _probabilities(followed: Names, run: Run, draws: np.ndarray, logs: Logs, found: dict) -> list[dict]:
    """Return the probabilities of the most and least certain rows, and of two between."""
    probabilities = _resampled(run, draws, logs)[..., 1]
    order = np.argsort(np.abs(probabilities.mean(0) - 0.5))[::-1]
    rows = order[np.linspace(0, len(order) - 1, _ROWS).astype(int)]
    names, observed = found["class_names"], observed_rows(run.target).astype(int)
    return [
        {
            "label": f"probability of {names[1]}, test row {row + 1}",
            "observed": f"observed {names[observed[row]]}",
            **diagnostics.probability_spread(probabilities[:, row])._asdict(),
        }
        for row in rows.tolist()
    ]


def _errors2(followed: Names, run: Run, draws: np.ndarray, logs: Logs, found: dict) -> dict | None:
    mean = _resampled(run, draws, logs).means.mean(0).ravel()
    spread = diagnostics.error_spread((mean - observed_rows(run.target)) ** 2)
    return None if spread is None else spread._asdict()


PICTURES = {"roc": _roc, "history": _history, "confusion": _confusion, "chances": _probabilities, "errors2": _errors2}

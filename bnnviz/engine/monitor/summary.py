"""Summarise a run: settings, costs, and estimates with their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from bnnviz import diagnostics, optional
from bnnviz.data import DataSet
from bnnviz.diagnostics.predictive.metrics import without_learn
from bnnviz.engine.evaluation.baselines import compared
from bnnviz.engine.evaluation.metrics import measure
from bnnviz.engine.evaluation.predictions import Predictor
from bnnviz.engine.monitor import remedies
from bnnviz.engine.monitor.approximation import measured_approximation, measured_shift, of_approximation
from bnnviz.engine.monitor.mixing import measured_mixing
from bnnviz.engine.monitor.move_warnings import of_gradient, of_moves
from bnnviz.engine.monitor.run_warnings import FEW, of_run, warnings
from bnnviz.engine.monitor.variances import SteinEffort, measured_variance_inflation
from bnnviz.engine.monitor.verdict import verdict
from bnnviz.engine.protocol import AnyRun
from bnnviz.messages import Message
from bnnviz.targets import BNN

_MOST_MOMENTS = 50
_MOST_COLUMNS = 100
_MOST_COPIED = 10_000_000  # numbers
# Keys of `_convergence`, for any run and for a network.
_CONVERGENCE = ("ess_min", "ess_tail_min", "rhat_max", "ess_pc1", "ess_energy", "ess_per_s", "ess_per_million_grads")
_OF_FUNCTIONS = ("ess_function_min", "ess_function_median", "rhat_function_max", "rhat_canonical_max")
_EFFORT = SteinEffort(work=3e9, draws=20_000)


#: Results of ended runs: a recording and a screen show the same.
_ended: WeakKeyDictionary[AnyRun, tuple[int, dict[str, Any]]] = WeakKeyDictionary()


def summarise(run: AnyRun) -> dict[str, Any]:
    """Return the run's settings, costs, and estimates with their errors, as plain JSON except for messages."""
    if run.phase != "done":
        return _summarised(run)
    if run not in _ended or _ended[run][0] != run.steps:  # it may have been extended
        _ended[run] = run.steps, _summarised(run)
    return dict(_ended[run][1])


def _summarised(run: AnyRun) -> dict[str, Any]:
    draws = run.draws
    found = {
        "target": run.spec.target,
        "target_settings": run.spec.target_settings,
        "sampler": run.spec.sampler,
        "settings": run.spec.settings,
        "dim": run.target.dim,
        **({"frozen": run.target.frozen} if isinstance(run.target, BNN) and run.target.frozen else {}),
        "chains": draws.shape[0],
        "draws": draws.shape[1],
        "seed": run.spec.seed,
        "device": str(run.device),
        "kernel": run.kernel,
        "seconds": run.seconds,
        "cpu_seconds": run.cpu_seconds,
        "device_seconds": run.device_seconds,
        "grad_evals": run.gradients,
        "steps": run.steps,
        **run.sampler_stats.summary(),
        "spacing": _number(getattr(run.draw_collector, "spacing", float("nan"))),
        "phase": run.phase,
        "notes": run.notes,
        **(_importance(run) if run.sampler.traits.weighted else _convergence(run, draws)),
        **_estimates(run, draws),
        **measured_approximation(run),
        "widening": _variance_inflation(run),
    }
    found["shift"] = _shift(run, found)
    messages = [
        *of_run(run),
        *of_gradient(run),
        *warnings(run, found),
        *of_approximation(run, found),
        *of_moves(run),
        *_missing(run),
    ]
    held_out = isinstance(run.target, BNN) and run.target.data_set is not None
    judged = verdict(found, held_out, run.sampler.traits.converges, remedies.more(run))
    return found | ({} if judged is None else {"verdict": judged}) | {"warnings": messages}


def _missing(run: AnyRun) -> Iterator[Message]:
    """Return which metrics need a missing package, and how to install it."""
    if not optional.has("arviz_stats"):
        figures = "Pareto k-hat is" if run.sampler.traits.weighted else "ESS and R-hat are"
        yield Message("missing_package", figures=figures, remedy=optional.install("arviz_stats"))
    if isinstance(run.target, BNN) and run.target.likelihood.task == "classification" and not optional.has("sklearn"):
        yield Message("missing_scores", text=without_learn())


def _importance(run: AnyRun) -> dict[str, float | None]:
    """Return the metrics of the importance weights; R-hat and ``ess_min`` do not apply, as chains are proposals."""
    logs = run.log_weights
    weight_ess = diagnostics.weight_ess(logs)
    log_z, error = diagnostics.log_evidence(logs)
    return {
        "ess_min": None,
        "rhat_max": None,
        "weight_ess": weight_ess,
        "weight_ess_share": weight_ess / max(logs.size, 1),
        "pareto_k": _number(diagnostics.pareto_k(logs)),
        "log_z": _number(log_z),
        "log_z_se": _number(error),
        "weight_ess_per_s": _number(weight_ess / max(run.seconds, 1e-9)),
        "weight_ess_per_million_grads": _number(1e6 * weight_ess / max(run.gradients, 1)),
    }


def _variance_inflation(run: AnyRun) -> dict[str, Any] | None:
    """Return the relative excess of the variances with its error; of each coordinate in up to 8 dimensions."""
    weighted = (torch.as_tensor(run.draws), run.log_weights) if run.sampler.traits.weighted else ()
    found = measured_variance_inflation(run, _EFFORT, *weighted)
    if found is None:
        return None
    each = {} if found.each is None else {"each": found.each.tolist(), "each_se": found.each_error.tolist()}
    return {"share": found.share, "se": found.error} | each


def _shift(run: AnyRun, found: dict[str, Any]) -> dict[str, Any] | None:
    """Return the moment that differs under wider proposals, for samplers whose draws may not follow the density."""
    weighted = run.sampler.traits.weighted
    if "mean" not in found or not (weighted or run.sampler.traits.functional):
        return None
    draws = run.draws
    if found.get("weight_ess", draws.shape[0] * draws.shape[1]) < FEW:
        return None
    logs = run.log_weights if weighted else np.zeros(draws.shape[:2])
    error = found["variance_se"] if weighted else np.diag(np.array(found["cov_se"]))
    moments = (found["mean"], found["mean_se"], found["cov"], error)
    shift = measured_shift(run, draws, logs, diagnostics.Weighted(*map(np.asarray, moments)))
    return None if shift is None else shift._asdict()


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _convergence(run: AnyRun, draws: np.ndarray) -> dict[str, float | None]:
    """Return effective sample sizes and R-hat, with the search for a start and the warm-up among the costs."""
    network = isinstance(run.target, BNN)
    if run.sampler.traits.one_point:
        return dict.fromkeys(_CONVERGENCE + (_OF_FUNCTIONS if network else ()))
    dim = draws.shape[2]
    columns = np.unique(np.linspace(0, dim - 1, min(dim, _MOST_COLUMNS)).astype(int))
    each = [draws[:, :, i].astype(float) for i in columns]
    least = _worst(min, map(diagnostics.ess, each))
    mixing = measured_mixing(run, Predictor(run.target) if network else None)
    of_functions = (mixing.least, mixing.median, mixing.rhat, mixing.canonical_rhat)
    functions = dict(zip(_OF_FUNCTIONS, of_functions, strict=True))
    return {
        "ess_min": least,
        "ess_tail_min": _worst(min, (diagnostics.ess(values, "tail") for values in each)),
        "rhat_max": _worst(max, map(diagnostics.rhat, each)),
        "ess_pc1": _ess_first_component(draws),
        "ess_energy": _number(mixing.energy),
        **({name: _number(figure) for name, figure in functions.items()} if network else {}),
        "ess_per_s": None if least is None else _number(least / max(run.seconds, 1e-9)),
        "ess_per_million_grads": None if least is None else _number(1e6 * least / max(run.gradients, 1)),
    }


def _worst(worst: Callable[[list[float]], float], figures: Iterable[float]) -> float | None:
    """Return the worst of the known metrics, or None."""
    known = [figure for figure in figures if np.isfinite(figure)]
    return float(worst(known)) if known else None


def _estimates(run: AnyRun, draws: np.ndarray) -> dict[str, Any]:
    if draws.shape[1] == 0:
        return {}
    found, weighted = {}, run.sampler.traits.weighted
    if weighted and not np.isfinite(run.log_weights).any():
        return {}
    if draws.shape[2] <= _MOST_MOMENTS:
        rows = draws.astype(float)
        of_weighted = diagnostics.weighted_moments
        moments = of_weighted(rows, run.log_weights) if weighted else diagnostics.moments_with_errors(rows)
        found |= {name: getattr(moments, name).tolist() for name in moments._fields}
    if draws.shape[2] <= _MOST_MOMENTS and not weighted:
        weights = run.event_weights()
        if weights is not None:  # that correct the bias of draws at events
            rows, weights = rows.reshape(-1, rows.shape[2]), weights.ravel()
            found["weighted_mean"] = np.average(rows, axis=0, weights=weights).tolist()
            cov = np.cov(rows.T, aweights=weights, bias=True).reshape(rows.shape[1], -1)
            found["weighted_cov"] = cov.tolist()
        if (path := run.path_moments()) is not None:
            names = ("mean", "mean_se", "variance", "variance_se")
            found |= {f"path_{name}": getattr(path, name).tolist() for name in names}
    if isinstance(run.target, BNN):
        metrics = measure(run)
        scores = metrics.pop("row_scores")  # as many as rows
        if isinstance(run.target.data_set, DataSet):
            found |= compared(scores, run.target.data_set)
        names = {"classification": ("accuracy", "ece", "nll"), "regression": ("rmse", "nll")}
        found |= {name: metrics["averaged"][name] for name in names.get(run.target.likelihood.task, ("nll",))}
        found["metrics"] = metrics
    return found


def _ess_first_component(draws: np.ndarray) -> float | None:
    if draws.shape[1] < 4:
        return None
    pooled = draws.reshape(-1, draws.shape[2])
    thinned = pooled[:: max(1, len(pooled) // 2000)]
    # Copies of large networks do not fit into memory.
    thinned = thinned if thinned.size > _MOST_COPIED else thinned.astype(float)
    axis = diagnostics.principal_axes(thinned, 1).axes[:, 0]
    # An ESS does not depend on the centre.
    return _number(diagnostics.ess((draws @ axis.astype(thinned.dtype)).astype(float)))

"""What a run says of itself at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.measures import measured_widening
from bnnviz.engine.prediction import scores
from bnnviz.targets import BNN

if TYPE_CHECKING:
    from bnnviz.engine.run import Run

_MOST_MOMENTS = 50
_MOST_COLUMNS = 100
_STEIN_WORK, _STEIN_DRAWS = 3e9, 20_000  # multiply-adds, and draws, at most


def summarise(run: Run) -> dict[str, Any]:
    """Return the run's settings, costs, and estimates with their errors, as plain JSON."""
    draws = run.draws.astype(np.float64)
    return {
        "target": run.spec.target,
        "target_settings": run.spec.target_settings,
        "sampler": run.spec.sampler,
        "settings": run.spec.settings,
        "dim": run.target.dim,
        "chains": draws.shape[0],
        "draws": draws.shape[1],
        "seed": run.spec.seed,
        "device": str(run.device),
        "seconds": run.seconds,
        "cpu_seconds": run.cpu_seconds,
        "grad_evals": run.gradients,
        "steps": run.steps,
        **run.tally.summary(),
        "spacing": _number(getattr(run.emitter, "spacing", float("nan"))),
        "phase": run.phase,
        "notes": run.notes,
        **_convergence(draws),
        **_estimates(run, draws),
        "widening": _widening(run),
    }


def _widening(run: Run) -> dict[str, Any] | None:
    """Return by what share the variances are too large, with its error; of each coordinate in up to 8 dimensions."""
    found = measured_widening(run, _STEIN_WORK, _STEIN_DRAWS)
    if found is None:
        return None
    each = {} if found.each is None else {"each": found.each.tolist(), "each_se": found.each_error.tolist()}
    return {"share": found.share, "se": found.error} | each


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _convergence(draws: np.ndarray) -> dict[str, float | None]:
    """Return the worst ESS and R-hat, over at most 100 evenly spaced coordinates."""
    dim = draws.shape[2]
    columns = np.unique(np.linspace(0, dim - 1, min(dim, _MOST_COLUMNS)).astype(int))
    if draws.shape[1] < 4:
        return {"ess_min": None, "rhat_max": None}
    ess = diagnostics.ess_each(draws[:, :, columns])
    rhat = np.array([diagnostics.rhat(draws[:, :, i]) for i in columns])
    return {
        "ess_min": _number(np.nanmin(ess)) if np.isfinite(ess).any() else None,
        "rhat_max": _number(np.nanmax(rhat)) if np.isfinite(rhat).any() else None,
    }


def _estimates(run: Run, draws: np.ndarray) -> dict[str, Any]:
    if draws.shape[1] == 0:
        return {}
    found: dict[str, Any] = {}
    if draws.shape[2] <= _MOST_MOMENTS:
        moments = diagnostics.moments_with_errors(draws)
        found |= {name: getattr(moments, name).tolist() for name in moments._fields}
        found |= _reweighted(run, draws) | _along_path(run)
    if isinstance(run.target, BNN):
        found |= scores(run.target, run.store.view(run.alive))
        found["ess_pc1"] = _ess_first_component(draws)
    return found


def _reweighted(run: Run, draws: np.ndarray) -> dict[str, Any]:
    """Return mean and covariance of draws at events with the weights that undo their bias."""
    weights = run.event_weights()
    if weights is None:
        return {}
    rows, weights = draws.reshape(-1, draws.shape[2]), weights.ravel()
    return {
        "weighted_mean": np.average(rows, axis=0, weights=weights).tolist(),
        "weighted_cov": np.cov(rows.T, aweights=weights, bias=True).reshape(draws.shape[2], -1).tolist(),
    }


def _along_path(run: Run) -> dict[str, Any]:
    """Return mean and variance from the integrals along the path."""
    found = run.path_moments()
    if found is None:
        return {}
    return {f"path_{name}": getattr(found, name).tolist() for name in ("mean", "mean_se", "variance", "variance_se")}


def _ess_first_component(draws: np.ndarray) -> float | None:
    if draws.shape[1] < 4:
        return None
    pooled = draws.reshape(-1, draws.shape[2])
    thinned = pooled[:: max(1, len(pooled) // 2000)]
    axes = diagnostics.principal_axes(thinned, 1)
    return _number(diagnostics.ess((draws - axes.centre) @ axes.axes[:, 0]))

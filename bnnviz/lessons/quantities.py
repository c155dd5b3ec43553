"""Measure the quantities that lessons state, at a frame of a run.

A quantity is named ``FUNCTION`` or ``FUNCTION.ARGUMENT``: ``variance.1`` is the variance of the first coordinate,
``stat.acceptance`` a statistic of the sampler, ``envelope.violation_share`` a figure of that part of a frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bnnviz import diagnostics

_FEWEST = 4  # draws of a chain that moments are taken of

Quantity = Callable[[Any, Mapping[str, Any], str], float]


def _variance(run: Any, frame: Mapping[str, Any], column: str) -> float:
    """Return variance of a coordinate, or the mean of all variances."""
    draws = run.draws
    if draws.shape[1] < _FEWEST:
        return math.nan
    if run.log_weights is not None:
        variances = np.diag(diagnostics.weighted_moments(draws, run.log_weights).cov)
    else:
        variances = draws.reshape(-1, draws.shape[2]).astype(float).var(axis=0)
    return float(variances[int(column) - 1] if column else variances.mean())


def _rhat(run: Any, frame: Mapping[str, Any], column: str) -> float:
    """Return R-hat of a coordinate, or the largest one."""
    draws = run.draws
    if draws.shape[1] < _FEWEST:
        return math.nan
    columns = [int(column) - 1] if column else range(draws.shape[2])
    return max(diagnostics.rhat(draws[:, :, each].astype(float)) for each in columns)


def _ess(run: Any, frame: Mapping[str, Any], unit: str) -> float:
    """Return the ESS of the first coordinate, by draw (``share``) or 1,000 gradients (``cost``), or the smallest."""
    draws = run.draws
    if draws.shape[1] < _FEWEST:
        return math.nan
    columns = range(draws.shape[2]) if unit == "smallest" else [0]
    found = min(diagnostics.ess(draws[:, :, each].astype(float)) for each in columns)
    cost = run.gradients / 1000
    return found / {"": 1, "share": draws.shape[0] * draws.shape[1], "cost": cost, "smallest": cost}[unit]


def _stein(run: Any, frame: Mapping[str, Any], unused: str) -> float:
    """Return variances by the true ones, from Stein's identity."""
    found = run.summary()["widening"]
    return math.nan if found is None else 1 + found["share"]


def _summary(run: Any, frame: Mapping[str, Any], name: str) -> float:
    """Return a figure of the run's summary."""
    found = run.summary().get(name)
    return math.nan if found is None else float(found)


def _stat(run: Any, frame: Mapping[str, Any], name: str) -> float:
    """Return a statistic of the sampler."""
    found = run.sampler_stats.summary().get(name)
    return math.nan if found is None else float(found)


def _envelope(run: Any, frame: Mapping[str, Any], name: str) -> float:
    """Return a figure of the envelope; of a list, its last entry."""
    found = np.ravel(frame.get("envelope", {}).get(name, ()))
    return float(found[-1]) if found.size else math.nan


def _accepted(run: Any, frame: Mapping[str, Any], unused: str) -> float:
    """Return the rate at the last proposal by the envelope: its probability of acceptance."""
    part = frame.get("envelope")
    if part is None or not len(part["proposal_rate"]):
        return math.nan
    return float(part["proposal_rate"][-1] / part["proposal_height"][-1])


def _events(run: Any, frame: Mapping[str, Any], kind: str) -> float:
    """Return the number of events; ``refreshes`` or ``bounces`` as a share of all events."""
    found = run.sampler_stats.summary()
    return float(found["events"]) if not kind else found[kind] / max(found["events"], 1)


def _band(run: Any, frame: Mapping[str, Any], place: str) -> float:
    """Return the width of the 95 % band of a network's function at an input."""
    part = frame.get("prediction")
    if part is None or not part["draws"]:
        return math.nan
    return float(np.interp(float(place), part["x"], part["hi95"] - part["lo95"], left=math.nan, right=math.nan))


def _weight_ess(run: Any, frame: Mapping[str, Any], unused: str) -> float:
    """Return the effective sample size of weights, as a share of the draws."""
    logs = run.log_weights
    return math.nan if logs is None or not logs.size else diagnostics.weight_ess(logs) / logs.size


def _crossings(run: Any, frame: Mapping[str, Any], unused: str) -> float:
    """Return how often the first coordinate changes its sign, in 100 draws of a chain."""
    signs = np.sign(run.draws[:, :, 0])
    return 100 * float((signs[:, 1:] != signs[:, :-1]).mean()) if signs.shape[1] > _FEWEST else math.nan


def _radius(run: Any, frame: Mapping[str, Any], unused: str) -> float:
    """Return the mean distance of the draws from the origin."""
    draws = run.draws
    return float(np.linalg.norm(draws.astype(float), axis=2).mean()) if draws.shape[1] else math.nan


def _steps(run: Any, frame: Mapping[str, Any], unused: str) -> float:
    """Return the number of steps."""
    return float(run.steps)


QUANTITIES: dict[str, Quantity] = {
    "variance": _variance,
    "rhat": _rhat,
    "ess": _ess,
    "stein": _stein,
    "summary": _summary,
    "stat": _stat,
    "envelope": _envelope,
    "accepted": _accepted,
    "events": _events,
    "band": _band,
    "weight_ess": _weight_ess,
    "crossings": _crossings,
    "radius": _radius,
    "steps": _steps,
}


def measure(name: str, run: Any, frame: Mapping[str, Any]) -> float:
    """Return a quantity of a run at a frame; nan before it is known."""
    function, _, argument = name.partition(".")
    return QUANTITIES[function](run, frame, argument)

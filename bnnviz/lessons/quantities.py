"""Measure the quantities that lessons state, at a frame of a run.

A quantity is named ``NAME`` or ``NAME.ARGUMENT``. nan is one that is not known yet.

- ``variance``, ``rhat``: of a coordinate (``variance.1``), or the mean variance and the largest R-hat of all.
- ``ess``: of the first coordinate, by draw (``ess.share``), by 1,000 gradients (``ess.cost``), or ``ess.smallest``.
- ``stein``: variances by the true ones, from Stein's identity.
- ``summary``, ``stat``: a figure of the run's summary, a statistic of the sampler (``stat.acceptance``).
- ``events``: their number, or the share of ``events.refreshes`` or ``events.bounces``.
- ``envelope``: a figure of that part of a frame (``envelope.violation_share``); of a list, its last entry.
- ``accepted``: the rate at the last proposal by the envelope, its probability of acceptance.
- ``band``: the width of the 95% band of a network's function at an input (``band.0.5``).
- ``weight_ess``: the effective sample size of weights, as a share of the draws.
- ``crossings``: how often the first coordinate changes its sign, in 100 draws of a chain.
- ``radius``: the mean distance of the draws from the origin.
- ``steps``: their number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bnnviz import diagnostics

_FEWEST = 4  # draws of a chain that moments are taken of
_OF_MOMENTS = ("variance", "rhat", "ess")


def measure(quantity: str, run: Any, frame: Mapping[str, Any]) -> float:
    """Return a quantity of a run at a frame; nan before it is known."""
    name, _, argument = quantity.partition(".")
    draws, logs = run.draws.astype(float), run.log_weights
    envelope, found = frame.get("envelope", {}), None
    if name in _OF_MOMENTS and draws.shape[1] < _FEWEST:
        return math.nan
    match name:
        case "variance":
            if logs is None:
                variances = draws.reshape(-1, draws.shape[2]).var(axis=0)
            else:
                variances = np.diag(diagnostics.weighted_moments(run.draws, logs).cov)
            found = variances[int(argument) - 1] if argument else variances.mean()
        case "rhat":
            columns = [int(argument) - 1] if argument else range(draws.shape[2])
            found = max(diagnostics.rhat(draws[:, :, column]) for column in columns)
        case "ess":
            columns = range(draws.shape[2]) if argument == "smallest" else [0]
            per = {"share": draws.shape[0] * draws.shape[1], "cost": run.gradients / 1000}.get(argument, 1)
            found = min(diagnostics.ess(draws[:, :, column]) for column in columns) / per
        case "stein":
            widening = run.summary()["widening"]
            found = widening and 1 + widening["share"]
        case "summary":
            found = run.summary().get(argument)
        case "stat":
            found = run.sampler_stats.summary().get(argument)
        case "events":
            stats = run.sampler_stats.summary()
            found = stats[argument] / max(stats["events"], 1) if argument else stats["events"]
        case "envelope":
            values = np.ravel(envelope.get(argument, ()))
            found = values[-1] if values.size else None
        case "accepted":
            if len(envelope.get("proposal_rate", ())):
                found = envelope["proposal_rate"][-1] / envelope["proposal_height"][-1]
        case "band":
            part = frame.get("prediction")
            if part is not None and part["draws"]:
                width = part["hi95"] - part["lo95"]
                found = np.interp(float(argument), part["x"], width, left=math.nan, right=math.nan)
        case "weight_ess":
            found = None if logs is None or not logs.size else diagnostics.weight_ess(logs) / logs.size
        case "crossings":
            signs = np.sign(draws[:, :, 0])
            found = 100 * (signs[:, 1:] != signs[:, :-1]).mean() if signs.shape[1] > _FEWEST else None
        case "radius":
            found = np.linalg.norm(draws, axis=2).mean() if draws.shape[1] else None
        case "steps":
            found = run.steps
        case _:
            raise KeyError(name)
    return math.nan if found is None else float(found)

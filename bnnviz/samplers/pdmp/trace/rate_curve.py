r"""Draw the rate along a segment from its evaluations.

Between two evaluations the curve is the cubic Hermite polynomial through their values f and slopes d: over a piece of
length w, with u from 0 to 1,

$$f(u) = (1-u)^2 (1+2u) f_0 + u^2 (3-2u) f_1 + w \bigl(u (1-u)^2 d_0 - u^2 (1-u) d_1\bigr).$$
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import isnan

import numpy as np

from bnnviz.samplers.pdmp.trace.segment import Knot

RATE_POINTS = 48


def hermite_curve(knots: list[Knot]) -> tuple[np.ndarray, np.ndarray]:
    """Return times and rates of the curve through known rates and slopes, with equally many points in each piece."""
    t, f, d = _in_order(knots)
    pieces = range(len(t) - 1)
    if not pieces:
        return np.array(t), np.array(f)
    time, cubics = _hermite(-(-RATE_POINTS // len(pieces)))
    # Lists, since there are few knots: each NumPy call costs as much as a piece.
    spans = np.array([(t[k], t[k + 1] - t[k]) for k in pieces])
    ends = np.array([(f[k], f[k + 1], (t[k + 1] - t[k]) * d[k], (t[k + 1] - t[k]) * d[k + 1]) for k in pieces])
    return (spans @ time).ravel(), (ends @ cubics).ravel()


@cache
def _hermite(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the basis of times (2, points + 1) from start and length, and of rates (4, ...) from values and slopes."""
    u = np.linspace(0, 1, points + 1)
    w = 1 - u
    cubics = np.stack([w * w * (1 + 2 * u), u * u * (3 - 2 * u), u * w * w, -u * u * w])
    return np.stack([np.ones_like(u), u]), cubics


def _in_order(knots: list[Knot]) -> tuple[list[float], list[float], list[float]]:
    """Return times, rates and slopes in order, without duplicates, and with estimates of unknown slopes."""
    ordered = sorted(knots)
    least = 1e-12 * (1 + ordered[-1][0])
    kept = ordered[:1] + [b for a, b in pairwise(ordered) if b[0] - a[0] > least]
    t, f, d = (list(column) for column in zip(*kept, strict=True))
    if len(t) > 2 and isnan(d[0]) and not isnan(d[1] + d[2]):
        d[0] = _first_slope(t, f, d[1])
    if len(t) > 1 and any(isnan(slope) for slope in d):
        d = [g if isnan(slope) else slope for slope, g in zip(d, np.gradient(f, t).tolist(), strict=True)]
    return t, f, d


def _first_slope(t: list[float], f: list[float], slope: float) -> float:
    """Return the slope at t0, unknown after a bounce, of the cubic through f0, f1, f2 with the slope at t1."""
    # p = f1 + slope (t - t1) + q (t - t1)^2, q linear.
    q0, q2 = ((f[i] - f[1] - slope * (t[i] - t[1])) / (t[i] - t[1]) ** 2 for i in (0, 2))
    step = t[0] - t[1]
    return slope + 2 * step * q0 + step**2 * (q2 - q0) / (t[2] - t[0])

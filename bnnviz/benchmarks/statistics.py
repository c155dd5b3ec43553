"""Compute small statistics of what was measured over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import bootstrap


def quantile(values: Sequence[float], q: float) -> float:
    """Return a quantile; NaN of nothing."""
    return float(np.quantile(values, q)) if len(values) else float("nan")


def quarters(moments: Sequence[float], values: Sequence[float], begin: float, end: float) -> list[np.ndarray]:
    """Divide values by their moments into the four quarters of a stretch of time.

    Parameters
    ----------
    moments : sequence of float
        When each value was measured.
    values : sequence of float
        The values.
    begin, end : float
        The stretch; what lies outside is left out.

    Returns
    -------
    list of ndarray
        Four, of which some may be empty.
    """
    at, held = np.asarray(moments, dtype=float), np.asarray(values, dtype=float)
    edges = np.linspace(begin, end, 5)
    return [held[(at >= low) & (at < high)] for low, high in zip(edges[:-1], edges[1:], strict=True)]


def growth(parts: Sequence[Sequence[float]], q: float) -> float:
    """Return a quantile of the last part over that of the first; NaN if either is empty."""
    first, last = quantile(parts[0], q), quantile(parts[-1], q)
    return last / first if first else float("nan")


def standard_error_of_median(values: Sequence[float]) -> float:
    """Return the bootstrap's standard error of the median; NaN for fewer than two values."""
    if len(values) < 2:
        return float("nan")
    return float(bootstrap((np.asarray(values),), np.median, n_resamples=2000, rng=0).standard_error)

r"""Show the distribution of the draws' probabilities for one row: a histogram and a fitted beta density.

.. math:: f(p) = \frac{p^{a - 1} (1 - p)^{b - 1}}{B(a, b)},

by maximum likelihood, or with mean m and variance v: :math:`a + b = m (1 - m) / v - 1`, :math:`a = m (a + b)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

_BINS = 10  # as in Fig. 5 of the PMCnet paper
_POINTS = 150
_SAME = 1e-6  # spread below which all draws agree


class ProbabilitySpread(NamedTuple):
    """A histogram of probabilities and a fitted beta density.

    ``edges`` (bins + 1,) and ``density`` (bins,) define the histogram. ``beta`` contains the parameters of the fitted
    density, or None; ``x`` and ``fit`` (points,) its values; ``statement`` a note on the fit.
    """

    edges: np.ndarray
    density: np.ndarray
    beta: tuple[float, float] | None
    x: np.ndarray
    fit: np.ndarray
    statement: str


def probability_spread(probabilities: np.ndarray, bins: int = _BINS) -> ProbabilitySpread:
    """Compute a histogram and a beta fit of the probabilities of one row.

    Parameters
    ----------
    probabilities : ndarray, shape (draws,)
        Probabilities. Resample weighted draws before calling this function.
    bins : int, default 10

    Returns
    -------
    ProbabilitySpread
        The fit is the maximum likelihood beta density on [0, 1]. If a probability is exactly 0 or 1, the fit matches
        mean and variance. If all draws are equal, there is no fit.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> chances = np.random.default_rng(0).beta(5, 2, size=300)
    >>> a, b = diagnostics.probability_spread(chances).beta
    >>> a > b
    True
    """
    probabilities = np.asarray(probabilities, dtype=float)
    density, edges = np.histogram(probabilities, bins=bins, range=(0.0, 1.0), density=True)
    beta, message = _fit(probabilities)
    if beta is None:
        return ProbabilitySpread(edges, density, None, np.empty(0), np.empty(0), message)
    # Evenly spaced in probability and in quantiles, so that a narrow peak gets enough points.
    steps = np.linspace(0.0, 1.0, _POINTS + 2)[1:-1]
    x = np.unique(np.concatenate([steps, scipy.stats.beta.ppf(steps, *beta)]))
    x = x[(x > 0) & (x < 1)]
    return ProbabilitySpread(edges, density, beta, x, scipy.stats.beta.pdf(x, *beta), message)


def _fit(probabilities: np.ndarray) -> tuple[tuple[float, float] | None, str]:
    if probabilities.std() < _SAME:
        return None, f"All {len(probabilities)} draws give {probabilities.mean():.3g}: there is no density to fit."
    at_ends = int(((probabilities <= 0) | (probabilities >= 1)).sum())
    if at_ends:
        count = f"{at_ends} of {len(probabilities)} probabilities"
        message = f"{count} are exactly 0 or 1: the fit uses mean and variance."
        return _by_moments(probabilities, message)
    try:
        a, b, _, _ = scipy.stats.beta.fit(probabilities, floc=0.0, fscale=1.0)
    except scipy.stats.FitError:
        return _by_moments(probabilities, "The maximum likelihood fit failed: the fit uses mean and variance.")
    return (float(a), float(b)), ""


def _by_moments(probabilities: np.ndarray, message: str) -> tuple[tuple[float, float] | None, str]:
    """Return the beta density with a given mean and variance."""
    mean = probabilities.mean()
    both = mean * (1 - mean) / probabilities.var() - 1
    if not both > 0:
        return None, "No beta density has the mean and variance of these probabilities."
    return (float(mean * both), float((1 - mean) * both)), message

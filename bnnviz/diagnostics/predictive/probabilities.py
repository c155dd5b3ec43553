r"""Show how the draws' probabilities of one row are spread: a histogram and a beta density fitted to them.

.. math:: f(p) = \frac{p^{a - 1} (1 - p)^{b - 1}}{B(a, b)},

the likeliest one, or that of mean m and variance v: :math:`a + b = m (1 - m) / v - 1`, :math:`a = m (a + b)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

_BINS = 10  # as in Fig. 5 of the PMCnet paper
_POINTS = 150
_SAME = 1e-6  # a smaller spread than this says that all draws agree


class ProbabilitySpread(NamedTuple):
    """A histogram of probabilities and a fitted beta density.

    ``edges`` (bins + 1,) and ``density`` (bins,), of area 1; ``beta``: its two parameters or None; ``x`` and ``fit``
    (points,): the fitted density, empty without one; ``said``: what is to be known of the fit, "" for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> chances = np.random.default_rng(0).beta(5, 2, size=300)
    >>> len(diagnostics.probability_spread(chances).density)
    10
    """

    edges: np.ndarray
    density: np.ndarray
    beta: tuple[float, float] | None
    x: np.ndarray
    fit: np.ndarray
    said: str


def probability_spread(probabilities: np.ndarray, bins: int = _BINS) -> ProbabilitySpread:
    """Return histogram and beta fit of one row's probabilities.

    Parameters
    ----------
    probabilities : ndarray, shape (draws,)
        From 0 to 1; weighted draws are resampled first.
    bins : int, default 10

    Returns
    -------
    ProbabilitySpread
        The fit is the likeliest beta density on [0, 1]. Where a probability is exactly 0 or 1 that has no likelihood,
        and the fit has the mean and variance of the probabilities; where all draws agree there is none.

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
    # Evenly spread in probability, and in share of the draws too: a narrow peak has points of its own.
    steps = np.linspace(0.0, 1.0, _POINTS + 2)[1:-1]
    x = np.unique(np.concatenate([steps, scipy.stats.beta.ppf(steps, *beta)]))
    x = x[(x > 0) & (x < 1)]
    return ProbabilitySpread(edges, density, beta, x, scipy.stats.beta.pdf(x, *beta), message)


def _fit(probabilities: np.ndarray) -> tuple[tuple[float, float] | None, str]:
    if probabilities.std() < _SAME:
        return None, f"All {len(probabilities)} draws say {probabilities.mean():.3g}: there is no density to fit."
    at_ends = int(((probabilities <= 0) | (probabilities >= 1)).sum())
    if at_ends:
        count = f"{at_ends} of {len(probabilities)} probabilities"
        message = f"{count} are exactly 0 or 1: the fit is by mean and variance."
        return _by_moments(probabilities, message)
    try:
        a, b, _, _ = scipy.stats.beta.fit(probabilities, floc=0.0, fscale=1.0)
    except scipy.stats.FitError:
        return _by_moments(probabilities, "The likeliest beta density was not found: the fit is by mean and variance.")
    return (float(a), float(b)), ""


def _by_moments(probabilities: np.ndarray, message: str) -> tuple[tuple[float, float] | None, str]:
    """Return the beta density with this mean and variance; scipy's own fit by moments begins from the skewness."""
    mean = probabilities.mean()
    both = mean * (1 - mean) / probabilities.var() - 1
    if not both > 0:
        return None, "No beta density has the mean and variance of these probabilities."
    return (float(mean * both), float((1 - mean) * both)), message

r"""Compute intervals of a share and of a mean over rows.

Wilson's interval of a share :math:`\hat p` of n rows, with z the normal quantile of the level (Wilson 1927,
https://doi.org/10.1080/01621459.1927.10502953), is

.. math::
    \frac{1}{1 + z^2 / n} \left( \hat p + \frac{z^2}{2 n} \pm
    z \sqrt{\frac{\hat p (1 - \hat p)}{n} + \frac{z^2}{4 n^2}} \right).
"""

from __future__ import annotations

import numpy as np
import scipy

_AT_ONCE = 2_000_000  # values resampled together


def share_interval(right: int, rows: int, level: float = 0.95) -> tuple[float, float]:
    """Compute Wilson's interval for the proportion `right` / `rows`.

    Parameters
    ----------
    right, rows : int
        Number of successes and number of trials.
    level : float, default 0.95

    Examples
    --------
    >>> from bnnviz import diagnostics
    >>> low, high = diagnostics.share_interval(90, 100)
    >>> low < 0.9 < high
    True
    """
    found = scipy.stats.binomtest(int(right), int(rows)).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)


def mean_interval(values: np.ndarray, level: float = 0.95, resamples: int = 1000, seed: int = 0) -> tuple[float, float]:
    """Compute a bootstrap percentile interval for the mean over rows.

    Parameters
    ----------
    values : ndarray, shape (rows,)
        Values to average.
    level : float, default 0.95
    resamples, seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> low, high = diagnostics.mean_interval(np.random.default_rng(0).normal(size=200))
    >>> low < 0.2 and high > -0.2
    True
    """
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return float(values[0]), float(values[0])
    found = scipy.stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=resamples,
        batch=max(1, _AT_ONCE // len(values)),
        confidence_level=level,
        method="percentile",
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)

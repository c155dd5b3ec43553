r"""Compute effective sample size, R-hat and autocorrelation of chains.

For M chains of N draws with autocorrelations :math:`\hat\rho_t`, variance within chains W and over all draws
:math:`\widehat{\mathrm{var}}^+`,

.. math::
    \mathrm{ESS} = \frac{M N}{1 + 2 \sum_{t \ge 1} \hat\rho_t}, \qquad
    \hat R = \sqrt{\widehat{\mathrm{var}}^+ / W},

with ranks instead of draws and each chain split in two (Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021,
https://doi.org/10.1214/20-BA1221). Both are computed by ArviZ. Without ArviZ they are nan, so that runs continue.
"""

from __future__ import annotations

import numpy as np

from bnnviz import optional
from bnnviz.diagnostics.packages import array_stats

_STILL = 1e-12  # rounding tolerance relative to the overall spread
_TAILS = (0.05, 0.95)


def ess(values: np.ndarray, method: str = "bulk") -> float:
    """Compute the bulk or tail effective sample size of (chains, draws).

    ``method="tail"`` is the minimum of the 5% and 95% quantiles. The result is nan for fewer than four draws,
    constant draws, or without ArviZ.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> 1500 < diagnostics.ess(draws) < 2500, 1000 < diagnostics.ess(draws, method="tail") < 2500
    (True, True)
    """
    if not _measurable(values):
        return float("nan")
    tails = {"prob": _TAILS} if method == "tail" else {}
    return float(array_stats().ess(values, chain_axis=0, draw_axis=1, method=method, **tails))


def ess_each(values: np.ndarray) -> np.ndarray:
    """Compute the bulk effective sample size of each column of (chains, draws, columns).

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> draws = np.random.default_rng(0).normal(size=(4, 500, 3))
    >>> diagnostics.ess_each(draws).shape
    (3,)
    """
    return np.array([ess(values[:, :, i]) for i in range(values.shape[2])])


def rhat(values: np.ndarray) -> float:
    """Compute the rank-normalised split R-hat of (chains, draws).

    The result is nan for fewer than four draws, constant draws, or without ArviZ, and infinite if all chains are
    constant but different.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> diagnostics.rhat(draws) < 1.01 < diagnostics.rhat(draws + np.arange(4)[:, None])
    True
    """
    if not _measurable(values):
        return float("nan")
    if np.ptp(values, axis=1).max() < _STILL * np.ptp(values):
        return float("inf")
    return float(array_stats().rhat(values, chain_axis=0, draw_axis=1))


def mcse(values: np.ndarray, of: str = "mean") -> float:
    """Compute the Monte Carlo standard error of the mean or the standard deviation of (chains, draws).

    The result is nan for fewer than four draws, constant draws, or without ArviZ.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> 0.015 < diagnostics.mcse(draws) < 0.03
    True
    """
    if not _measurable(values):
        return float("nan")
    return float(array_stats().mcse(values, chain_axis=0, draw_axis=1, method=of))


def autocorrelation(values: np.ndarray, lags: int = 200) -> np.ndarray:
    r"""Compute the autocorrelation :math:`\hat\rho_t` of (chains, draws) at lags t = 0, 1, ..., averaged over chains.

    .. math::
        \hat\rho_t = \frac{\sum_m \sum_n (x_{m, n} - \bar x)(x_{m, n + t} - \bar x)}
        {\sum_m \sum_n (x_{m, n} - \bar x)^2}

    Chains are centred at the overall mean. If chains have not mixed, the autocorrelation does not decay to zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> float(diagnostics.autocorrelation(draws, lags=5)[0])
    1.0
    """
    draws = values.shape[1]
    centred = values - values.mean()
    size = 1 << (2 * draws - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum.mean(0), size)[: min(lags + 1, draws)] / draws
    return covariance / covariance[0] if covariance[0] > 0 else np.full_like(covariance, np.nan)


def _measurable(values: np.ndarray) -> bool:
    return values.shape[1] >= 4 and np.ptp(values) > 0 and optional.has("arviz_stats")

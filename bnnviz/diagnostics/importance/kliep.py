r"""Estimate the ratio of two densities from samples of both, without estimating either (KLIEP).

With Gaussian kernels :math:`K_l` around points of p's sample,

.. math::
    \max_{\alpha \ge 0} \; \frac1n \sum_{i=1}^n \log \sum_l \alpha_l K_l(x_i) \quad \text{with} \quad
    \frac1m \sum_{j=1}^m \sum_l \alpha_l K_l(x'_j) = 1, \qquad x_i \sim p, \; x'_j \sim q

(Sugiyama, Suzuki, Nakajima, Kashima, von Buenau and Kawanabe 2008, https://doi.org/10.1007/s10463-008-0197-x).
It is written here because `densratio` estimates by least squares, and `adapt` needs TensorFlow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from bnnviz.errors import BnnvizError

CENTRES = 100
_GAP = 1e-3  # tolerance of the slope of the mean log ratio with respect to a weight
_ROUNDS = 300
#: Minimum sum of a kernel over q's sample. Without points within two widths its coefficient is undetermined.
_SEEN = np.exp(-2.0)
_LEAST = 1e-300


class Ratio(NamedTuple):
    """Estimated density ratio. Call it with points (n, dim), or (n,) in one dimension.

    Attributes
    ----------
    centres : ndarray, shape (kernels, dim)
        Centres of the Gaussian kernels.
    coefficients : ndarray, shape (kernels,)
        Nonnegative coefficients of the kernels.
    width : float
        Standard deviation of the kernels.
    """

    centres: np.ndarray
    coefficients: np.ndarray
    width: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the ratio (n,) at points."""
        return _kernels(_table(x, "x"), self.centres, self.width) @ self.coefficients


def kliep(
    numerator: np.ndarray,
    denominator: np.ndarray,
    width: float,
    *,
    centres: int = CENTRES,
    seed: int = 0,
) -> Ratio:
    """Estimate the density ratio p / q from samples of p and q.

    The ratio is a sum of Gaussian kernels centred at points of the sample of p. The nonnegative coefficients maximise
    the mean log ratio over the sample of p, under the constraint that the mean ratio over the sample of q is 1. This
    minimises the Kullback-Leibler divergence to p.

    Parameters
    ----------
    numerator : ndarray, shape (n, dim) or (n,)
        Sample of p.
    denominator : ndarray, shape (m, dim) or (m,)
        Sample of q. The estimate is unreliable in regions without points of q.
    width : float
        Standard deviation of the kernels.
    centres : int, default 100
        Maximum number of kernels.
    seed : int, default 0
        Seed for the choice of centres.

    Returns
    -------
    Ratio

    Raises
    ------
    BnnvizError
        If a sample is empty or not finite, dimensions differ, the width is not above 0, or no kernel reaches q's
        sample.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> rng = np.random.default_rng(0)
    >>> ratio = diagnostics.kliep(rng.normal(0, 1, 200), rng.normal(0, 2, 200), width=1.0)
    >>> bool(ratio(np.array([0.0]))[0] > 1)
    True
    """
    p, q = _table(numerator, "numerator"), _table(denominator, "denominator")
    if p.shape[1] != q.shape[1]:
        raise BnnvizError(
            f"The numerator's points have {p.shape[1]} coordinates and the denominator's {q.shape[1]}; give samples of"
            " one space.",
            "denominator",
        )
    if centres < 1:
        raise BnnvizError(f"centres = {centres} must be at least 1.", "centres")
    if not width > 0:
        raise BnnvizError(f"width = {width} must be above 0.", "width")
    rng = np.random.default_rng(seed)
    around = p[rng.permutation(len(p))[:centres]]
    coefficients = _fit(_kernels(p, around, width), _kernels(q, around, width))
    if coefficients is None:
        raise BnnvizError(
            "No kernel around a point of the numerator's sample reaches the denominator's: the samples are too far"
            " apart, or the width is too small.",
            "width",
        )
    return Ratio(around, coefficients, width)


def _table(x: np.ndarray, name: str) -> np.ndarray:
    x = np.asarray(x, dtype=float)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or x.size == 0 or not np.isfinite(x).all():
        raise BnnvizError(f"{name} has shape {x.shape}; it must have finite points, one per row.", name)
    return x


def _kernels(x: np.ndarray, centres: np.ndarray, width: float) -> np.ndarray:
    """Return Gaussian kernels (n, kernels) at points (n, dim)."""
    return np.exp(-0.5 * scipy.spatial.distance.cdist(x, centres, "sqeuclidean") / width**2)


def _fit(at_p: np.ndarray, at_q: np.ndarray) -> np.ndarray | None:
    """Return the coefficients (kernels,) from the kernels at both samples, or None if no kernel reaches both.

    Each kernel is divided by its mean over q's sample, so that the constraint becomes a weight sum of 1. It need not be
    imposed: the mean log ratio minus the weights' sum is maximal where the sum is 1.
    """
    means = at_q.mean(0)
    seen = at_q.sum(0) > _SEEN
    scaled = at_p[:, seen] / means[seen]
    reached = scaled.max(1, initial=0.0) > 0  # rows outside all kernels do not determine the weights
    if not reached.any():
        return None
    scaled = scaled[reached]
    scaled /= scaled.max(1, keepdims=True)  # does not change the weights, and avoids overflow in distant rows
    weights = _likeliest(scaled)
    coefficients = np.zeros(len(means))
    coefficients[seen] = weights / weights.sum() / means[seen]
    return coefficients


def _likeliest(rows: np.ndarray) -> np.ndarray:
    """Return the nonnegative weights (kernels,) that maximise mean log(rows @ weights) - sum(weights)."""

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        ratio = np.maximum(rows @ weights, _LEAST)
        return weights.sum() - np.log(ratio).mean(), 1 - (1 / ratio) @ rows / len(rows)

    count = rows.shape[1]
    options = {"maxiter": _ROUNDS, "maxfun": 2 * _ROUNDS, "ftol": 1e-9, "gtol": _GAP}
    return scipy.optimize.minimize(
        loss, np.full(count, 1 / count), jac=True, bounds=[(0, None)] * count, options=options
    ).x

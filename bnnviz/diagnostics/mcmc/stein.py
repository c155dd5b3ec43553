r"""Compare the variances of draws with the unknown ones of their target density exp(-U).

Under :math:`\pi \propto e^{-U}` every function :math:`\psi` of limited growth satisfies Stein's identity,

.. math:: E_\pi [\Delta \psi - \nabla U \cdot \nabla \psi] = 0.

Draws from another law violate it, and the size of the violation measures the bias of their moments for any cause: an
envelope that is not a bound, draws taken at events, or a step size that is too large (Mira, Solgi and Imparato 2013,
https://doi.org/10.1007/s11222-012-9344-6).
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy

from bnnviz.diagnostics.importance.weights import normalised, weight_ess

_GROUPS = 8  # of the jackknife
_DEGREES = {1: 4, 2: 4, 3: 4, 4: 2, 5: 2, 6: 2, 7: 2, 8: 2}  # of the polynomials psi, by dimension
_ROWS_EACH = 25  # minimum draws per polynomial
_TEMPERS = (-0.3, 0.95)  # range of k
_NEARLY = 1 - 1e-9  # share of a count of equal weights
_LEAST = 1e-3  # minimum variance estimate, relative to the weighted one


class VarianceInflation(NamedTuple):
    """Relative error of variances, with a standard error. Negative values indicate variances that are too small.

    Attributes
    ----------
    share, error : float
        Averaged over the coordinates.
    each, each_error : ndarray, shape (dim,), or None
        Values of each coordinate, or None in more than 8 dimensions.
    """

    share: float
    error: float
    each: np.ndarray | None
    each_error: np.ndarray | None


def variance_inflation(
    draws: np.ndarray, potential: np.ndarray, gradient: np.ndarray, every: int = 1, logs: np.ndarray | None = None
) -> VarianceInflation | None:
    """Estimate the relative error of the variances of draws using Stein's identity.

    In up to 8 dimensions the squared deviation of a coordinate is regressed on polynomials whose expectation is zero by
    Stein's identity. The intercept estimates the variance of the target. The regression is weighted by exp(-k U), with
    k such that the weighted draws satisfy the identity for psi = ``|x - m|^2 / 2``, otherwise the tails would dominate
    if the draws are far too wide. In more dimensions, and for coordinates whose regression gives a negative variance,
    as in the tails of a funnel, only this identity is used: the mean of (x_i - m_i) dU/dx_i, which is 1 under the
    target, and on a Gaussian the average ratio of variances.

    The accuracy is limited by the degree of the polynomials. On the banana the intervals cover the true error of low
    envelopes up to 0.5, but for exact draws with a variance increased by 20% the estimate is 0.44.

    Parameters
    ----------
    draws : ndarray, shape (chains, draws, dim)
        Draws of each chain, in order.
    potential : ndarray, shape (chains, some)
        U at every ``every``-th draw.
    gradient : ndarray, shape (chains, some, dim)
        The gradient of U there.
    every : int, default 1
        Thinning of the potential: ``draws[:, ::every]``.
    logs : ndarray, shape (chains, draws), optional
        Log weights of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))  # of a standard normal distribution
    >>> wide = 1.2 * draws
    >>> diagnostics.variance_inflation(wide, (wide**2).sum(-1) / 2, wide).share > 0.2
    True
    """
    chains, count, dim = draws.shape
    degree = _DEGREES.get(dim)
    functions = 1 if degree is None else len(_exponents(dim, degree))
    weights = np.zeros((chains, count)) if logs is None else logs
    enough = max(4 * _GROUPS, _ROWS_EACH * functions)
    if weight_ess(weights[:, ::every]) < enough * _NEARLY:
        return None
    by_chains = logs is None and chains >= _GROUPS
    if not by_chains and potential.shape[1] < _GROUPS:
        return None
    # Weighted draws are dealt in turn, one group for each draw with a gradient: draws of every proposal in each group.
    dealt = np.broadcast_to(np.arange(count) // every % _GROUPS, (chains, count))
    groups = _groups(chains, count) if logs is None else dealt
    group, everyones = groups[:, ::every].ravel(), groups.ravel()
    pooled, shares = draws.reshape(-1, dim), normalised(weights).ravel()
    own = normalised(weights[:, ::every]).ravel()
    rows = draws[:, ::every].reshape(-1, dim), potential.ravel(), gradient.reshape(-1, dim), own
    if not all(np.isfinite(part).all() for part in rows):
        return None
    estimate = _virial if degree is None else partial(_variances, exponents=_exponents(dim, degree))

    def ratios(left_out: int) -> np.ndarray:
        found = estimate(*(part[group != left_out] for part in rows))
        kept = everyones != left_out
        return found if degree is None else _variance(pooled[kept], shares[kept]) / found

    with np.errstate(all="ignore"):  # squares of diverging chains overflow
        full, without = ratios(-1), np.stack([ratios(one) for one in range(_GROUPS)])
    if not (np.isfinite(full).all() and np.isfinite(without).all()):
        return None
    share, error = full.mean() - 1, _jackknife(without.mean(1))
    if degree is None:
        return VarianceInflation(float(share), float(error), None, None)
    return VarianceInflation(float(share), float(error), full - 1, _jackknife(without))


def _jackknife(without: np.ndarray) -> np.ndarray:
    """Return the standard error of an estimate from its values without each group (axis 0)."""
    return np.sqrt((len(without) - 1) * without.var(0))


def _groups(chains: int, count: int) -> np.ndarray:
    """Return the group (chains, draws) of each draw: whole chains, or for few chains spans of time."""
    if chains >= _GROUPS:
        return np.broadcast_to((np.arange(chains) % _GROUPS)[:, None], (chains, count))
    return np.broadcast_to(np.arange(count) * _GROUPS // count, (chains, count))


def _variance(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the variances (dim,) of draws x (rows, dim) with weights (rows,)."""
    return np.average((x - np.average(x, axis=0, weights=weights)) ** 2, axis=0, weights=weights)


def _virials(x: np.ndarray, gradient: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the means (dim,) of (x_i - m_i) dU/dx_i over draws with weights (rows,)."""
    return np.average((x - np.average(x, axis=0, weights=weights)) * gradient, axis=0, weights=weights)


def _virial(x: np.ndarray, potential: np.ndarray, gradient: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the mean (1,) of (x_i - m_i) dU/dx_i over draws and coordinates."""
    return _virials(x, gradient, own).mean(keepdims=True)


def _variances(
    x: np.ndarray, potential: np.ndarray, gradient: np.ndarray, own: np.ndarray, exponents: list[np.ndarray]
) -> np.ndarray:
    """Return an estimate of the target's variances (dim,)."""
    weights = _tempered(x, potential - potential.min(), gradient, own)
    centre = weights @ x
    scale = np.sqrt(weights @ (x - centre) ** 2)
    z = (x - centre) / scale
    zeros = [_stein(z, gradient * scale, exponent) for exponent in exponents]
    root = np.sqrt(weights)[:, None]
    columns = np.stack([np.ones(len(z)), *zeros], axis=1) * root
    if not np.isfinite(columns).all():
        return np.full(x.shape[1], np.nan)
    solved, *_ = np.linalg.lstsq(columns, z * z * root, rcond=None)
    if (solved[0] > _LEAST).all():
        return scale**2 * solved[0]
    # Variances are positive: a negative one shows that a tail unlike any polynomial dominates the regression. The mean
    # of (x_i - m_i) dU/dx_i, which is the ratio of the variances on a Gaussian, needs no regression.
    ratios = np.maximum(_virials(x, gradient, own), _LEAST)
    return np.where(solved[0] > _LEAST, scale**2 * solved[0], _variance(x, own) / ratios)


def _tempered(x: np.ndarray, potential: np.ndarray, gradient: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return weights exp(-k U) (rows,), normalised with the draws' own, for which the virial is closest to 1.

    The virial is the mean of (x_i - m_i) dU/dx_i.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(own)

    def weights(k: float) -> np.ndarray:
        return normalised(logs - k * potential)

    def excess(k: float) -> float:
        w = weights(k)
        return float((w @ ((x - w @ x) * gradient)).mean()) - 1

    end = _TEMPERS[1] if excess(0.0) > 0 else _TEMPERS[0]
    if excess(0.0) * excess(end) >= 0:
        return weights(end)
    return weights(scipy.optimize.brentq(excess, *sorted((0.0, end)), xtol=1e-3))


def _exponents(dim: int, degree: int) -> list[np.ndarray]:
    """Return the exponents (dim,) of the monomials of degree at least 1."""
    return [
        np.bincount(factors, minlength=dim)
        for total in range(1, degree + 1)
        for factors in itertools.combinations_with_replacement(range(dim), total)
    ]


def _stein(z: np.ndarray, gradient: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Return div grad psi - grad U . grad psi (rows,) for the monomial psi = prod z_i^e_i."""
    value = np.zeros(len(z))
    for i in np.flatnonzero(exponent):
        once = exponent - (np.arange(len(exponent)) == i)
        value -= exponent[i] * np.prod(z**once, axis=1) * gradient[:, i]
        if exponent[i] > 1:
            twice = once - (np.arange(len(exponent)) == i)
            value += exponent[i] * (exponent[i] - 1) * np.prod(z**twice, axis=1)
    return value

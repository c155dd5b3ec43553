r"""Compare the variances of draws with those of the density exp(-U) that they are of, without knowing these.

Under :math:`\pi \propto e^{-U}` every function :math:`\psi` that does not grow too fast fulfils Stein's identity,

.. math:: E_\pi [\Delta \psi - \nabla U \cdot \nabla \psi] = 0.

Draws from anything else break it, and by how much tells how wrong their moments are: whatever the cause, an envelope
that is no bound, draws taken at events, or a step size too large (Mira, Solgi and Imparato 2013,
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
_ROWS_EACH = 25  # draws for each polynomial, at least
_TEMPERS = (-0.3, 0.95)  # the least and largest k
_NEARLY = 1 - 1e-9  # of a count of equal weights
_LEAST = 1e-3  # of a variance's estimate, in units of the weighted one


class VarianceInflation(NamedTuple):
    """By what share variances are too large (negative: too small), with a standard error.

    Attributes
    ----------
    share, error : float
        Averaged over the coordinates.
    each, each_error : ndarray, shape (dim,), or None
        Of each coordinate; None in more than 8 dimensions, where the average alone is estimated.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))
    >>> found = diagnostics.variance_inflation(draws, (draws**2).sum(-1) / 2, draws)
    >>> abs(found.share) < 4 * found.error
    True
    """

    share: float
    error: float
    each: np.ndarray | None
    each_error: np.ndarray | None


def variance_inflation(
    draws: np.ndarray, potential: np.ndarray, gradient: np.ndarray, every: int = 1, logs: np.ndarray | None = None
) -> VarianceInflation | None:
    """Estimate by what share the variances of draws are too large; None for fewer draws than that takes.

    In up to 8 dimensions the squared deviation of a coordinate is regressed on polynomials that Stein's identity says
    are zero on average; what is left is the variance of the target. The regression is
    weighted by exp(-k U), with k such that the weighted draws fulfil the identity for psi = ``|x - m|^2 / 2``: where
    the draws are far too wide, their tails would decide otherwise. In more dimensions only this identity is used: the
    mean of (x_i - m_i) dU/dx_i, which is 1, and on a Gaussian is the average of the variances' ratios. So it is for a
    coordinate whose regression gives a negative variance, as in the tails of a funnel.

    No polynomial is the whole truth: on the banana the intervals cover what envelopes that are too low do while that is
    under a half (above, the estimate is too small: few draws are where the target is), but exact draws stretched by
    a fifth in variance are found 0.44 too wide.

    Parameters
    ----------
    draws : ndarray, shape (chains, draws, dim)
        Draws of each chain, in order.
    potential : ndarray, shape (chains, some)
        U at each so manyth of the draws.
    gradient : ndarray, shape (chains, some, dim)
        The gradient of U there.
    every : int, default 1
        Which draws these are: ``draws[:, ::every]``.
    logs : ndarray, shape (chains, draws), optional
        Logarithms of the draws' weights, where they have some. A region that no draw has found is in no weight, but the
        identity, which the weighted draws then break, tells of it.

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
    groups = _groups(chains, count) if logs is None else _dealt(chains, count)
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

    with np.errstate(all="ignore"):  # chains that run away have squares that overflow
        full, without = ratios(-1), np.stack([ratios(one) for one in range(_GROUPS)])
    if not (np.isfinite(full).all() and np.isfinite(without).all()):
        return None
    share, error = full.mean() - 1, _jackknife(without.mean(1))
    if degree is None:
        return VarianceInflation(float(share), float(error), None, None)
    return VarianceInflation(float(share), float(error), full - 1, _jackknife(without))


def _jackknife(without: np.ndarray) -> np.ndarray:
    """Return the standard error of an estimate from its values with one group (axis 0) left out."""
    return np.sqrt((len(without) - 1) * without.var(0))


def _groups(chains: int, count: int) -> np.ndarray:
    """Return the group (chains, draws) of each draw: whole chains, or of few chains stretches of time."""
    if chains >= _GROUPS:
        return np.broadcast_to((np.arange(chains) % _GROUPS)[:, None], (chains, count))
    return np.broadcast_to(np.arange(count) * _GROUPS // count, (chains, count))


def _variance(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the variances (dim,) of draws x (rows, dim) with weights (rows,)."""
    return np.average((x - np.average(x, axis=0, weights=weights)) ** 2, axis=0, weights=weights)


def _dealt(chains: int, count: int) -> np.ndarray:
    """Return the group (chains, draws) of each weighted draw: some of every proposal, which are a mixture together."""
    return np.broadcast_to(np.arange(count) % _GROUPS, (chains, count))


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
    # No variance is negative: a tail that no polynomial follows has decided the regression. The mean of
    # (x_i - m_i) dU/dx_i, which is the ratio of the variances on a Gaussian, has no such regression.
    ratios = np.maximum(_virials(x, gradient, own), _LEAST)
    return np.where(solved[0] > _LEAST, scale**2 * solved[0], _variance(x, own) / ratios)


def _tempered(x: np.ndarray, potential: np.ndarray, gradient: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return weights exp(-k U) (rows,) of sum 1, times the draws' own, by which the virial is as near to 1 as it gets.

    That is the mean of (x_i - m_i) dU/dx_i.
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
    """Return the exponents (dim,) of the monomials of degree 1 and more."""
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

r"""Judge draws by importance weights: an approximation with a density by its own draws, a run by wider proposals.

With draws :math:`x_i` of an approximation q and :math:`w_i = \exp(-U(x_i)) / q(x_i)`, the shape of the weights' tail,
Pareto k-hat, measures how far q is from the posterior at points with little mass under q (Yao, Vehtari, Simpson and
Gelman 2018, Yes, but did it work? Evaluating variational inference, https://doi.org/10.48550/arXiv.1802.02538). It is
small for approximations that are too wide, too, so the total variation distance is estimated as well,

.. math::
    \frac12 \int |p - q| \approx \frac12 \sum_i \left| \bar w_i - \frac1n \right|, \qquad
    \bar w_i = w_i / \sum_j w_j,

which bounds the error of any probability. For k-hat above 0.7 the weights have not converged, and the distance usually
exceeds its estimate. Draws with non-finite U have no weight. Neither metric detects a mode without draws.

Errors of weighted moments, and Pareto k-hat, do not know of a tail that no draw has reached. The moments of a run are
therefore also checked by importance sampling from proposals that are wider than its draws, a mixture of Student t
distributions with five degrees of freedom,

.. math:: q = \tfrac12 \cdot \tfrac1{32} \sum_c t_5(x_c, (0.7)^2 S) + \tfrac14 t_5(m, (1.5)^2 S)
   + \tfrac14 t_5(m, 4^2 S),

around draws :math:`x_c` and around the mean m, with S the covariance of the draws: a defensive mixture (Hesterberg
1995, https://doi.org/10.1080/00401706.1995.10484303). It needs no gradient, and works in up to about 15 dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics
from bnnviz.engine.monitor import remedies
from bnnviz.engine.monitor.importance import GOOD_K
from bnnviz.engine.protocol import AnyRun
from bnnviz.messages import Message
from bnnviz.samplers.random import seeded
from bnnviz.targets import BNN, Target

_NEAR, _FAR = 0.01, 0.1  # total variation distances: below the first the tail is ignored, the second is reported
_AT_ONCE = 256  # draws
_WORK, _MOST_DRAWS, _LEAST_DRAWS = 3e9, 2000, 200  # multiply-adds of U, and draws, for the weights
_OUTSIDE = 1e-3  # reported share of draws with non-finite U: fewer may be overflows
_MOST_DIM = 20
_CENTRES, _FREEDOM = 32, 5.0
_LOCAL, _WIDE, _WIDEST = 0.7, 1.5, 4.0  # scales of the components, in standard deviations of the draws
_CHECK_WORK, _FEWEST, _MOST, _PROPOSED = 3e9, 2000, 20_000, 512  # multiply-adds of U, and draws of the check
_LEAST_ESS = 200.0  # minimum weight ESS of the check
_CLEAR, _SMALL_MEAN, _SMALL_VARIANCE = 4.0, 0.05, 0.1  # standard errors, standard deviations, relative variance


def measured_approximation(run: AnyRun) -> dict[str, float | None]:
    """Return metrics of an approximation, None if unknown; {} for samplers without one of known density."""
    if not run.sampler.traits.has_density:
        return {}
    names = ("pareto_k", "total_variation", "infinite_share")
    count = int(min(_MOST_DRAWS, _WORK / (2 * max(run.target.examples, 1) * max(run.target.row_work, 1))))
    if count < _LEAST_DRAWS or not run.draws.size:
        return dict.fromkeys(names)
    x, log_density = run.sampler.approximation(seeded(0, run.device), run.state, count)
    if not len(x):
        return dict.fromkeys(names)
    target = run.target.clone()
    potential = torch.cat([target.defined_potential(part).detach() for part in torch.split(x, _AT_ONCE)]).double()
    finite = torch.isfinite(potential)
    logs = torch.where(finite, -potential - log_density.double(), -torch.inf).cpu().numpy()
    k, shares = diagnostics.pareto_k(logs), diagnostics.normalised(logs)
    # If all weights are zero, the supports do not overlap.
    distance = float(np.abs(shares - 1 / len(logs)).sum() / 2) if shares.any() else 1.0
    outside = 1 - float(finite.double().mean())
    return dict(zip(names, (float(k) if np.isfinite(k) else None, distance, outside), strict=True))


def of_approximation(run: AnyRun, found: dict[str, Any]) -> Iterator[Message]:
    """Warn if a sampler's approximation is poor, from what `measured_approximation` has found."""
    k, distance, outside = (found.get(name) for name in ("pareto_k", "total_variation", "infinite_share"))
    if distance is None:
        return
    if outside > _OUTSIDE:
        bounds = [remedies.NAME_BOUNDS] if run.own_target and not isinstance(run.target, BNN) else []
        reference = remedies.reference_sampler("use HMC or NUTS")
        yield Message("approximation_outside", *bounds, reference, percent=100 * outside)
    long = k is not None and k >= GOOD_K and distance >= _NEAR
    if long or distance - outside >= _FAR:
        yield Message(
            "approximation_poor",
            remedies.reference_sampler("use HMC or NUTS for variances and tails"),
            k=k,
            distance=distance,
            tail=f"Pareto k-hat {k:.2f}, should be below {GOOD_K}; " if long else "",
            more=" or more" if long else "",
        )


class Shift(NamedTuple):
    """The moment that differs most from the check's: that of the run, that of the check, and the errors between."""

    moment: str  # "mean" or "variance"
    coordinate: int
    value: float
    check: float
    z: float


class _Mixture:
    """The mixture of Student t distributions around draws, in float64."""

    def __init__(self, draws: np.ndarray, logs: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> None:
        rows = draws.reshape(-1, draws.shape[-1])
        local = rows[diagnostics.systematic(logs.ravel(), _CENTRES)]
        self._centres = torch.as_tensor(np.concatenate([local, mean[None], mean[None]]))
        scales = [_LOCAL] * _CENTRES + [_WIDE, _WIDEST]
        shares = [0.5 / _CENTRES] * _CENTRES + [0.25, 0.25]
        self._scales, self._shares = torch.tensor(scales, dtype=torch.float64), torch.tensor(shares).double()
        self._root, trouble = torch.linalg.cholesky_ex(torch.as_tensor(cov))
        self.sound = int(trouble) == 0 and bool(torch.isfinite(self._root).all())

    def sample(self, count: int, rng: torch.Generator) -> Tensor:
        """Return points (count, dim)."""
        chosen = torch.multinomial(self._shares, count, replacement=True, generator=rng)
        dim = self._centres.shape[1]
        normal = torch.randn(count, dim, dtype=torch.float64, generator=rng)
        chi = 2 * torch._standard_gamma(torch.full((count,), _FREEDOM / 2, dtype=torch.float64), generator=rng)
        z = normal * (_FREEDOM / chi).sqrt()[:, None]
        return self._centres[chosen] + self._scales[chosen, None] * (z @ self._root.T)

    def log_density(self, x: Tensor) -> Tensor:
        """Return the log density (n,) at points (n, dim)."""
        dim = x.shape[1]
        turned = torch.linalg.solve_triangular(self._root, torch.cat([x, self._centres]).T, upper=False).T
        points, centres = turned[: len(x)], turned[len(x) :]
        squares = torch.cdist(points, centres).square() / self._scales**2
        constant = (
            math.lgamma((_FREEDOM + dim) / 2) - math.lgamma(_FREEDOM / 2) - 0.5 * dim * math.log(_FREEDOM * math.pi)
        )
        constant = constant - float(self._root.diagonal().log().sum())
        logs = constant - dim * self._scales.log() - 0.5 * (_FREEDOM + dim) * torch.log1p(squares / _FREEDOM)
        return torch.logsumexp(logs + self._shares.log(), 1)


def measured_shift(
    run: AnyRun, draws: np.ndarray, logs: np.ndarray, found: dict[str, list] | diagnostics.Weighted
) -> Shift | None:
    """Return the moment that differs clearly from the check's, or None; ``logs`` (chains, draws) are log weights."""
    mean, variance = np.asarray(found.mean), np.diag(np.asarray(found.cov))
    check = _wider_moments(run.target, draws, logs, mean, np.asarray(found.cov))
    if check is None:
        return None
    true = np.diag(check.cov)
    with np.errstate(all="ignore"):
        of_mean = (mean - check.mean) / np.hypot(found.mean_se, check.mean_se)
        error = np.hypot(found.variance_se / variance, check.variance_se / true)
        of_variance = np.log(variance / true) / error
        large_mean = np.abs(mean - check.mean) > _SMALL_MEAN * np.sqrt(true)
        large_variance = np.abs(np.log(variance / true)) > _SMALL_VARIANCE
    z = np.concatenate([np.where(large_mean, of_mean, 0.0), np.where(large_variance, of_variance, 0.0)])
    if not np.isfinite(z).any() or np.nanmax(np.abs(z)) < _CLEAR:
        return None
    worst, dim = int(np.nanargmax(np.abs(z))), len(mean)
    i = worst % dim
    if worst < dim:
        return Shift("mean", i, float(mean[i]), float(check.mean[i]), float(z[worst]))
    return Shift("variance", i, float(variance[i]), float(true[i]), float(z[worst]))


def _wider_moments(
    target: Target, draws: np.ndarray, logs: np.ndarray, mean: np.ndarray, cov: np.ndarray
) -> diagnostics.Weighted | None:
    """Return the moments of the density by the check; None if it is too slow or its weights are too uneven."""
    dim = draws.shape[-1]
    count = int(min(_MOST, _CHECK_WORK / (2 * max(target.examples, 1) * max(target.row_work, 1))))
    if dim > _MOST_DIM or count < _FEWEST or not (np.isfinite(mean).all() and np.isfinite(cov).all()):
        return None
    mixture = _Mixture(draws.astype(float), logs, mean, cov)
    if not mixture.sound:
        return None
    x = mixture.sample(count, torch.Generator().manual_seed(0))
    target = target.clone()
    parts = torch.split(x.to(target.device, target.dtype), _PROPOSED)
    potential = torch.cat([target.defined_potential(part).detach() for part in parts]).double().cpu()
    weights = torch.where(torch.isfinite(potential), -potential - mixture.log_density(x), -torch.inf).numpy()
    if diagnostics.weight_ess(weights) < _LEAST_ESS:
        return None
    return diagnostics.weighted_moments(x.numpy(), weights)

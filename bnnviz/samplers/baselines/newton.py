r"""Refine a mode by Newton's method if a first-order descent has not converged.

With g the gradient and P the curvature of U, Newton's step is $-P^{-1} g$, and $g^\top P^{-1} g$ is the squared
distance to the mode in posterior standard deviations. A step that does not lower U is damped: a multiple of P's
diagonal is added (D. W. Marquardt, 1963, doi:10.1137/0111030).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.targets import Target

MOST = 1000  # maximum number of coordinates of a matrix used only for Newton steps
#: Squared distance to a mode, in posterior standard deviations per direction, above which a point is not a mode. On
#: large networks, gradients in single precision have errors of up to a tenth of this.
FAR = 0.25
_WORK = 3e9  # maximum multiply-adds for testing whether a point is a mode
_SADDLE = 1e-4  # of the largest curvature: less may be rounding
_RISES = (0.02, 25.0)  # range of the increase of U within a posterior standard deviation: 0.5 for a normal density
_FALLS = 0.1  # minimum decrease of U relative to the prediction from the curvature; less at a kink
_STEPS = 50
_DAMPINGS = (0.0, *(10.0**power for power in range(-4, 5)))
# Squared posterior sds from the mode per direction, above which steps are taken and below which they end.
_AWAY, _ARRIVED = 0.01, 1e-6


def curvature(target: Target, x: Tensor, part: slice) -> Tensor:
    """Return the curvature of U at x (dim,), including the prior's, as a matrix over a part of the coordinates."""
    precision = target.curvature_matrix(x, part).double()
    precision.diagonal().add_(target.prior_precision or 0.0)
    return precision


def distance(target: Target, x: Tensor, part: slice, precision: Tensor) -> float:
    """Return g' P^-1 g / dim at x (dim,); P is a matrix or its diagonal."""
    g = target.gradient(x[None])[1][0, part].double()
    return float((g * _step(g, precision)).sum().abs()) / len(g)


def _step(g: Tensor, precision: Tensor) -> Tensor:
    """Return P^-1 g; P is a matrix or its diagonal."""
    return g / precision if precision.ndim == 1 else torch.linalg.lstsq(precision, g[:, None]).solution[:, 0]


class DistanceToMode(NamedTuple):
    """Distance of a point from a mode, in posterior standard deviations per direction."""

    away: float
    falls: bool  # Whether a Newton step from there lowers U. At a kink it does not, although the gradient is nonzero.
    sinking: int  # Number of directions with negative curvature of U, as at a saddle

    @property
    def is_mode(self) -> bool:
        """Whether the point is a mode, as far as can be tested."""
        return not self.sinking and not (self.falls and self.away**2 >= FAR)


def place(target: Target, x: Tensor) -> DistanceToMode | None:
    """Return the distance of a point (dim,) from a mode; None if costly or the curvature is not finite."""
    work, whole = max(target.examples, 1) * max(target.row_work, 1), slice(None)
    if target.dim <= MOST and work * target.dim <= _WORK:
        precision = curvature(target, x, whole)
    elif work <= _WORK:
        precision = target.curvature_diagonal(x).double() + (target.prior_precision or 0.0)
    else:
        return None
    if not bool(torch.isfinite(precision).all()):
        return None
    values = precision if precision.ndim == 1 else torch.linalg.eigvalsh(precision)
    sinking = int((values < -_SADDLE * values.abs().max()).sum())
    away = distance(target, x, whole, precision) ** 0.5
    return DistanceToMode(away, falls(target, x, whole, precision), sinking)


def falls(target: Target, x: Tensor, part: slice, precision: Tensor) -> bool:
    """Return whether a Newton step from x (dim,), or a shorter one, lowers U as predicted by P (matrix or diagonal)."""
    g = target.gradient(x[None])[1][0, part].double()
    step = _step(g, precision)
    lengths = torch.tensor([1.0, 0.3, 0.1, 0.03], dtype=x.dtype, device=x.device)
    there = x.repeat(len(lengths) + 1, 1)
    there[1:, part] -= lengths[:, None] * step.to(x.dtype)
    potential = target.gradient(there)[0].double()
    lowered = potential[0] - potential[1:]
    expected = (g * step).sum() * (lengths - lengths.square() / 2).double()
    return bool((lowered > _FALLS * expected.abs()).any())


def plateaus(target: Target, x: Tensor, part: slice, precision: Tensor) -> int:
    """Return the number of directions in which the curvature at a mode x (dim,) is zero up to rounding.

    A curvature that is small relative to the largest may be due to scales that differ by powers of ten. U then rises by
    about 0.5 within a posterior standard deviation on each side, which it does not if the curvature is rounding.
    """
    if target.prior_precision or len(precision) > MOST:
        return 0  # with a prior the curvature is positive in each direction
    values, vectors = torch.linalg.eigh(precision) if precision.ndim == 2 else (precision, None)
    small = torch.nonzero((values > 0) & (values < _SADDLE * values.max()))[:, 0]
    if not len(small):
        return 0
    vectors = torch.eye(len(values), dtype=values.dtype, device=x.device) if vectors is None else vectors
    steps = (vectors[:, small] * values[small].rsqrt()).T.to(x.dtype)
    there = x.repeat(2 * len(small) + 1, 1)
    there[1:, part] += torch.cat([steps, -steps])
    potential = target.gradient(there)[0].double()
    rises = (potential[1:] - potential[0]).view(2, -1)
    return int((~((rises > _RISES[0]) & (rises < _RISES[1])).all(0)).sum())


def refined(target: Target, x: Tensor, part: slice) -> Tensor:
    """Return the mode reached by Newton steps from x (dim,), or x itself if it is close enough."""
    precision = curvature(target, x, part)
    if distance(target, x, part, precision) < _AWAY:
        return x
    for _ in range(_STEPS):
        lower = _stepped(target, x, part, precision)
        if lower is None:
            break
        x, precision = lower, curvature(target, lower, part)
        if distance(target, x, part, precision) < _ARRIVED:
            break
    return x


def _stepped(target: Target, x: Tensor, part: slice, precision: Tensor) -> Tensor | None:
    """Return the result of a step that lowers U, damped as necessary; None if no step does."""
    potential, g = target.gradient(x[None])
    diagonal = torch.diag(precision.diagonal().abs().clamp_min(1e-12))
    for damping in _DAMPINGS:
        factor, failed = torch.linalg.cholesky_ex(precision + damping * diagonal)
        if bool(failed):
            continue
        new = x.clone()
        new[part] -= torch.cholesky_solve(g[0, part, None].double(), factor)[:, 0].to(x.dtype)
        if float(target.gradient(new[None])[0]) < float(potential):
            return new
    return None

r"""Go on to a mode by Newton's method where a first-order descent has not arrived.

With g the gradient and P the curvature of U, Newton's step is $-P^{-1} g$, and $g^\top P^{-1} g$ is the squared
distance to the mode in posterior standard deviations. A step that does not lower U is damped: a multiple of P's
diagonal is added (D. W. Marquardt, 1963, doi:10.1137/0111030).
"""

from __future__ import annotations

import torch
from torch import Tensor

from bnnviz.targets import Target

_STEPS = 50
_DAMPINGS = (0.0, *(10.0**power for power in range(-4, 5)))
# Squared posterior sds from the mode, in each direction: from where on steps are taken, and where they end.
_AWAY, _ARRIVED = 0.01, 1e-6


def curvature(target: Target, x: Tensor, part: slice) -> Tensor:
    """Return the curvature of U at x (dim,), the prior's included: a matrix of the coordinates of a part."""
    precision = target.curvature_matrix(x, part).double()
    precision.diagonal().add_(target.prior_precision or 0.0)
    return precision


def distance(target: Target, x: Tensor, part: slice, precision: Tensor) -> float:
    """Return g' P^-1 g / dim at x (dim,); P is a matrix or its diagonal."""
    g = target.gradient(x[None])[1][0, part].double()
    step = g / precision if precision.ndim == 1 else torch.linalg.lstsq(precision, g[:, None]).solution[:, 0]
    return float((g * step).sum().abs()) / len(g)


def refined(target: Target, x: Tensor, part: slice) -> Tensor:
    """Return the mode that Newton's steps lead to from x (dim,); x itself where that is near enough."""
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
    """Return where a step leads that lowers U, damped as much as that needs; None where no step does."""
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

"""Distinguish an edge of a density, beyond which U is not finite, from an overflow of U far out."""

from __future__ import annotations

import torch
from torch import Tensor

from bnnviz.targets import Target

_BISECTIONS = 50
_HUGE = {torch.float32: 1e12, torch.float64: 1e100}  # U next to an overflow; next to an edge it is smaller
_TIMES = (1.0, 4.0, 16.0)  # relative lengths of rays
_MOST_AXES = 50


def edge_between(target: Target, inside: Tensor, outside: Tensor) -> Tensor:
    """Return whether an edge of the density is between points (n, dim) with finite U and ``outside`` points, (n,).

    If U overflows at the outer points instead, it is huge at the last point with a finite U, or finite at the outer
    point in double precision.
    """
    target = target.clone()
    found = torch.isfinite(target.defined_potential(inside)) & ~torch.isfinite(target.defined_potential(outside))
    found &= ~_finite_in_double(target, outside)
    if not bool(found.any()):
        return found
    low, high = torch.zeros(len(inside), 1).to(inside), torch.ones(len(inside), 1).to(inside)
    last = target.defined_potential(inside).detach()
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        potential = target.defined_potential(torch.lerp(inside, outside, middle)).detach()
        finite = torch.isfinite(potential)
        last = torch.where(finite, potential, last)
        low, high = torch.where(finite[:, None], middle, low), torch.where(finite[:, None], high, middle)
    return found & (last.abs() < _HUGE.get(inside.dtype, 1e12))


def has_edge_around(target: Target, points: Tensor, length: float) -> bool:
    """Return whether there is an edge near points (n, dim), along the axes; U must be finite at one."""
    finite = torch.isfinite(target.clone().defined_potential(points))
    if not bool(finite.any()):
        return False
    start = points[finite][0]
    axes = torch.eye(len(start)).to(start)[:: -(-len(start) // _MOST_AXES)]
    rays = torch.cat([axes, -axes, points - start])
    rays = rays / torch.linalg.vector_norm(rays, dim=1, keepdim=True).clamp_min(1e-30)
    outside = torch.cat([start + times * length * rays for times in _TIMES])
    return bool(edge_between(target, start.expand_as(outside), outside).any())


def _finite_in_double(target: Target, x: Tensor) -> Tensor:
    """Return whether U is finite in double precision, (n,); False if double is in use or unsupported."""
    nowhere = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    if x.dtype == torch.float64:
        return nowhere
    try:
        potential = target.clone().to(x.device, torch.float64).defined_potential(x.double())
    except Exception:  # noqa: BLE001 - a function of the user may be of one precision
        return nowhere
    return torch.isfinite(potential)

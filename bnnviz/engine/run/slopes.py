"""Ask whether the gradient of a function that a user gave is its slope, before anything is sampled by it."""

from __future__ import annotations

import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.samplers import Sampler
from bnnviz.targets import Target

_POINTS = 16  # at which it is asked, some of them where chains begin
_WORK = 3e8  # multiply-adds that asking may take
_SHARE = 0.6  # of the points that have to say the same: a kink or an edge lies beside few
_APART = 0.05  # of the slope by which a gradient may differ from it
_CERTAIN = 10.0  # times the error of a difference quotient by which they have to differ


def check_slopes(target: Target, sampler: Sampler, x: Tensor) -> list[str]:
    """Refuse a function whose gradient is not the slope of its U, where that is cheap to see.

    Automatic differentiation gives 0, or a part of the slope, where a function rounds, compares, or takes a tensor off
    the tape. A piecewise deterministic process then samples another density, without a sign of it.

    Parameters
    ----------
    target : Target
    sampler : Sampler
        One that rejects is right with any gradient, only slow: it gets a remark.
    x : Tensor, shape (chains, dim)
        Where chains begin, with a finite U and gradient.

    Returns
    -------
    list of str
        Remarks.

    Raises
    ------
    BnnvizError
        If the gradient is zero where U changes, or is another one than that of U.
    """
    if target.located or target.jumps or 8 * _POINTS * target.examples * target.row_work > _WORK:
        return []
    target = target.clone()
    rng = torch.Generator(device=x.device).manual_seed(0)
    points = torch.cat([x[: _POINTS // 2], target.initial(_POINTS, rng)])[:_POINTS]
    potential, gradient = target.gradient(points)
    finite = torch.isfinite(potential) & torch.isfinite(gradient).all(-1)
    points, potential, gradient = points[finite], potential[finite], gradient[finite]
    if len(points) < _POINTS // 2:
        return []
    _refuse_none(target, sampler, points, gradient)
    return _other_slopes(target, sampler, points, gradient, rng)


def _refuse_none(target: Target, sampler: Sampler, points: Tensor, gradient: Tensor) -> None:
    """Refuse coordinates along which U changes and its gradient is zero at every point (n, dim)."""
    still = (gradient == 0).all(0)
    if not bool(still.any()):
        return
    moved = torch.where(still, points.roll(1, 0), points)
    before, after = (target.defined_potential(at).detach().double() for at in (points, moved))
    rounding = 1e3 * torch.finfo(points.dtype).eps * (1 + before.abs())
    if bool(((after - before).abs() > rounding)[torch.isfinite(after)].any()):
        names = [name for name, is_still in zip(target.names(), still.tolist(), strict=True) if is_still]
        which = "x" if len(names) == target.dim else ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise BnnvizError(
            f"U changes with {which}, but its gradient there is zero at all {len(points)} points that were tried, and"
            f" {sampler.registered} goes by the gradient: rounding, comparisons and detach() have none; write U as a"
            " function with a slope.",
            "target",
        )


def _other_slopes(
    target: Target, sampler: Sampler, points: Tensor, gradient: Tensor, rng: torch.Generator
) -> list[str]:
    """Refuse a gradient (n, dim) that is not the slope of U along random directions, or remark on it."""
    way = torch.randn(points.shape, generator=rng, device=points.device, dtype=points.dtype)
    way /= way.norm(dim=-1, keepdim=True)
    eps = torch.finfo(points.dtype).eps
    length = eps ** (1 / 4) * (1 + points.norm(dim=-1))
    wide, slope = (_quotient(target, points, way, part * length) for part in (1, 0.5))
    told = (gradient * way).sum(-1).double()
    beside = sum(target.gradient(points + sign * length[:, None] * way)[1] for sign in (1, -1))
    bends = ((beside * way).sum(-1).double() - 2 * told).abs()  # of waves that are shorter than the difference
    error = (wide - slope).abs() + bends + 8 * eps * target.defined_potential(points).detach().abs().double() / length
    differ = (told - slope).abs() > _CERTAIN * error + _APART * torch.maximum(told.abs(), slope.abs())
    known = torch.isfinite(slope) & torch.isfinite(wide)
    if int(known.sum()) < _POINTS // 2 or float(differ[known].double().mean()) < _SHARE:
        return []
    at = int((known & differ).nonzero()[0])
    said = (
        f"The gradient of U is not its slope: along a direction that was tried U changes by {float(slope[at]):.3g} a"
        f" unit, by its gradient {float(told[at]):.3g}, and so at {int(differ[known].sum())} of {int(known.sum())}"
        " points"
    )
    if "acceptance_rate" in sampler.sample_stats():
        return [f"{said}; {sampler.registered} is right with any gradient, but slow with a wrong one."]
    remedy = "look for detach(), .data, torch.no_grad(), rounding, and backward functions of your own"
    raise BnnvizError(f"{said}; {remedy}, or use HMC or NUTS, which are right with any gradient.", "target")


def _quotient(target: Target, points: Tensor, way: Tensor, length: Tensor) -> Tensor:
    """Return the central difference quotient of U (n,) along directions (n, dim)."""
    ends = [target.defined_potential(points + sign * length[:, None] * way).detach().double() for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2 * length)

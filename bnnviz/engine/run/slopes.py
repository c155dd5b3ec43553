"""Check that a user's function has a gradient at all, before sampling."""

from __future__ import annotations

import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.samplers import Sampler
from bnnviz.targets import Target

_POINTS = 16  # tested points, some of them starting points
_WORK = 3e8  # maximum multiply-adds of the check


def check_slopes(target: Target, sampler: Sampler, x: Tensor) -> None:
    """Raise for a function of x (chains, dim) that changes although its gradient is zero at all tried points.

    Automatic differentiation gives 0 if a function rounds, compares, or detaches a tensor. A process then never
    bounces, and a tree never turns. Samplers that reject after a given number of steps remain valid random walks;
    `bnnviz.engine.monitor.gradients` reports gradients that are only partly wrong.
    """
    stats = sampler.sample_stats()
    is_walk = "acceptance_rate" in stats and "reached_max_treedepth" not in stats
    if target.located or is_walk or 2 * _POINTS * target.examples * target.row_work > _WORK:
        return
    target = target.clone()
    rng = torch.Generator(device=x.device).manual_seed(0)
    points = torch.cat([x[: _POINTS // 2], target.initial(_POINTS, rng)])[:_POINTS]
    potential, gradient = target.gradient(points)
    finite = torch.isfinite(potential) & torch.isfinite(gradient).all(-1)
    points, still = points[finite], (gradient[finite] == 0).all(0)
    if len(points) < _POINTS // 2 or not bool(still.any()):
        return
    moved = torch.where(still, points.roll(1, 0), points)
    before, after = (target.defined_potential(at).detach().double() for at in (points, moved))
    rounding = 1e3 * torch.finfo(points.dtype).eps * (1 + before.abs())
    if bool(((after - before).abs() > rounding)[torch.isfinite(after)].any()):
        names = [name for name, is_still in zip(target.names(), still.tolist(), strict=True) if is_still]
        which = "x" if len(names) == target.dim else ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        raise BnnvizError(
            f"U changes with {which}, but its gradient there is zero at all {len(points)} points that were tried, and"
            f" {sampler.registered} relies on the gradient: rounding, comparisons and detach() have zero slope; write U"
            " as a function with a slope, or use HMC, which is a random walk there.",
            "target",
        )

"""Warn if a function mixes chains, or contradicts its gradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from bnnviz.engine.monitor import remedies
from bnnviz.engine.protocol import AnyRun
from bnnviz.messages import Message, Remedy
from bnnviz.targets import Callable
from bnnviz.targets.lines import Fit, fits

_LINES = 24
_LEAST = 0.05  # of U: a jump that changes a density by less than a twentieth is ignored
_FEW = 2  # lines
_GRAIN = 0.1  # of U: acceptance probabilities are off by a tenth if neighbouring numbers differ by this much


def of_gradient(run: AnyRun) -> Iterator[Message]:
    """Check the caller's own function at draws and on lines between them."""
    draws = run.store.view(run.alive)
    if (
        not isinstance(run.target, Callable)
        or run.sampler.traits.functional
        or draws.shape[0] * draws.shape[1] < 2 * _LINES
    ):
        return
    target, pooled = run.target.clone(), draws.flatten(0, 1)
    chosen = pooled[np.random.default_rng(0).choice(len(pooled), 2 * _LINES, replace=False)].to(target.dtype)
    together, again = (target.defined_potential(chosen).detach() for _ in range(2))
    if not _close(together, again):
        yield Message("random_density", Remedy("remove the random numbers from U"))
        return
    if not _close(together, torch.cat([target.defined_potential(point[None]).detach() for point in chosen])):
        yield Message("chains_interact", Remedy("reduce over the last axis only and avoid statistics over chains"))
        return
    if remedies.rejects(run):
        yield from _of_rounding(together)
    found = fits(target.gradient, chosen[:_LINES], chosen[_LINES:], _LEAST)
    yield from _of_fits(run, found.count(Fit.JUMP), found.count(Fit.OTHERWISE))


def _of_rounding(potential: torch.Tensor) -> Iterator[Message]:
    largest = float(potential.abs().nan_to_num(0.0, 0.0, 0.0).max())
    grain = largest * torch.finfo(potential.dtype).eps
    if grain > _GRAIN:
        yield Message(
            "rounding",
            Remedy("subtract a constant from U"),
            remedies.DOUBLE,
            largest=largest,
            dtype=str(potential.dtype).removeprefix("torch."),
            grain=grain,
        )


def _of_fits(run: AnyRun, jumps: int, otherwise: int) -> Iterator[Message]:
    rejects = remedies.rejects(run)
    if otherwise >= _FEW:
        effect = "proposals are poor" if rejects else f"draws of {run.sampler.title} are biased"
        remedy = Remedy("make all of U differentiable")
        yield Message("wrong_gradient", remedy, count=otherwise, lines=_LINES, effect=effect)
    elif jumps >= _FEW and not rejects:
        remedy = remedies.reference_sampler("use HMC or NUTS, whose acceptance step uses U itself")
        yield Message("jumps", remedy, count=jumps, lines=_LINES, sampler=run.sampler.title)


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.allclose(a, b, rtol=100 * torch.finfo(a.dtype).eps, atol=1e-5, equal_nan=True)

"""Warn where a function is no potential of each chain's own, or changes otherwise than its gradient says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from bnnviz.engine.monitor import remedies
from bnnviz.engine.protocol import DrawSource
from bnnviz.remedies import option
from bnnviz.targets import Callable
from bnnviz.targets.lines import Fit, fits

_LINES = 24
_LEAST = 0.05  # of U: a jump that alters a density by less than a twentieth is passed over
_FEW = 2  # lines
_GRAIN = 0.1  # of U: acceptance probabilities are wrong by a tenth where neighbouring numbers are so far apart


def of_gradient(run: DrawSource) -> Iterator[str]:
    """Say what is wrong with a function of the caller's own, tried at draws and on lines between them."""
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
        yield "U differs from one call to the next, so draws are of no density: leave out its random numbers."
        return
    if not _close(together, torch.cat([target.defined_potential(point[None]).detach() for point in chosen])):
        yield (
            "U of one chain depends on where the others are, so draws are of no density: sum over the last axis alone,"
            " and use no statistics over chains."
        )
        return
    if "acceptance_rate" in run.sampler.sample_stats():
        yield from _of_rounding(together)
    found = fits(target.gradient, chosen[:_LINES], chosen[_LINES:], _LEAST)
    yield from _of_fits(run, found.count(Fit.JUMP), found.count(Fit.OTHERWISE))


def _of_rounding(potential: torch.Tensor) -> Iterator[str]:
    largest = float(potential.abs().nan_to_num(0.0, 0.0, 0.0).max())
    grain = largest * torch.finfo(potential.dtype).eps
    if grain > _GRAIN:
        yield (
            f"U is up to {largest:.1g}, where {str(potential.dtype).removeprefix('torch.')} tells no values apart that"
            f" differ by less than {grain:.1g}, so moves are accepted by rounding errors: subtract a constant, or"
            f" sample in double precision ({option(dtype='float64')})."
        )


def _of_fits(run: DrawSource, jumps: int, otherwise: int) -> Iterator[str]:
    rejects = "acceptance_rate" in run.sampler.sample_stats()
    if otherwise >= _FEW:
        cost = "moves are proposed badly" if rejects else f"draws of {run.sampler.title}, which follows it, are wrong"
        yield (
            f"U changes otherwise than its gradient says on {otherwise} of {_LINES} lines between draws, as where a"
            f" part of it is detached or under torch.no_grad, so that {cost}: let gradients pass through all of U."
        )
    elif jumps >= _FEW and not rejects:
        yield (
            f"U jumps on {jumps} of {_LINES} lines between draws, which its gradient does not tell, so"
            f" {run.sampler.title} is wrong there: use HMC or NUTS{remedies.reference_sampler()}, which reject moves"
            " by U itself."
        )


def _close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.allclose(a, b, rtol=100 * torch.finfo(a.dtype).eps, atol=1e-5, equal_nan=True)

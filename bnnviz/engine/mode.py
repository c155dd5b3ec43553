"""The way down to a mode."""

from __future__ import annotations

import time
from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.targets import Target
from bnnviz.targets.rows import Batch


class Start(NamedTuple):
    """Where chains set out, x (chains, dim), and a mode (dim,) for samplers that need one; None where none does."""

    x: Tensor
    mode: Tensor | None


class Descent:
    """Adam on U for all chains at once, the step falling linearly to zero; advanced in slices.

    A target of many rows has it read a few of them at each step, drawn for each chain by a generator of its own.

    Parameters
    ----------
    target : Target
    x : Tensor, shape (chains, dim)
        Starting points.
    steps : int

    Attributes
    ----------
    examples : int
        Data rows that a step of one chain reads.
    seconds : float
        That the steps took which were taken.
    """

    def __init__(self, target: Target, x: Tensor, steps: int) -> None:
        self.target, self.steps, self.taken, self.seconds = target, steps, 0, 0.0
        self.x = x.clone().requires_grad_(True)
        few = target.descent_rows
        self._batched = few is not None and few < (target.data_rows or 0)
        self.examples = few if self._batched else target.examples
        self._rng = torch.Generator(x.device).manual_seed(0)
        self._adam = torch.optim.Adam([self.x], lr=target.descent_rate)
        self._schedule = torch.optim.lr_scheduler.LinearLR(self._adam, 1.0, 0.0, total_iters=steps)
        self.potential = torch.full(x.shape[:1], torch.inf)

    @property
    def done(self) -> bool:
        """Whether all steps are taken."""
        return self.taken >= self.steps

    def advance(self, steps: int) -> None:
        """Take some steps."""
        begun = time.perf_counter()
        for _ in range(min(steps, self.steps - self.taken)):
            self.potential, self.x.grad = self._seen().gradient(self.x.detach())
            self._adam.step()
            self._schedule.step()
            self.taken += 1
        self.seconds += time.perf_counter() - begun

    @property
    def seconds_left(self) -> float:
        """About the seconds that the other steps will take; nan before the first."""
        return self.seconds / self.taken * (self.steps - self.taken) if self.taken else float("nan")

    def _seen(self) -> Target | Batch:
        """Return what the next step sees of the target: all its rows, or a batch of them for each chain."""
        if not self._batched:
            return self.target
        shape, rng = (len(self.x), self.examples), self._rng
        return self.target.batch(torch.randint(self.target.data_rows, shape, generator=rng, device=rng.device))

    def ends(self) -> Tensor:
        """Return where each chain came to, (chains, dim)."""
        return self.x.detach().clone()

    def best(self) -> Tensor:
        """Return the end with the smallest U, (dim,)."""
        ends = self.ends()
        potential = self.target.gradient(ends)[0]
        return ends[torch.where(torch.isfinite(potential), potential, torch.inf).argmin()]


def first_points(x0: Tensor, descent: Descent | None, at_mode: bool, one_centre: bool) -> Start:
    """Return where chains set out: at random points x0 (chains, dim), or at modes.

    Parameters
    ----------
    descent : Descent or None
        The way down from x0 to modes, at its end; None where nobody needs one.
    at_mode : bool
        Whether chains set out from modes, each from the end of its own descent.
    one_centre : bool
        Whether a sampler has one centre for all chains, which then set out from it.
    """
    mode = None if descent is None else descent.best()
    if not at_mode:
        return Start(x0, mode)
    return Start(mode.expand_as(x0).clone() if one_centre else descent.ends(), mode)

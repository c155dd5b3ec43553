"""Moments of a path, from its exact integrals, for what is learnt in a warm-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.thinning import BOUNCE, REFRESH

#: Gives the integrals of position and square from position, velocity and two times (`PDMP.integrals`).
Integrals = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


class PathSums:
    """Time, and integrals of the path and of its square, for every chain, from an origin.

    Parameters
    ----------
    origin : Tensor, shape (chains, dim)
        Subtracted first: far from zero, squares would lose the digits that a variance is made of.
    """

    def __init__(self, origin: Tensor) -> None:
        self.origin = origin.double()
        self.first, self.second = torch.zeros_like(self.origin), torch.zeros_like(self.origin)
        self.time = torch.zeros(len(origin), 1, dtype=torch.float64, device=origin.device)
        self.events = torch.zeros((), dtype=torch.int64, device=origin.device)
        self.halved = False

    def add(self, integrals: Integrals, before: Any, info: Any) -> None:
        """Add the stretch from s0 to s1 of each chain."""
        first, second = integrals(before.x, before.v, info.s0, info.s1)
        span = (info.s1 - info.s0)[:, None]
        self.time += span
        # Far from zero, squares lose digits in the sum and not in one stretch.
        self.second += second - 2 * self.origin * first + self.origin.square() * span
        self.first += first - self.origin * span
        self.events += ((info.kind == BOUNCE) | (info.kind == REFRESH)).sum()

    def forget_half(self, wanted: int) -> None:
        """Begin anew once, when half of the events are there: on the way to the target there is nothing to learn."""
        if not self.halved and int(self.events) >= wanted / 2:
            self.halved = True
            for part in (self.first, self.second, self.time):
                part.zero_()

    def ready(self, wanted: int) -> bool:
        """Return whether enough has been seen."""
        return self.halved and int(self.events) >= wanted

    def moments(self) -> tuple[Tensor, Tensor]:
        """Return mean and variance (dim,) of all chains together, each counting by its time."""
        time = self.time.sum().clamp_min(1e-12)
        centre = self.origin.mean(0)
        shift = self.origin - centre
        first = (self.first + shift * self.time).sum(0) / time
        second = (self.second + 2 * shift * self.first + shift.square() * self.time).sum(0) / time
        return centre + first, (second - first.square()).clamp_min(0)

    def sd_within(self) -> Tensor:
        """Return the standard deviation (dim,) within the chains."""
        time = self.time.clamp_min(1e-12)
        variance = self.second / time - (self.first / time).square()
        return variance.clamp_min(0).mean(0).sqrt()

    def save(self) -> dict[str, Any]:
        """Return everything for a checkpoint."""
        return dict(vars(self))

    @classmethod
    def restored(cls, saved: dict[str, Any], device: torch.device) -> PathSums:
        """Return what was saved."""
        sums = cls(saved["origin"].to(device))
        vars(sums).update({k: v.to(device) if isinstance(v, Tensor) else v for k, v in saved.items()})
        return sums

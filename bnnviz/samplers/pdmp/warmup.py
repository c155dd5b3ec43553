r"""Compute moments of a path from its exact integrals, for what a warm-up learns.

Along a path x(t) of length T, with time and not events counting,

$$\hat\mu = \frac{1}{T} \int_0^T x(t)\,dt, \qquad
  \hat\sigma^2 = \frac{1}{T} \int_0^T x(t)^2\,dt - \hat\mu^2.$$
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class PathSums(NamedTuple):
    """Time, and integrals of the path and of its square, for every chain, from an origin; float64.

    Attributes
    ----------
    origin : Tensor, shape (chains, dim)
        Subtracted first: far from zero, squares would lose the digits that a variance is made of.
    time : Tensor, shape (chains, 1)
    first, second : Tensor, shape (chains, dim)
    events : Tensor, shape (), int64
        Events of all chains.
    halved : bool
        Whether the first half of the events has been forgotten.
    """

    origin: Tensor
    time: Tensor
    first: Tensor
    second: Tensor
    events: Tensor
    halved: bool

    @classmethod
    def begun(cls, origin: Tensor) -> PathSums:
        """Return empty sums of paths that begin at an origin (chains, dim)."""
        origin = origin.double()
        zero, time = torch.zeros_like(origin), origin.new_zeros(len(origin), 1)
        return cls(origin, time, zero, zero, torch.zeros((), dtype=torch.int64, device=origin.device), False)

    def added(self, span: Tensor, integrals: tuple[Tensor, Tensor], events: Tensor) -> PathSums:
        """Return them with a stretch of each chain's path: its length (chains,), its integrals, and its events."""
        (first, second), span = integrals, span[:, None]
        return self._replace(
            time=self.time + span,
            first=self.first + (first - self.origin * span),
            # Far from zero, squares lose digits in the sum and not in one stretch.
            second=self.second + (second - 2 * self.origin * first + self.origin.square() * span),
            events=self.events + events,
        )

    def without_half(self, wanted: int) -> PathSums:
        """Begin anew once, when half of the events are there: on the way to the target there is nothing to learn."""
        if self.halved or int(self.events) < wanted / 2:
            return self
        zero = torch.zeros_like(self.first)
        return self._replace(time=torch.zeros_like(self.time), first=zero, second=zero, halved=True)

    def complete(self, wanted: int) -> bool:
        """Return whether enough events have been seen."""
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

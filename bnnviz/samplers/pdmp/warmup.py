r"""Accumulate path statistics for the warm-up: moments by exact integrals, refreshments, and convergence of U.

Along a path x(t) of length T, moments are averages over time, not over events:

$$\hat\mu = \frac{1}{T} \int_0^T x(t)\,dt, \qquad
  \hat\sigma^2 = \frac{1}{T} \int_0^T x(t)^2\,dt - \hat\mu^2.$$
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_FEWEST_BOUNCES = 20  # over all chains, for a refresh rate
_OFF = 0.1  # relative deviation of a refresh rate that triggers a change
_FEWEST_WINDOWS = 2  # per part of the windows that are compared


class PathSums(NamedTuple):
    """Time, and integrals of the path and of its square, for every chain, from an origin; float64."""

    # (chains, dim): Subtracted first: far from zero, squares would lose the digits of the variance
    origin: Tensor
    time: Tensor  # (chains, 1)
    # Of shape (chains, dim) each
    first: Tensor
    second: Tensor
    events: Tensor  # (), int64: Events of all chains
    halved: bool  # Whether the first half of the events has been discarded

    @classmethod
    def begun(cls, origin: Tensor) -> PathSums:
        """Return empty sums of paths that begin at an origin (chains, dim)."""
        origin = origin.double()
        zero, time = torch.zeros_like(origin), origin.new_zeros(len(origin), 1)
        return cls(origin, time, zero, zero, torch.zeros((), dtype=torch.int64, device=origin.device), False)

    def added(self, span: Tensor, integrals: tuple[Tensor, Tensor], events: Tensor) -> PathSums:
        """Return the sums with a piece of each chain's path: its length (chains,), integrals, and events."""
        (first, second), span = integrals, span[:, None]
        return self._replace(
            time=self.time + span,
            first=self.first + (first - self.origin * span),
            # Far from zero, squares lose precision in the sum but not in one piece.
            second=self.second + (second - 2 * self.origin * first + self.origin.square() * span),
            events=self.events + events,
        )

    def without_half(self, required: int) -> PathSums:
        """Restart once, after half of the events, to discard the approach to the target."""
        if self.halved or int(self.events) < required / 2:
            return self
        zero = torch.zeros_like(self.first)
        return self._replace(time=torch.zeros_like(self.time), first=zero, second=zero, halved=True)

    def complete(self, required: int) -> bool:
        """Return whether enough events have been seen."""
        return self.halved and int(self.events) >= required

    def moments(self) -> tuple[Tensor, Tensor]:
        """Return mean and variance (dim,) of all chains together, weighted by time."""
        time = self.time.sum().clamp_min(1e-12)
        centre = self.origin.mean(0)
        shift = self.origin - centre
        first = (self.first + shift * self.time).sum(0) / time
        second = (self.second + 2 * shift * self.first + shift.square() * self.time).sum(0) / time
        return centre + first, (second - first.square()).clamp_min(0)

    def means(self) -> Tensor:
        """Return the mean (chains, dim) of each chain."""
        return self.origin + self.first / self.time.clamp_min(1e-12)

    def sd_within(self) -> Tensor:
        """Return the standard deviation (dim,) within the chains."""
        time = self.time.clamp_min(1e-12)
        variance = self.second / time - (self.first / time).square()
        return variance.clamp_min(0).mean(0).sqrt()


class RefreshCounts(NamedTuple):
    """The refresh rate and the counts from which it is learned."""

    rate: Tensor  # (), float64: Refreshments per unit of path time
    # (), float64: Of all chains, with the scaling in use
    bounces: Tensor
    time: Tensor

    @classmethod
    def begun(cls, rate: float, like: Tensor) -> RefreshCounts:
        """Return empty counts at a rate."""
        zero = like.new_zeros(())
        return cls(zero + rate, zero, zero)

    def restarted(self) -> RefreshCounts:
        """Return empty counts at the same rate."""
        return RefreshCounts(self.rate, torch.zeros_like(self.bounces), torch.zeros_like(self.time))

    def added(self, bounce: Tensor, span: Tensor) -> RefreshCounts:
        """Return the counts with the bounces (chains,) and path lengths of a step."""
        return self._replace(bounces=self.bounces + bounce.sum(), time=self.time + span.sum())

    def _target_rate(self, share: float) -> Tensor:
        return share / (1 - share) * self.bounces / self.time.clamp_min(1e-300)

    def is_off(self, share: float) -> bool:
        """Return whether the rate clearly differs from the one that gives refreshments this share of events."""
        if float(self.bounces) < _FEWEST_BOUNCES:
            return False
        return bool((self._target_rate(share) - self.rate).abs() > _OFF * self.rate)

    def tuned(self, share: float) -> RefreshCounts:
        """Return the counts with the rate that gives refreshments this share of events."""
        return self._replace(rate=self._target_rate(share))


class Energies(NamedTuple):
    r"""Means of U over windows of the warm-up, which show whether the chains have converged.

    The second half of the windows is split in two. The chains have converged if the mean of U over chains differs
    between these parts by no more than it varies between windows. The test needs eight windows, so that a steady trend,
    which moves U by 3.5 of these standard deviations, is detected.
    """

    total: Tensor  # (chains,), float64: Sum of U in this window
    count: Tensor | None = None  # (chains,), float64: Evaluations in it; None before the first one
    steps: int = 0  # Steps so far
    windows: tuple[Tensor, ...] = ()  # tuple of Tensor, (chains,): Means of U in completed windows

    def added(self, potential: Tensor, counted: Tensor) -> Energies:
        """Return the means with evaluations of U (chains,), where ``counted`` is true."""
        counted = counted & torch.isfinite(potential)
        count = torch.zeros_like(self.total) if self.count is None else self.count
        total = self.total + torch.where(counted, potential.double(), 0.0)
        return self._replace(total=total, count=count + counted, steps=self.steps + 1)

    def window_ended(self) -> Energies:
        """Return the means with this window; a chain without an evaluation repeats its previous mean."""
        if self.count is None:
            return self
        mean = self.total / self.count
        before = self.windows[-1] if self.windows else torch.zeros_like(mean)
        windows = (*self.windows, torch.where(self.count > 0, mean, before))
        return Energies(torch.zeros_like(mean), None, self.steps, windows)

    def arrived(self, alive: Tensor) -> bool:
        """Return whether U has stopped falling and rising, on average over the chains that are alive."""
        if not bool(alive.any()):
            return True
        half = len(self.windows) // 4
        if half < _FEWEST_WINDOWS:
            return False
        seen = torch.stack(self.windows[-2 * half :])[:, alive]
        first, second = seen[:half], seen[half:]
        change = (second.mean(0) - first.mean(0)).mean().abs()
        spread = (first.var(0) + second.var(0)).mean().div(2).sqrt()
        return bool(change <= spread)

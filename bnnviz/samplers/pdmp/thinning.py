r"""Draw event times of a piecewise deterministic process by thinning.

A chain's rate along its path, t counted from the last event, is the positive part of a *signed rate* f,

$$\lambda(t) = \max(0, f(t)), \qquad P(\tau > t) = \exp\Bigl(-\int_0^t \lambda(u)\,du\Bigr).$$

A *bound* keeps a piece of an envelope h for every chain and proposes the first arrival of a Poisson process of rate h.
The proposal t is accepted with probability $\lambda(t) / h(t)$ (Lewis and Shedler 1979, doi:10.1002/nav.3800260304),
which is exact for $\lambda \le h$. Where $\lambda > h$ the proposal is accepted, and $\max(0, \lambda / h - 1)$,
summed over the proposals, is the expected number of missed events. Pieces are clipped lines,

$$h(t) = \max(0, a t + b), \qquad \int_{t_0}^{t} h(u)\,du = E, \quad E \sim \mathrm{Exp}(1).$$

Everything is a tensor of shape (chains,) in float64; `torch.where` chooses a chain's branch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

PROBE, REJECTED, BOUNCE, REFRESH, HORIZON, VIOLATION, START = range(7)
"""Kind of an evaluation of the rate. A pending proposal is coded as REJECTED."""

PROPOSAL = REJECTED

ROUNDING = 1e-4
"""Relative excess of a rate over its envelope up to which it is rounding in single precision, not a violation."""


def is_event(kind: Tensor) -> Tensor:
    """Return where an evaluation was a bounce or a refreshment."""
    return (kind == BOUNCE) | (kind == REFRESH)


#: Returns exponential draws shaped like a tensor.
Draw = Callable[[Tensor], Tensor]


class Piece(NamedTuple):
    """The envelope from the certain time on: max(0, slope t + height) until ``end``."""

    slope: Tensor
    height: Tensor
    end: Tensor

    def at(self, t: Tensor) -> Tensor:
        """Return the envelope at time t."""
        return (self.slope * t + self.height).clamp_min(0)

    def hidden(self, unknown: Tensor) -> Piece:
        """Return the piece with nan where the envelope awaits a look-ahead."""
        return Piece(*(torch.where(unknown, torch.nan, part) for part in self))


class RatePoint(NamedTuple):
    """An evaluation of every chain's rate."""

    # (chains, dim): Position and velocity there
    x: Tensor
    v: Tensor
    # (chains,): Time since the last event, signed rate, and its time derivative; nan if unknown
    t: Tensor
    rate: Tensor
    slope: Tensor
    scaling: Any = ()  # The scaling of the dynamics (`Dynamics`)


class Plan(NamedTuple):
    """Where each chain evaluates its rate next."""

    t: Tensor  # Time of the evaluation since the last event
    kind: Tensor  # PROPOSAL, HORIZON (the path is certain up to there) or PROBE (a look-ahead)
    s: Tensor  # Time up to which the path is certain
    piece: Piece  # The envelope for thinning the evaluation; nan while a look-ahead is awaited
    skipped: Piece  # The envelope over the span that this plan passed without a proposal


class Bound:
    """An envelope of every chain's rate."""

    needs_curvature: bool = False  # uses the time derivative of the rate
    certain: bool = False  # the envelope is the rate: every proposal is an event
    retreats: bool = False  # a look-ahead that meets a non-finite value is repeated nearer
    reject_above: float = float("inf")  # factor on the envelope above which proposals are rejected

    def start(self, at: RatePoint, previous: Any, horizon: Tensor) -> Any:
        """Return the bound's state at t = 0 after an event, given the one before it, or None."""
        raise NotImplementedError

    def learn(self, state: Any, at: RatePoint, kind: Tensor) -> Any:
        """Return the bound's state after an evaluation."""
        raise NotImplementedError

    def forced(self, state: Any) -> Tensor | None:
        """Return the chains (chains,) whose next proposal becomes an event at any rate; None if no chain's does."""
        return None

    def last_rate(self, state: Any) -> Tensor:
        """Return the last rate before a look-ahead, for bounds that retreat."""
        raise NotImplementedError

    def plan(self, state: Any, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[Any, Plan]:
        """Return the bound's state and the next evaluation of chains that are certain up to s."""
        raise NotImplementedError


def first_arrival(t0: Tensor, slope: Tensor, height: Tensor, mass: Tensor) -> Tensor:
    r"""Return t such that max(0, slope u + height), integrated from t0 to t, is ``mass``.

    With $h_0 = a t_0 + b$,

    $$t = t_0 + \frac{2 E}{h_0 + \sqrt{h_0^2 + 2 a E}},$$

    which holds for every slope a, including zero, and keeps precision for small ones. Infinite if the line's mass is
    below E (a falling or negative line). A rising line that is negative at t0 counts from its zero.
    """
    value = slope * t0 + height
    rising = (value < 0) & (slope > 0)
    start = torch.where(rising, -height / torch.where(rising, slope, torch.ones_like(slope)), t0)
    value = value.clamp_min(0)
    square = value * value + 2 * slope * mass
    denominator = value + square.clamp_min(0).sqrt()
    t = start + 2 * mass / denominator
    return torch.where((square < 0) | (denominator <= 0), torch.inf, t)

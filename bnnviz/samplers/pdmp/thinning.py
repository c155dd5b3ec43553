r"""Draw event times of a piecewise deterministic process by thinning.

A chain's rate along its path, t counted from the last event, is the positive part of a *signed rate* f,

$$\lambda(t) = \max(0, f(t)), \qquad P(\tau > t) = \exp\Bigl(-\int_0^t \lambda(u)\,du\Bigr).$$

A *bound* keeps a piece of an envelope h for every chain and proposes the first arrival of a Poisson process of rate h.
The proposal t is accepted with probability $\lambda(t) / h(t)$ (Lewis and Shedler 1979, doi:10.1002/nav.3800260304),
which is right where $\lambda \le h$. Where it is not, the proposal is accepted, and
$\max(0, \lambda / h - 1)$, summed over the proposals, is on average how many events were missed. Pieces are clipped
lines,

$$h(t) = \max(0, a t + b), \qquad \int_{t_0}^{t} h(u)\,du = E, \quad E \sim \mathrm{Exp}(1).$$

Everything is a tensor of shape (chains,) in float64; `torch.where` chooses a chain's branch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

PROBE, REJECTED, BOUNCE, REFRESH, HORIZON, VIOLATION, START = range(7)
"""What an evaluation of the rate was. Until it is made, a proposal is coded as REJECTED."""

PROPOSAL = REJECTED

#: Gives exponential draws shaped like a tensor.
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
        """Return the piece with nan where the envelope is unknown: it waits for a look ahead."""
        return Piece(*(torch.where(unknown, torch.nan, part) for part in self))


class RatePoint(NamedTuple):
    """One evaluation of every chain's rate."""

    # (chains, dim): Position and velocity there
    x: Tensor
    v: Tensor
    # (chains,): Time since the last event, signed rate, and its time derivative; nan where that is unknown
    t: Tensor
    rate: Tensor
    slope: Tensor
    scaling: Any = ()  # What the dynamics are relative to (`Dynamics`)


class Plan(NamedTuple):
    """Where each chain evaluates its rate next."""

    t: Tensor  # Time of the evaluation since the last event
    kind: Tensor  # PROPOSAL, HORIZON (the path is certain up to there) or PROBE (a look ahead)
    s: Tensor  # Time up to which the path is certain
    piece: Piece  # The envelope that the evaluation is thinned under; nan while a look ahead is awaited
    skipped: Piece  # The envelope over the stretch that this plan passed without a proposal


class Bound:
    """An envelope of every chain's rate.

    Attributes
    ----------
    needs_curvature : bool
        It asks for the time derivative of the rate.
    certain : bool
        The envelope is the rate: every proposal is an event.
    retreats : bool
        A look ahead that meets a value that is not finite is repeated nearer.
    reject_above : float
        Proposals whose rate exceeds the envelope by more than this factor are rejected.
    """

    needs_curvature: bool = False
    certain: bool = False
    retreats: bool = False
    reject_above: float = float("inf")

    def start(self, at: RatePoint, previous: Any, horizon: Tensor) -> Any:
        """Return the bound's state at t = 0 after an event, given the one before it, or None."""
        raise NotImplementedError

    def learn(self, state: Any, at: RatePoint, kind: Tensor) -> Any:
        """Return the bound's state after an evaluation of a kind."""
        raise NotImplementedError

    def forced(self, state: Any) -> Tensor | None:
        """Return which chains (chains,) take their next proposal for an event, whatever the rate is; None: none."""
        return None

    def last_rate(self, state: Any) -> Tensor:
        """Return the last rate before a look ahead, of a bound that retreats."""
        raise NotImplementedError

    def plan(self, state: Any, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[Any, Plan]:
        """Return the bound's state and the next evaluation of chains that are certain up to s."""
        raise NotImplementedError


def first_arrival(t0: Tensor, slope: Tensor, height: Tensor, mass: Tensor) -> Tensor:
    r"""Return t such that max(0, slope u + height), integrated from t0 to t, is ``mass``.

    With $h_0 = a t_0 + b$ it is

    $$t = t_0 + \frac{2 E}{h_0 + \sqrt{h_0^2 + 2 a E}},$$

    which holds for every slope a, zero included, and loses no digits for small ones. Infinite where the line holds less
    mass than E (a falling or a negative line). A rising line that is negative at t0 counts from its zero.
    """
    value = slope * t0 + height
    rising = (value < 0) & (slope > 0)
    start = torch.where(rising, -height / torch.where(rising, slope, torch.ones_like(slope)), t0)
    value = value.clamp_min(0)
    square = value * value + 2 * slope * mass
    denominator = value + square.clamp_min(0).sqrt()
    t = start + 2 * mass / denominator
    return torch.where((square < 0) | (denominator <= 0), torch.inf, t)

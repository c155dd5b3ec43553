"""Event times of a piecewise deterministic process: envelopes of its rate, and thinning under them.

A chain's rate along its path is the positive part of a *signed rate* f(t), t counted from the last
event. A bound keeps, for every chain, an envelope piece h(t) = max(0, a t + b) that starts at the
time s up to which the path is certain, and says where to evaluate f next: at a proposal drawn from
h, or at a look-ahead point. Everything is a tensor of shape (chains,) in float64; a chain's branch
is chosen by `torch.where`.
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


class Plan(NamedTuple):
    """Where each chain evaluates its rate next.

    Attributes
    ----------
    t : Tensor
        Time of the evaluation since the last event.
    kind : Tensor
        PROPOSAL, HORIZON (the path is certain up to there) or PROBE (a look ahead).
    s : Tensor
        Time up to which the path is certain.
    piece : Piece
        The envelope that the evaluation is judged by; nan while a look ahead is awaited.
    skipped : Piece
        The envelope over the stretch that this plan passed without a proposal.
    """

    t: Tensor
    kind: Tensor
    s: Tensor
    piece: Piece
    skipped: Piece


def first_arrival(t0: Tensor, slope: Tensor, height: Tensor, mass: Tensor) -> Tensor:
    """Return t such that max(0, slope u + height), integrated from t0 to t, is ``mass``.

    Infinite where the line holds less mass than that (a falling or a negative line). Written as
    t0 + 2 E / (h0 + sqrt(h0^2 + 2 a E)), which unlike the published eq. 11 holds for every slope,
    zero included, and loses no digits for small ones (PDMP paper, corrected eq. 11).
    """
    value = slope * t0 + height
    rising = (value < 0) & (slope > 0)
    start = torch.where(rising, -height / torch.where(rising, slope, torch.ones_like(slope)), t0)
    value = value.clamp_min(0)
    square = value * value + 2 * slope * mass
    denominator = value + square.clamp_min(0).sqrt()
    t = start + 2 * mass / denominator
    return torch.where((square < 0) | (denominator <= 0), torch.inf, t)


class InterpolatedState(NamedTuple):
    """The line in use and the last evaluated point."""

    slope: Tensor
    height: Tensor
    last_t: Tensor
    last_f: Tensor
    probing: Tensor


class Interpolated:
    """The papers' envelope: the line through the last two evaluated points of the rate (Algorithm 2).

    No bound in the strict sense: a rate above the line is a violation, and widens the posterior.

    Parameters
    ----------
    alpha : float
        Factor on the line (eq. 12).
    t_init : float
        Second point of the first line (the first is t = 0).
    reject_above : float
        Proposals whose rate exceeds the envelope by more than this factor are rejected (the paper's
        R); infinity accepts them.
    clip : bool
        Clip the points at zero before drawing the line (the paper's eq. 12 read literally)
        instead of clipping the line. After a bounce both points are then 0 and the envelope is too.
    """

    needs_curvature = False
    redraws = False
    certain = False
    retreats = False

    def __init__(self, alpha: float, t_init: float, reject_above: float, clip: bool) -> None:
        self.alpha, self.t_init, self.reject_above, self.clip = alpha, t_init, reject_above, clip

    def start(
        self, x: Tensor, v: Tensor, f: Tensor, curvature: Tensor, known: Tensor, previous: Any, horizon: Tensor
    ) -> InterpolatedState:
        """Begin at t = 0 with rate f; the first line needs the point at t_init."""
        zero = torch.zeros_like(f)
        return InterpolatedState(zero, zero, zero, f, torch.ones_like(f, dtype=torch.bool))

    def learn(
        self,
        state: InterpolatedState,
        kind: Tensor,
        t: Tensor,
        f: Tensor,
        curvature: Tensor,
        violated: Tensor,
    ) -> InterpolatedState:
        """Draw the line through the last point and the new one."""
        old = state.last_f.clamp_min(0) if self.clip else state.last_f
        new = f.clamp_min(0) if self.clip else f
        gap = (t - state.last_t).clamp_min(1e-12)
        slope = self.alpha * (new - old) / gap
        # Algorithm 2 discards the point at t_init: the second line runs through t = 0 again.
        probe = kind == PROBE
        return InterpolatedState(
            slope,
            self.alpha * new - slope * t,
            torch.where(probe, state.last_t, t),
            torch.where(probe, state.last_f, f),
            torch.zeros_like(state.probing),
        )

    def plan(self, state: InterpolatedState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[InterpolatedState, Plan]:
        """Propose from the line, or look at the horizon if that comes first."""
        piece = Piece(state.slope, state.height, s + horizon)
        t = first_arrival(s, state.slope, state.height, draw(s))
        beyond = t > piece.end
        kind = torch.where(beyond, HORIZON, PROPOSAL)
        t = torch.where(beyond, piece.end, t)
        t = torch.where(state.probing, torch.clamp(horizon, max=self.t_init), t)
        kind = torch.where(state.probing, PROBE, kind)
        return state, Plan(t, kind, s, _hide(piece, state.probing), piece)


class GridState(NamedTuple):
    """A cell [t0, t1] with rate and derivative at both ends, and the line over it that bounds the rate."""

    t0: Tensor
    f0: Tensor
    d0: Tensor
    t1: Tensor
    f1: Tensor
    d1: Tensor
    slope: Tensor
    height: Tensor
    width: Tensor
    probing: Tensor

    def line(self, t: Tensor) -> Tensor:
        """Return the line at time t."""
        return self.slope * t + self.height


# By how much a cubic lies above its chord at most, for a unit of width and of slope that an end has beyond the chord's.
_CUBIC = 4 / 27
# Share of the rates at the ends: the rate is computed in single precision.
_ROUNDING = 1e-3
# Horizons that a cell may span. Two ends know nothing of a hump between them: with cells four times as long nothing is
# violated either, and a mixture comes out 4 % too wide.
_FARTHEST = 1.0
_RETREAT = 0.25  # of the way, after a look ahead that went too far
_WIDER, _AFTER_REJECTION, _AFTER_VIOLATION = 1.08, 0.9, 0.6


class Grid:
    """An envelope of lines from rates and derivatives at grid points (Corbella et al. 2022, Andral and Kamatani 2024).

    Over a cell whose ends are known the rate is taken for a cubic, which lies above its chord by at most 4/27 of the
    width times what the slopes at the ends have beyond the chord's: the line is the chord raised by that, plus a
    margin. A rate that is straight along the path, as on a Gaussian, is met exactly. A rejected proposal splits its
    cell, so nothing that was evaluated is wasted; each chain adapts the width of its cells. A rate above the line is
    counted, the line is raised and the proposal drawn again from the last certain time.

    Parameters
    ----------
    margin : float
        Share of the rate's departure from a straight line that is added to the line.
    widest : float
        Longest cell, in path time.
    """

    needs_curvature = True
    redraws = True
    certain = False
    retreats = True
    reject_above = float("inf")

    def __init__(self, margin: float, widest: float) -> None:
        self.margin, self.widest = margin, widest

    def start(
        self,
        x: Tensor,
        v: Tensor,
        f: Tensor,
        curvature: Tensor,
        known: Tensor,
        previous: GridState | None,
        horizon: Tensor,
    ) -> GridState:
        """Begin at t = 0 with rate f; its derivative is known after a refreshment, not after a bounce."""
        zero = torch.zeros_like(f)
        width = horizon.clamp_max(self.widest) if previous is None else previous.width
        slope = torch.where(known, curvature, torch.nan)
        probing = torch.ones_like(f, dtype=torch.bool)
        return GridState(zero, f, slope, width, zero, zero, zero, zero, width, probing)

    def learn(
        self, state: GridState, kind: Tensor, t: Tensor, f: Tensor, curvature: Tensor, violated: Tensor
    ) -> GridState:
        """Close the cell after a look ahead, split it after a rejection, raise the line after a violation.

        A look ahead that finds no finite rate is repeated nearer. After an event only the width is of use.
        """
        probe = kind == PROBE
        too_far = probe & ~torch.isfinite(f)
        f1, d1 = torch.where(probe, f, state.f1), torch.where(probe, curvature, state.d1)
        # The whole cell, its right and its left part at once: small tensors cost by the call.
        slopes, heights, lifts = self._line(
            torch.stack([state.t0, t, state.t0]),
            torch.stack([state.f0, f, state.f0]),
            torch.stack([state.d0, curvature, state.d0]),
            torch.stack([state.t1, state.t1, t]),
            torch.stack([f1, f1, f]),
            torch.stack([d1, d1, curvature]),
        )
        split = (kind == REJECTED) & ~violated
        raised = f - state.slope * t + torch.maximum(lifts[1], lifts[2])
        factor = torch.where(violated, _AFTER_VIOLATION, torch.where(split, _AFTER_REJECTION, 1.0))
        factor = torch.where(too_far, _RETREAT, factor)
        return GridState(
            torch.where(split, t, state.t0),
            torch.where(split, f, state.f0),
            torch.where(split, curvature, state.d0),
            torch.where(too_far, state.t0 + _RETREAT * (t - state.t0), state.t1),
            f1,
            d1,
            torch.where(violated, state.slope, torch.where(probe, slopes[0], slopes[1])),
            torch.where(violated, raised, torch.where(probe, heights[0], heights[1])),
            state.width * factor,
            too_far,
        )

    def _line(
        self, t0: Tensor, f0: Tensor, d0: Tensor, t1: Tensor, f1: Tensor, d1: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return slope and height of the line over a cell, and how far it lies above the chord."""
        width = (t1 - t0).clamp_min(1e-12)
        # Where the slope at t0 is unknown, the tangent at t1 carried back to t0 bounds a concave rate.
        unknown = torch.isnan(d0)
        first = torch.where(unknown, torch.maximum(f0, f1 - d1 * width), f0)
        chord = (f1 - first) / width
        before = torch.where(unknown, (first - f0) / width, d0 - chord)
        after = chord - d1
        above = torch.where(unknown, 0.0, before.clamp_min(0)) + after.clamp_min(0)
        lift = width * (_CUBIC * above + self.margin * (before.abs() + after.abs()))
        lift = lift + _ROUNDING * (f0.abs() + f1.abs())
        return chord, first - chord * t0 + lift, lift

    def plan(self, state: GridState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[GridState, Plan]:
        """Propose within the cell, or pass on to the next one and look at its end."""
        t = first_arrival(s, state.slope, state.height, draw(s))
        passed = ~state.probing & (t > state.t1)
        most = (_FARTHEST * horizon).clamp_max(self.widest)
        width = torch.where(passed, torch.minimum(state.width * _WIDER, most), state.width)
        end = torch.where(passed, state.t1 + width, state.t1)
        after = torch.where(passed, state.t1, s)
        probing = state.probing | passed
        new = state._replace(
            t0=torch.where(passed, state.t1, state.t0),
            f0=torch.where(passed, state.f1, state.f0),
            d0=torch.where(passed, state.d1, state.d0),
            t1=end,
            width=width,
            probing=probing,
        )
        piece = Piece(state.slope, state.height, state.t1)
        kind = torch.where(probing, PROBE, PROPOSAL)
        return new, Plan(torch.where(probing, end, t), kind, after, _hide(piece, probing), piece)


def _hide(piece: Piece, unknown: Tensor) -> Piece:
    """Mark the envelope as unknown (nan) where it waits for a look ahead."""
    return Piece(*(torch.where(unknown, torch.nan, part) for part in piece))

r"""Bound noisy rates by a regression line, raised by its predicted spread: the bound of the Stochastic BPS.

The rates $f_i$ that were evaluated since the last event, at times $t_i$, are $\beta_0 + \beta_1 t_i$ plus noise of
variance $c^2$. With a normal prior for the slope $\beta_1$, as slopes were before, and a flat one for $\beta_0$, the
rate of another batch at t is predicted to be $N(m(t), \rho(t)^2)$, and

$$h(t) = \max(0, m(t) + k \rho(t)), \qquad \rho(t)^2 = (1, t)\, \Sigma\, (1, t)^\top + c^2,$$

with $\Sigma$ the posterior covariance of $(\beta_0, \beta_1)$. $\rho$ is convex, so that its chord up to the horizon is
above it, and the envelope is a line. The paper computes $c^2$ from the gradients of the single rows of a batch; here
it is learnt from how far rates were off their predictions. With k = 3 a rate is above the line about once in 700
proposals, if the noise is normal and the rate a line.

Source: A. Pakman, D. Gilboa, D. Carlson and L. Paninski, Stochastic bouncy particle sampler, ICML 2017, section 3,
doi:10.48550/arXiv.1609.00770.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers.pdmp.thinning import (
    BOUNCE,
    HORIZON,
    PROPOSAL,
    REJECTED,
    Bound,
    Draw,
    Piece,
    Plan,
    RatePoint,
    first_arrival,
)

_MEMORY = 200.0  # evaluations, or segments, that what is learnt goes back
_LEAST = 1e-12  # variance


class RegressionState(NamedTuple):
    """What a segment has told so far, and what all segments have.

    Attributes
    ----------
    count, t, tt, rate, t_rate : Tensor, shape (chains,)
        Number of evaluations since the last event, and sums of t, t^2, f and t f.
    noise, seen : Tensor
        Variance of a rate around its line, and from how many evaluations it is known.
    slope, slope_variance, segments : Tensor
        Mean and variance of the slopes of segments, and of how many.
    """

    count: Tensor
    t: Tensor
    tt: Tensor
    rate: Tensor
    t_rate: Tensor
    noise: Tensor
    seen: Tensor
    slope: Tensor
    slope_variance: Tensor
    segments: Tensor


class _Line(NamedTuple):
    """The posterior of a line: its mean, and the covariance of intercept and slope."""

    intercept: Tensor
    slope: Tensor
    variance: Tensor
    covariance: Tensor
    slope_variance: Tensor

    def at(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """Return the line's mean and variance at time t."""
        variance = self.variance + 2 * t * self.covariance + t * t * self.slope_variance
        return self.intercept + self.slope * t, variance.clamp_min(0)


class Regression(Bound):
    """The regression line of the rates of a segment, raised by k predicted standard deviations.

    Parameters
    ----------
    width : float
        The number k.
    """

    def __init__(self, width: float) -> None:
        self.width = width

    def start(self, at: RatePoint, previous: RegressionState | None, horizon: Tensor) -> RegressionState:
        """Begin at t = 0 with the rate there; what was learnt stays."""
        zero, one = torch.zeros_like(at.rate), torch.ones_like(at.rate)
        if previous is None:
            scale = at.rate.square().clamp_min(_LEAST)
            return RegressionState(one, zero, zero, at.rate, zero, scale, zero, zero, scale / horizon.square(), zero)
        learnt = _with_slope(previous)
        return learnt._replace(count=one, t=zero, tt=zero, rate=at.rate, t_rate=zero)

    def learn(self, state: RegressionState, at: RatePoint, kind: Tensor) -> RegressionState:
        """Learn the noise from how far a rate is off its prediction, and let it join the line's rates."""
        looked = ((kind == REJECTED) | (kind == BOUNCE) | (kind == HORIZON)) & torch.isfinite(at.rate)
        mean, variance = _line(state).at(at.t)
        seen = state.seen + looked
        error = (at.rate - mean).square() / (1 + variance / state.noise)
        noise = state.noise + (error - state.noise) / seen.clamp(1, _MEMORY)
        joined = looked.to(at.rate.dtype)
        rate = torch.where(looked, at.rate, 0.0)
        return state._replace(
            count=state.count + joined,
            t=state.t + joined * at.t,
            tt=state.tt + joined * at.t.square(),
            rate=state.rate + rate,
            t_rate=state.t_rate + rate * at.t,
            noise=torch.where(looked, noise, state.noise).clamp_min(_LEAST),
            seen=seen,
        )

    def plan(self, state: RegressionState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[RegressionState, Plan]:
        """Propose under the chord of the raised line up to the horizon, or look there."""
        end, line = s + horizon, _line(state)
        (low, low_variance), (high, high_variance) = line.at(s), line.at(end)
        begins = low + self.width * (low_variance + state.noise).sqrt()
        ends = high + self.width * (high_variance + state.noise).sqrt()
        slope = (ends - begins) / horizon
        piece = Piece(slope, begins - slope * s, end)
        t = first_arrival(s, piece.slope, piece.height, draw(s))
        beyond = t > end
        kind = torch.where(beyond, HORIZON, PROPOSAL)
        return state, Plan(torch.where(beyond, end, t), kind, s, piece, piece)


def _line(state: RegressionState) -> _Line:
    """Return the posterior of the segment's line: normal equations, with the slopes of other segments for a prior."""
    prior = state.noise / state.slope_variance
    across = state.tt + prior
    determinant = (state.count * across - state.t.square()).clamp_min(torch.finfo(across.dtype).tiny)
    right = state.t_rate + prior * state.slope
    intercept = (across * state.rate - state.t * right) / determinant
    slope = (state.count * right - state.t * state.rate) / determinant
    share = state.noise / determinant
    return _Line(intercept, slope, share * across, -share * state.t, share * state.count)


def _with_slope(state: RegressionState) -> RegressionState:
    """Return what is known of slopes after a segment, which tells one if it has two rates."""
    told = state.count > 1
    segments = state.segments + told
    gain = 1 / segments.clamp(1, _MEMORY)
    off = _line(state).slope - state.slope
    variance = state.slope_variance + (off.square() - state.slope_variance) * gain
    return state._replace(
        slope=torch.where(told, state.slope + off * gain, state.slope),
        slope_variance=torch.where(told, variance, state.slope_variance).clamp_min(_LEAST),
        segments=segments,
    )

r"""Bound noisy rates by a regression line, raised by its predicted spread: the bound of the Stochastic BPS.

The rates $f_i$ evaluated since the last event, at times $t_i$, are $\beta_0 + \beta_1 t_i$ plus noise of variance
$c^2$. Rates are proportional to the speed of the path, so everything is normalised to unit speed: rates over the speed,
against the distance. With a normal prior for the slope $\beta_1$, from previous slopes, and a flat one for $\beta_0$,
the rate of another batch at t is predicted to be $N(m(t), \rho(t)^2)$, and

$$h(t) = \max(0, m(t) + k \rho(t)), \qquad \rho(t)^2 = (1, t)\, \Sigma\, (1, t)^\top + c^2,$$

with $\Sigma$ the posterior covariance of $(\beta_0, \beta_1)$. $\rho$ is convex, so its chord up to the horizon is
above it, and the envelope is a line. The paper computes $c^2$ from the gradients of the single rows of a batch; here
it is learned from the prediction errors. With k = 3 a rate exceeds the line about once in 700 proposals, if the noise
is normal and the rate linear.

Source: A. Pakman, D. Gilboa, D. Carlson and L. Paninski, Stochastic bouncy particle sampler, ICML 2017, section 3,
doi:10.48550/arXiv.1609.00770.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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

_MEMORY = 200.0  # evaluations, or segments, that averages remember
_LEAST = 1e-12  # variance


class RegressionState(NamedTuple):
    """Statistics of the current segment and of all segments, for unit speed."""

    # (chains,): Number of evaluations since the last event, and sums of t, t^2, f and t f
    count: Tensor
    t: Tensor
    tt: Tensor
    rate: Tensor
    t_rate: Tensor
    # Variance of a rate around its line, and the number of evaluations behind it
    noise: Tensor
    seen: Tensor
    # Mean, variance and number of the slopes of segments
    slope: Tensor
    slope_variance: Tensor
    segments: Tensor
    speed: Tensor  # Speed of the chain's path


class _Regressed(NamedTuple):
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
    """The regression line of a segment's rates, raised by ``width`` predicted sds; ``speed`` is that of a path."""

    def __init__(self, width: float, speed: Callable[[Tensor, Tensor, Any], Tensor]) -> None:
        self.width, self.speed = width, speed

    def start(self, at: RatePoint, previous: RegressionState | None, horizon: Tensor) -> RegressionState:
        """Start at t = 0 with the rate there; learned statistics are kept."""
        zero, one = torch.zeros_like(at.rate), torch.ones_like(at.rate)
        speed = self.speed(at.x, at.v, at.scaling).double().clamp_min(1e-12)
        rate = at.rate / speed
        if previous is None:
            noise = rate.square().clamp_min(_LEAST)
            slopes = noise / (horizon * speed).square()
            return RegressionState(one, zero, zero, rate, zero, noise, zero, zero, slopes, zero, speed)
        learned = _with_slope(previous)
        return learned._replace(count=one, t=zero, tt=zero, rate=rate, t_rate=zero, speed=speed)

    def learn(self, state: RegressionState, at: RatePoint, kind: Tensor) -> RegressionState:
        """Learn the noise from the rate's prediction error, and add the rate to the line."""
        looked = ((kind == REJECTED) | (kind == BOUNCE) | (kind == HORIZON)) & torch.isfinite(at.rate)
        t, rate = at.t * state.speed, at.rate / state.speed
        mean, variance = _line(state).at(t)
        seen = state.seen + looked
        error = (rate - mean).square() / (1 + variance / state.noise)
        noise = state.noise + (error - state.noise) / seen.clamp(1, _MEMORY)
        joined = looked.to(at.rate.dtype)
        rate = torch.where(looked, rate, 0.0)
        return state._replace(
            count=state.count + joined,
            t=state.t + joined * t,
            tt=state.tt + joined * t.square(),
            rate=state.rate + rate,
            t_rate=state.t_rate + rate * t,
            noise=torch.where(looked, noise, state.noise).clamp_min(_LEAST),
            seen=seen,
        )

    def plan(self, state: RegressionState, s: Tensor, draw: Draw, horizon: Tensor) -> tuple[RegressionState, Plan]:
        """Propose under the chord of the raised line up to the horizon, or evaluate there."""
        end = s + horizon
        begins, ends = self._raised(state, s), self._raised(state, end)
        slope = (ends - begins) / horizon
        piece = Piece(slope, begins - slope * s, end)
        t = first_arrival(s, piece.slope, piece.height, draw(s))
        beyond = t > end
        kind = torch.where(beyond, HORIZON, PROPOSAL)
        return state, Plan(torch.where(beyond, end, t), kind, s, piece, piece)

    def _raised(self, state: RegressionState, t: Tensor) -> Tensor:
        """Return the predicted rate at time t, raised by k standard deviations."""
        mean, variance = _line(state).at(t * state.speed)
        return state.speed * (mean + self.width * (variance + state.noise).sqrt())


def _line(state: RegressionState) -> _Regressed:
    """Return the posterior of the segment's line by normal equations, with the slopes of other segments as prior."""
    prior = state.noise / state.slope_variance
    across = state.tt + prior
    determinant = (state.count * across - state.t.square()).clamp_min(torch.finfo(across.dtype).tiny)
    right = state.t_rate + prior * state.slope
    intercept = (across * state.rate - state.t * right) / determinant
    slope = (state.count * right - state.t * state.rate) / determinant
    share = state.noise / determinant
    return _Regressed(intercept, slope, share * across, -share * state.t, share * state.count)


def _with_slope(state: RegressionState) -> RegressionState:
    """Return the slope statistics updated by a segment that has at least two rates."""
    has_slope = state.count > 1
    segments = state.segments + has_slope
    gain = 1 / segments.clamp(1, _MEMORY)
    off = _line(state).slope - state.slope
    variance = state.slope_variance + (off.square() - state.slope_variance) * gain
    return state._replace(
        slope=torch.where(has_slope, state.slope + off * gain, state.slope),
        slope_variance=torch.where(has_slope, variance, state.slope_variance).clamp_min(_LEAST),
        segments=segments,
    )

"""Event times: the inversion of a clipped line, and every degenerate envelope."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from bnnviz.samplers.pdmp.bounds.grid import Grid, RaisedGrid
from bnnviz.samplers.pdmp.bounds.interpolated import Interpolated
from bnnviz.samplers.pdmp.thinning import BOUNCE, HORIZON, PROBE, PROPOSAL, REJECTED, RatePoint, first_arrival

numbers = st.floats(-50, 50, allow_nan=False).map(lambda x: round(x, 6))


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def arrival(t0: float, slope: float, height: float, mass: float) -> float:
    return float(first_arrival(tensor(t0), tensor(slope), tensor(height), tensor(mass))[0])


@settings(max_examples=300, deadline=None)
@given(t0=st.floats(0, 5), slope=numbers, height=numbers, mass=st.floats(1e-3, 20))
def test_inversion_agrees_with_numerical_integration(t0, slope, height, mass):
    t = arrival(t0, slope, height, mass)
    zero = -height / slope if slope else math.inf

    def integral(end: float) -> float:
        corner = [zero] if t0 < zero < end else None
        return integrate.quad(lambda u: max(0.0, slope * u + height), t0, end, points=corner)[0]

    if math.isinf(t):
        # The line never holds that much: its whole positive mass is smaller.
        total = integral(zero) if slope < 0 and zero > t0 else 0.0
        assert slope <= 0
        assert total < mass * (1 + 1e-9)
    else:
        assert t >= t0
        assert integral(t) == pytest.approx(mass, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("t0", "slope", "height", "mass", "expected"),
    [
        (0.0, 0.0, 2.0, 1.0, 0.5),  # constant
        (1.0, 0.0, 2.0, 1.0, 1.5),
        (0.0, 2.0, -2.0, 1.0, 2.0),  # negative and rising: starts at its zero
        (0.0, -1.0, 1.0, 0.4, 1 - math.sqrt(0.2)),  # falling, enough mass
        (0.0, -1.0, 1.0, 0.6, math.inf),  # falling, not enough
        (0.0, -1.0, -1.0, 0.1, math.inf),  # negative and falling
        (0.0, 0.0, 0.0, 0.1, math.inf),  # both rates zero
        (0.0, 0.0, -1.0, 0.1, math.inf),
    ],
)
def test_degenerate_lines(t0, slope, height, mass, expected):
    assert arrival(t0, slope, height, mass) == pytest.approx(expected)


def test_small_slopes_keep_their_digits_in_single_precision():
    single = {"dtype": torch.float32}
    t = first_arrival(
        torch.tensor([0.0], **single),
        torch.tensor([1e-4], **single),
        torch.tensor([3.0], **single),
        torch.tensor([2.0], **single),
    )
    exact = (-3 + math.sqrt(9 + 4e-4)) / 1e-4
    assert float(t[0]) == pytest.approx(exact, rel=1e-6)


def interpolated(**changes) -> Interpolated:
    return Interpolated(**({"alpha": 1.0, "t_init": 1.0, "reject_above": math.inf, "clip": False} | changes))


NOWHERE = torch.zeros(1, 1)  # these bounds do not ask where the chain is


def point(t: float, rate: float, slope: float = 0.0) -> RatePoint:
    return RatePoint(NOWHERE, NOWHERE, tensor(t), tensor(rate), tensor(slope))


def drawing(mass: float):
    """Give the exponential draws of a plan."""
    return lambda like: torch.full_like(like, mass)


def kind(code: int) -> torch.Tensor:
    return torch.tensor([code], dtype=torch.int8)


def after_first_line(bound: Interpolated, f0: float, f1: float, horizon: float = 10.0):
    state = bound.start(point(0.0, f0), None, tensor(horizon))
    state, plan = bound.plan(state, tensor(0.0), drawing(1.0), tensor(horizon))
    assert int(plan.kind) == PROBE
    return bound.learn(state, point(float(plan.t), f1), plan.kind), plan


def test_first_line_runs_through_zero_and_t_init():
    bound = interpolated(t_init=0.5)
    state, probe = after_first_line(bound, -1.0, 1.0)
    assert float(probe.t) == 0.5
    _, plan = bound.plan(state, tensor(0.0), drawing(1.0), tensor(10.0))
    assert [float(plan.piece.at(tensor(t))) for t in (0.0, 0.25, 0.5, 1.0)] == pytest.approx([0, 0, 1, 3])
    assert int(plan.kind) == PROPOSAL
    assert float(plan.t) == pytest.approx(0.25 + math.sqrt(2 * 1.0 / 4))


def test_second_line_forgets_t_init():
    """Algorithm 2 discards the point at t_init once the first proposal is rejected."""
    bound = interpolated()
    state, _ = after_first_line(bound, 0.0, 5.0)
    state = bound.learn(state, point(2.0, 4.0), kind(REJECTED))
    assert float(state.slope) == pytest.approx(2.0)  # through (0, 0) and (2, 4)


def test_clipped_points_leave_an_empty_envelope_after_a_bounce():
    for clip, rising in ((True, False), (False, True)):
        bound = interpolated(clip=clip)
        state, _ = after_first_line(bound, -3.0, -1.0)
        _, plan = bound.plan(state, tensor(0.0), drawing(1.0), tensor(100.0))
        assert (int(plan.kind) == PROPOSAL) is rising
        if clip:
            assert int(plan.kind) == HORIZON and float(plan.t) == 100.0


def test_horizon_is_reached_when_the_line_holds_too_little():
    bound = interpolated()
    state, _ = after_first_line(bound, 1.0, 0.0, horizon=3.0)
    _, plan = bound.plan(state, tensor(0.5), drawing(5.0), tensor(3.0))
    assert int(plan.kind) == HORIZON
    assert float(plan.t) == pytest.approx(3.5)


def grid_line(f: np.polynomial.Polynomial, t0: float, t1: float, margin: float, known: bool = True):
    """Return the grid's line over a cell, and the rate, at many points of it."""
    d = f.deriv()
    ends = [t0, f(t0), d(t0) if known else math.nan, t1, f(t1), d(t1)]
    slope, height = Grid(margin, 10.0)._line(*(tensor(float(end)) for end in ends))
    t = np.linspace(t0, t1, 101)
    return float(slope) * t + float(height), f(t)


coefficients = st.lists(st.floats(-5, 5), min_size=4, max_size=4)


@settings(max_examples=300, deadline=None)
@given(c=coefficients, t0=st.floats(0, 2), width=st.floats(0.05, 2))
def test_grid_bounds_every_cubic(c, t0, width):
    line, rate = grid_line(np.polynomial.Polynomial(c), t0, t0 + width, 0.0)
    assert (line >= rate - 1e-6 * (1 + abs(rate).max())).all()


@settings(max_examples=300, deadline=None)
@given(c=coefficients, t0=st.floats(0, 2), width=st.floats(0.05, 2))
def test_grid_bounds_every_parabola_whose_first_slope_is_unknown(c, t0, width):
    line, rate = grid_line(np.polynomial.Polynomial(c[:3]), t0, t0 + width, 0.0, known=False)
    assert (line >= rate - 1e-6 * (1 + abs(rate).max())).all()


@settings(max_examples=100, deadline=None)
@given(a=st.floats(-5, 5), b=st.floats(-5, 5), known=st.booleans())
def test_grid_meets_a_straight_rate(a, b, known):
    """On a Gaussian nothing is rejected but for the share that is left for rounding."""
    line, rate = grid_line(np.polynomial.Polynomial([b, a]), 0.5, 1.5, 0.1, known)
    assert line == pytest.approx(rate, abs=3e-3 * (abs(a) + abs(b)) + 1e-9)


@settings(max_examples=300, deadline=None)
@given(
    a=st.floats(-5, 5),
    b=st.floats(-5, 5),
    jump=st.floats(-5, 5),
    bend=st.floats(-3, 3),
    share=st.floats(0.0, 1.0),
    width=st.floats(0.05, 2),
)
def test_grid_bounds_a_rate_that_jumps_anywhere_in_a_cell(a, b, jump, bend, share, width):
    """A straight rate that jumps at one time, to another slope or the same where it jumps up."""
    t, at = np.linspace(0, width, 201), share * width
    bend = bend if jump == 0 else 0.0
    rate = a + b * t + np.where(t > at, jump + bend * (t - at), 0.0)
    ends = [0.0, rate[0], b + (bend if at == 0 else 0), width, rate[-1], b + (bend if at < width else 0)]
    slope, height = Grid(0.0, 10.0)._line(*(tensor(float(end)) for end in ends))
    assert (float(slope) * t + float(height) >= rate - 1e-6).all()


def test_grid_passes_an_empty_cell_to_the_next_one():
    bound = Grid(0.1, 10.0)
    state = bound.start(point(0.0, -5.0, 1.0), None, tensor(0.5))
    state = bound.learn(state, point(0.5, -4.5, 1.0), kind(PROBE))
    assert float(state.line(tensor(0.5))) < 0
    state, plan = bound.plan(state, tensor(0.0), drawing(1.0), tensor(0.5))
    assert int(plan.kind) == PROBE
    assert float(plan.s) == 0.5
    assert float(plan.t) > 0.5
    assert float(state.t0) == 0.5 and float(state.f0) == -4.5


def test_the_reach_grows_with_a_rate_above_the_line_and_stays_for_the_next_cells():
    bound = RaisedGrid(Grid(0.1, 10.0), lambda x, v, scaling: tensor(2.0))
    state = bound.learn(bound.start(point(0.0, 1.0), None, tensor(1.0)), point(1.0, 1.0), kind(PROBE))
    assert float(state.reach) == 0.0
    low = float(state.grid.line(tensor(0.5)))
    after = bound.learn(state, point(0.5, 7.0), kind(BOUNCE))
    assert float(after.reach) * 2 == pytest.approx(7.0 - low)
    following = bound.start(point(0.0, 1.0), after, tensor(1.0))
    following = bound.learn(following, point(1.0, 1.0), kind(PROBE))
    _, plan = bound.plan(following, tensor(0.0), drawing(0.01), tensor(1.0))
    assert float(plan.piece.at(plan.t)) >= 7.0 - 0.01

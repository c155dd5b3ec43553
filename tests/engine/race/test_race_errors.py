"""Errors of the entries of a race, their ranks, and the reference that they are measured against."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from families import race_of
from hypothesis import given
from hypothesis import strategies as st

from bnnviz import samplers
from bnnviz.engine.race import estimates, reference
from bnnviz.engine.race.race import Race
from tests.driven import finished

_ENDED: list[Race] = []


def ended() -> Race:
    """Return a race of three that has ended; the same for all examples."""
    if not _ENDED:
        _ENDED.append(finished(Race(race_of("bps", "hmc", "sgld"))))
    return _ENDED[0]


@pytest.mark.slow
@given(errors=st.lists(st.sampled_from([math.nan, math.inf, 0.5, 0.1, 2.0]), min_size=3, max_size=3))
def test_what_is_not_finite_never_ranks(errors):
    """However often an entry's error is unknown: ranks are 1, 2, ... of the known ones, the unknown come after them."""
    race = ended()
    known = iter(errors)
    race.measure.found_errors = lambda number: [estimates.EstimateError(*[next(known)] * 2)]
    rows = race.table()
    ranked = [row["error"] for row in rows if row["rank"] is not None]
    assert ranked == sorted(error for error in errors if math.isfinite(error))
    assert [row["rank"] for row in rows] == [*range(1, len(ranked) + 1), *[None] * (3 - len(ranked))]


@pytest.mark.parametrize("quantities", [2, 30])
@pytest.mark.parametrize("bias", [0.05, 0.5])
def test_standard_errors_of_errors_are_their_spread_over_repetitions(quantities: int, bias: float) -> None:
    """Of the logarithm, within a fifth; nearer to the truth than chance leads they are larger: the safe side."""
    truth = estimates.TrueMoments(np.zeros(quantities), np.ones(quantities), np.ones(quantities))
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((300, 16, 40, quantities)) + bias
    found = [estimates.error(estimates.moments_of(each), truth) for each in draws]
    spread = np.std([np.log(each.both) for each in found])
    assert np.median([each.log_se for each in found]) == pytest.approx(spread, rel=0.2)


def standing(*errors: tuple[float, float]) -> tuple[list[str | None], str]:
    """Return the ranks, by the entry's number, and what is said, of errors with their standard errors."""
    race = ended()
    race.measure.found_errors = lambda number: [
        estimates.EstimateError(errors[number][0], errors[number][0], errors[number][1])
    ]
    ranks = {row["entry"]: row["ranks"] for row in race.table()}
    return [ranks[number] for number in range(3)], race.measure.standing(race.table())


@pytest.mark.slow
def test_entries_that_chance_may_have_ordered_share_their_ranks() -> None:
    names = race_of("bps", "hmc", "sgld").checked().names()
    ranks, statement = standing((0.1, 0.3), (0.12, 0.3), (1.0, 0.1))
    assert ranks == ["1–2", "1–2", "3"]
    assert (
        names[0] in statement
        and "0.1 sd, 0.055 to 0.18" in statement
        and names[1] in statement
        and names[2] not in statement
    )
    ranks, statement = standing((1.0, 0.01), (0.1, 0.01), (0.5, 0.01))
    assert ranks == ["3", "1", "2"]
    assert names[1] in statement and "5 times" in statement and names[2] in statement and names[0] not in statement
    ranks, statement = standing((0.1, 0.5), (0.2, 0.5), (0.3, 0.5))
    assert ranks == ["1–3"] * 3 and all(name in statement for name in names)


def shorten(monkeypatch: pytest.MonkeyPatch, draws: int, warmup: int) -> None:
    """Make references short, by the sampler that ranks second: the first one takes half a minute."""
    first, second = sorted(samplers.REGISTRY, key=lambda sampler: -sampler.traits.reference_rank)[:2]
    assert first.traits.reference_rank > second.traits.reference_rank > 0
    monkeypatch.setattr(first, "traits", dataclasses.replace(first.traits, reference_rank=0))
    monkeypatch.setattr(reference, "_MADE", {})
    for name, value in {"CHAINS": 8, "DRAWS": draws, "WARMUP": warmup}.items():
        monkeypatch.setattr(reference, name, value)


@pytest.mark.slow
def test_a_network_is_measured_against_a_reference_that_is_kept(monkeypatch):
    shorten(monkeypatch, draws=60, warmup=150)  # of fewer moves chains stand still
    network = {"target": "network", "target_settings": {"data": "toy_c", "hidden": "3"}}
    entries = (("hmc", {"mode_steps": 200}), ("sgld", {"mode_steps": 200, "step_size": 1e-6}))
    race = Race(race_of(*entries, budget=150_000, **network))
    assert race.measure.truth is None
    while not race.measure.reference_status["draws"]:
        race.advance(0.05)
    saved = race.checkpoint()
    finished(race)
    reference._MADE.clear()
    resumed = finished(Race.restore(saved))
    assert np.array_equal(resumed.measure.truth.mean, race.measure.truth.mean)
    assert resumed.frame(["caption"]) == race.frame(["caption"]) | {"seq": 1}
    reported = race.frame(["table"])["table"]["reference"]
    assert reported["finished"] and reported["draws"] == 480 and math.isfinite(reported["rhat"])
    rows = race.table()
    assert [row["name"] for row in rows] == ["HMC", "SGLD"], "a step of next to nothing leads nowhere"
    assert math.isfinite(rows[0]["rmse"]) and math.isfinite(rows[0]["nll"])
    again = Race(race_of(*entries, budget=5_000, seed=9, **network))
    assert again.measure.reference.finished, "a race with another seed on the same target has the same reference"
    assert np.array_equal(again.measure.truth.mean, race.measure.truth.mean)
    other = Race(race_of(*entries, budget=5_000, **network | {"target_settings": {"data": "toy_c", "hidden": "4"}}))
    assert not other.measure.reference.finished

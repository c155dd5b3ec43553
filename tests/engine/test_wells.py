"""The Wells: FuncHMC beside HMC, what is counted of them, their links and their pictures."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from typer.testing import CliRunner

from bnnviz.cli.main import app
from bnnviz.engine.run.initialization import Start
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.engine.wells import Wells
from bnnviz.errors import BnnvizError
from bnnviz.specs.wells import RUNS, WellsSpec
from tests.driven import finished
from tests.specs.test_url import some

PARTS = ["status", "caption", "table", "wells", "ledger", "pooled", "ratio"]


def done(**values: object) -> Wells:
    wells = Wells(WellsSpec(values))
    finished(wells)
    return wells


@pytest.fixture(scope="module")
def figure() -> Wells:
    return done()


def test_the_distances_are_those_of_the_table(figure: Wells) -> None:
    """Return the medians of 400 runs. A median of 400 has an error below .01."""
    found = figure.figures()
    assert found["func_hmc"]["median"] == pytest.approx(0.28, abs=0.03)
    assert found["hmc"]["median"] == pytest.approx(0.70, abs=0.03)
    assert found["func_hmc"]["covered"] > found["hmc"]["covered"] + 0.2
    assert figure.first_distance == pytest.approx(0.28, abs=0.005)


def test_on_the_texts_well_too() -> None:
    found = done(reading="text").figures()
    assert found["func_hmc"]["median"] == pytest.approx(0.49, abs=0.03)
    assert found["hmc"]["median"] == pytest.approx(0.66, abs=0.03)
    assert found["func_hmc"]["covered"] > found["hmc"]["covered"] + 0.05


def test_draws_are_counted_right(figure: Wells) -> None:
    side = figure.sides["func"]
    draws = side.watched_draws
    assert len(draws) == 1000 and side.counts.sum() == RUNS * 10 * 100
    inside = np.histogram(draws, side.edges.numpy())[0]
    assert np.array_equal(side.counts[0, 1:-1].numpy(), inside)
    assert side.covered()[0] == (0.2 <= (draws > 0).mean() <= 0.8)


def test_the_distance_of_the_truth_itself_is_small() -> None:
    wells = Wells(WellsSpec())
    wells.prepare()
    side = wells.sides["point"]
    draws = torch.as_tensor(wells.target.exact_draws(200_000, 1)[:, 0]).expand(RUNS, -1)[:1]
    at = torch.bucketize(draws, side.edges)
    side.counts[:1] = torch.bincount(at[0], minlength=side.counts.shape[1])
    assert float(side.distances(wells.mass)[0]) < 0.01


def test_steps_and_frames_do_not_change_what_comes(figure: Wells) -> None:
    wells = Wells(WellsSpec())
    wells.prepare()
    for _ in range(4):
        wells.step_proposal()
        wells.frame(PARTS)
    wells.step_event()
    finished(wells)
    assert wells.summary() == figure.summary()
    assert wells.steps == 10 and wells.progress == 1.0


@pytest.mark.parametrize("moves", [0, 4])
def test_a_checkpoint_continues_with_the_same_draws(figure: Wells, moves: int) -> None:
    wells = Wells(WellsSpec())
    for _ in range(moves):
        wells.step_proposal()
    resumed = Wells.restore(wells.checkpoint())
    assert resumed.steps == moves
    finished(resumed)
    assert resumed.summary() == figure.summary()
    frames = [each.frame(["wells", "ledger", "pooled", "ratio"]) for each in (resumed, figure)]
    for part in ("wells", "ledger", "pooled", "ratio"):
        for name, value in frames[0][part].items():
            assert np.array_equal(value, frames[1][part][name], equal_nan=name != "accepted"), name


def test_both_sides_are_ordinary_runs(figure: Wells) -> None:
    """Run alone from the same point, HMC makes the draws that it makes beside FuncHMC."""
    alone = ViewedRun(figure.spec.entries[1].replace(draws=10))
    alone.set_out(Start(torch.randn(RUNS, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64), None))
    assert np.array_equal(finished(alone).draws[0, :, 0], figure.sides["point"].watched_draws)


@pytest.mark.parametrize(
    ("values", "field"), [({"reading": "none"}, "reading"), ({"moves": 0}, "moves"), ({"pace": 3}, "pace")]
)
def test_bad_values_are_refused_by_name(values: dict, field: str) -> None:
    with pytest.raises(BnnvizError) as caught:
        WellsSpec(values).checked()
    assert caught.value.field == field


@settings(max_examples=40)
@given(some(WellsSpec.described()))
def test_links_and_json_carry_everything(chosen: dict) -> None:
    spec = WellsSpec(chosen).checked()
    assert WellsSpec.from_json(json.dumps(spec.to_json())) == spec
    assert WellsSpec().read_query(spec.to_query()) == (spec, [])


def test_the_script_and_the_command_repeat_it() -> None:
    spec = WellsSpec({"moves": 2, "reading": "text"}).checked()
    scope: dict = {}
    exec(spec.as_python(), scope)
    words = spec.as_command().split()[1:]
    result = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(result.stdout)["func_hmc"] == scope["wells"].figures()["func_hmc"]

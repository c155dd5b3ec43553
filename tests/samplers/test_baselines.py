"""Runs of what is trained: descents anew where data change, races, refusals, what is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from families import QUICK, TRAINED, some_quick

import bnnviz
from bnnviz import targets
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.samplers.baselines.laplace import Laplace
from bnnviz.samplers.baselines.map import MAP
from bnnviz.samplers.baselines.mc_dropout import MCDropout
from bnnviz.specs.run import Spec

NETWORK: dict[str, Any] = {"target": "network", "target_settings": {"data": "toy_c", "hidden": "4"}}
DESCENDING = [name for name in TRAINED if name != "sae"]
POINTS = {"target.points": [[0.0, 1.0], [0.2, -1.0]]}


def running(name: str, draws: int = 10, **settings: Any) -> ViewedRun:
    """Return a run without an end that has made some draws, or its point."""
    spec = Spec(**NETWORK, sampler=name, settings=QUICK[name] | settings, chains=3, draws=None, warmup=5, device="cpu")
    run = ViewedRun(spec.checked())
    run.prepare()
    return until(run, draws)


def until(run: ViewedRun, draws: int) -> ViewedRun:
    while run.store.common(run.alive) < draws and not run.finished:
        run.advance(0.05)
    return run


@pytest.mark.parametrize("name", DESCENDING)
def test_where_data_change_chains_descend_anew_and_draws_wait_for_them(name: str) -> None:
    run = running(name)
    spent, steps = run.gradients, run.steps
    run.change(POINTS)
    while run.store.made.max() == 0:
        run.step_proposal()
    assert run.steps - steps >= 70
    # Bayes by Backprop takes three draws a gradient; the new data have two rows.
    each = 70 * 2 * 3 * (3 if name == "bbb" else 1)
    assert run.gradients - spent == each
    until(run, 30)
    assert run.gradients - spent == each, "at rest nothing is charged"
    assert run.state.adaptation.resting or run.finished
    assert run.finished == run.sampler.traits.one_point


@pytest.mark.parametrize(
    ("target", "name", "settings", "field"),
    [
        ("banana", "mc_dropout", {}, "sampler"),
        ("banana", "sae", {}, "sampler"),
        ("two_data", "sae", {}, "sampler"),
        ("banana", "map", {"batch_size": 3}, "batch_size"),
        ("banana", "laplace", {"subset": "last_layer"}, "subset"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(target: str, name: str, settings: dict, field: str) -> None:
    with pytest.raises(BnnvizError) as refused:
        ViewedRun(Spec(target, {}, name, settings, draws=5).checked()).prepare()
    assert refused.value.field == field
    assert refused.value.sentence.count(". ") == 0


def test_a_matrix_that_is_too_large_is_refused_before_anything_is_computed() -> None:
    network = {"data": "toy_c", "hidden": "100-100"}
    with pytest.raises(BnnvizError, match="A full matrix of 10,401 weights is too large"):
        ViewedRun(Spec("network", network, "laplace", {"mode_steps": 1}, draws=5).checked()).prepare()


def test_a_network_without_hidden_units_has_none_to_drop() -> None:
    target = bnnviz.BNN(torch.nn.Sequential(torch.nn.Linear(2, 1)), (np.ones((3, 2)), np.ones(3)))
    with pytest.raises(BnnvizError, match="a hidden layer"):
        MCDropout().check(target)


def test_chains_that_meet_values_that_are_not_finite_stop_and_the_others_go_on() -> None:
    run = ViewedRun(Spec(**NETWORK, sampler="map", settings={"steps": 60}, chains=3, draws=4, device="cpu").checked())
    run.prepare()
    x = run.state.x.clone()
    x[1, 0] = torch.nan
    run.state = run.state._replace(x=x)
    while not run.finished:
        run.advance(0.1)
    assert [(note.code, note.values["chain"]) for note in run.notes] == [("chain_stopped", 1)]
    assert run.draws.shape[:2] == (2, 4)
    assert np.isfinite(run.draws).all()


# --- Laplace, where Adam has not come to the mode


def regression(scales: tuple[float, ...], seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return U of a linear regression on columns of these scales, with the mean and the sds of its normal posterior."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([scale * (1 + 0.15 * rng.normal(size=200)) for scale in scales])
    y = x @ (rng.normal(size=len(scales)) / scales) + 18 * rng.normal(size=200)
    rows, values = torch.tensor(x), torch.tensor(y)

    def potential(b: torch.Tensor) -> torch.Tensor:
        residual = (values.to(b) - b @ rows.T.to(b)) / 18
        return (residual.square().sum(-1) + (b / 100).square().sum(-1)) / 2

    precision = x.T @ x / 18**2 + np.eye(len(scales)) / 100**2
    cov = np.linalg.inv(precision)
    return potential, cov @ x.T @ y / 18**2, np.sqrt(np.diag(cov))


@pytest.mark.parametrize("scales", [(1, 100, 2000), (1, 1e-3), (1, 1e4), (0.01, 50, 3e3, 7)], ids=str)
def test_laplace_finds_the_mode_on_raw_scales(scales):
    potential, mean, sd = regression(scales)
    run = bnnviz.sample(potential, "laplace", dim=len(scales), draws=500, warmup=0, chains=4, dtype="float64")
    draws = run.draws.reshape(-1, len(scales))
    assert np.abs((draws.mean(0) - mean) / sd).max() < 5 / len(draws) ** 0.5
    assert np.abs(draws.std(0) / sd - 1).max() < 5 / (2 * len(draws)) ** 0.5


def test_laplace_forgets_correlations_at_the_mode_itself():
    potential, mean, sd = regression((1, 100, 2000))
    run = bnnviz.sample(potential, "laplace", dim=3, draws=400, chains=4, settings={"structure": "diagonal"})
    assert np.abs((run.draws.mean((0, 1)) - mean) / sd).max() < 0.2


def test_laplace_away_from_a_mode_is_refused():
    with pytest.raises(BnnvizError, match="posterior standard deviations away"):
        bnnviz.sample(
            lambda x: 50 * (x - 3).square().sum(-1),
            "laplace",
            dim=1200,
            draws=5,
            chains=2,
            settings={"structure": "diagonal", "mode_steps": 2},
        )


QUICKLY = {"steps": 800, "learning_rate": 0.05}


@pytest.mark.parametrize("sampler", some_quick(["map", "mle", "ensemble"], 1))
def test_a_descent_that_has_not_arrived_is_reported(sampler):
    """On raw scales so many steps of Adam do not come near; on one scale they do."""
    statement = {}
    for scales in ((1, 100, 2000), (1, 1, 1)):
        potential, mean, sd = regression(scales)
        run = bnnviz.sample(potential, sampler, dim=3, draws=1, chains=2, settings=QUICKLY, dtype="float64")
        statement[scales] = [each.code for each in run.summary()["warnings"]]
        away = np.abs((run.draws[:, -1] - mean) / sd).max()
        assert (away > 0.5) == ("not_at_mode" in statement[scales]), away
    assert statement[1, 100, 2000] and not statement[1, 1, 1]


def test_an_end_at_a_saddle_is_reported():
    """Between two wells the gradient is zero and U falls to either side."""
    target = targets.Callable(lambda x: (x[:, 0].square() - 1).square() + x[:, 1].square(), 2).to("cpu", torch.float64)
    ends = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    assert [MAP().place(target, end).sinking for end in ends] == [1, 0, 1]
    assert [MAP().place(target, end).is_mode for end in ends] == [False, True, False]


def test_a_mode_at_a_kink_is_one_to_a_descent_and_none_to_laplace():
    """There the gradient jumps from -1 to 1, and no step lowers U."""
    run = bnnviz.sample(kinked, "map", dim=2, draws=1, chains=2, settings=QUICKLY, dtype="float64")
    assert np.abs(run.draws).max() < 0.01 and not run.summary()["warnings"]
    with pytest.raises(BnnvizError, match="kink"):
        bnnviz.sample(kinked, "laplace", dim=2, draws=5, chains=2, dtype="float64")


def kinked(x):
    return (x.abs() + x.square() / 2).sum(-1)


@pytest.mark.parametrize(("steps", "arrives"), [(20, False), (800, True)])
def test_a_network_that_was_trained_to_a_mode_is_at_one(steps, arrives):
    chosen = NETWORK["target_settings"] | {"noise_sd": 1.0}
    settings = QUICKLY | {"steps": steps}
    run = bnnviz.sample("network", "map", target_settings=chosen, draws=1, chains=2, settings=settings)
    assert ("not_at_mode" in {each.code for each in run.summary()["warnings"]}) != arrives


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_laplace_at_a_saddle_is_refused(structure):
    """Between two wells the gradient is zero and U falls to either side."""
    target = targets.Callable(lambda x: (x[:, 0].square() - 1).square() + x[:, 1].square(), 2).to("cpu", torch.float64)
    sampler = Laplace(structure=structure)
    with pytest.raises(BnnvizError, match="is not positive in 1 of 2 directions"):
        sampler.prepare(target, torch.zeros(2, dtype=torch.float64))

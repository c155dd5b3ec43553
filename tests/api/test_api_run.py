"""What a program meets first: names, signatures, misspellings, the warning at the end of a run, resuming."""

from __future__ import annotations

import inspect
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import plots, samplers
from bnnviz.engine.drive import replay
from bnnviz.engine.run.run import Run
from bnnviz.errors import ELSEWHERE, Suggesting


def sample(*args: Any, **options: Any) -> bnnviz.Run:
    return bnnviz.sample(*args, **{"draws": 4, "warmup": 2, "chains": 2} | options)


def test_sample_takes_what_start_takes() -> None:
    own, others = (dict(inspect.signature(each).parameters) for each in (bnnviz.sample, bnnviz.start))
    assert set(own) - {"progress_bar"} == set(others) - {"paused"}
    for name in set(own) & set(others) - {"sampler"}:
        assert own[name] == others[name]


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"sampler": "hmcc"}, "'hmc'"),
        ({"target": "banan"}, "'banana'"),
        ({"drawz": 5}, "draws"),
        ({"tune": 5}, "warmup"),
        ({"random_seed": 5}, "seed"),
        ({"max_tree_depth": 5}, "max_treedepth"),
        ({"settings": {"target_accept_prob": 0.9}}, "'target_accept'"),
        ({"settings": {"step_sise": 0.9}}, "'step_size'"),
        ({"sampler": "smc"}, "'pmcnet'"),
        ({"sampler": "hmc", "settings": {"num_steps": 5}}, "'num_leapfrog_steps'"),
        ({"settings": {"inverse_mass_matrix": 1}}, "'metric'"),
    ],
)
def test_a_misspelled_or_foreign_name_is_answered_with_ours(options: dict[str, Any], meant: str) -> None:
    with pytest.raises(bnnviz.BnnvizError) as caught:
        sample(**{"target": "banana", "sampler": "nuts"} | options)
    assert f"did you mean {meant}?" in caught.value.sentence


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda net: samplers.HMC(step_sise=0.1), "'step_size'"),
        (lambda net: samplers.Nuts, "'NUTS'"),
        (lambda net: bnnviz.sampel, "'sample'"),
        (lambda net: plots.tracee, "'trace'"),
        (lambda net: bnnviz.BNN(net, "concret"), "'concrete'"),
        (lambda net: bnnviz.BNN(net, "concrete", likelihood="normal"), "'gaussian'"),
        (lambda net: bnnviz.BNN(net, "concrete", sigma_noise=1.0), "noise_sd"),
        (lambda net: bnnviz.race("banana", ["hmc", "nuts"], budgett=5), "budget"),
    ],
)
def test_constructors_and_modules_suggest_names(call: Callable[[torch.nn.Module], Any], meant: str) -> None:
    with pytest.raises((AttributeError, bnnviz.BnnvizError), match=f"did you mean {meant}"):
        call(torch.nn.Linear(8, 1))


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return an object of each public class."""
    x = torch.linspace(-1, 1, 20)[:, None]
    posterior = bnnviz.BNN(torch.nn.Linear(1, 1), (x, x[:, 0]), noise_sd=0.1)
    run = sample(posterior, "hmc", record=tmp_path_factory.mktemp("recorded") / "mine")
    race = bnnviz.race("gaussian", ["sgld", "hmc"], budget=2_000, chains=2, warmup=5)
    made = {"Run": run, "Recording": run.recording, "BNN": posterior, "Race": race}
    return made | {"PredictiveDistribution": run.predict(x)}


@pytest.mark.parametrize(
    ("owner", "name", "meant"),
    [
        ("Run", "get_samples", "draws"),  # NumPyro
        ("Run", "stan_variables", "parameters"),
        ("Run", "posterior", "to_arviz"),  # ArviZ
        ("Run", "predict_proba", "predict"),  # scikit-learn
        ("Run", "sumary", "summary"),
        ("Recording", "samples", "draws"),
        ("BNN", "samples", "bnnviz.sample"),
        ("BNN", "logp", "potential"),  # PyMC
        ("Race", "leaderboard", "table"),
        ("PredictiveDistribution", "std", "sd"),
        ("PredictiveDistribution", "predict_proba", "probabilities"),
    ],
)
def test_objects_suggest_attributes(objects: dict[str, Any], owner: str, name: str, meant: str) -> None:
    assert type(objects[owner]) is getattr(bnnviz, owner)
    with pytest.raises(AttributeError, match=f"^{owner} has no attribute '{name}'; did you mean '{meant}'"):
        getattr(objects[owner], name)


def test_every_suggested_attribute_exists(objects: dict[str, Any]) -> None:
    known = {name for each in (bnnviz, *objects.values()) for name in dir(each)}
    assert {name.removeprefix("bnnviz.") for name in ELSEWHERE["attribute"]} <= known


def test_an_error_of_a_property_is_not_hidden() -> None:
    class Broken(Suggesting):
        @property
        def draws(self) -> None:
            raise AttributeError("the cause")

    with pytest.raises(AttributeError, match="the cause"):
        _ = Broken().draws


def test_a_seed_is_a_number_or_comes_from_a_generator() -> None:
    def seed(given: Any) -> int:
        return bnnviz.start("gaussian", "hmc", paused=True, seed=given).stop().spec.seed

    assert seed(5) == 5
    assert seed(np.random.default_rng(1)) == seed(np.random.default_rng(1)) != seed(np.random.default_rng(2))
    assert seed(torch.Generator().manual_seed(1)) == seed(torch.Generator().manual_seed(1))
    assert seed(None) != seed(None)


@pytest.mark.slow
def test_a_run_that_has_not_converged_warns_once_and_a_good_one_does_not() -> None:
    with pytest.warns(bnnviz.SamplingWarning) as caught:
        run = sample("banana", "hmc")
    assert len(caught) == 1
    assert str(run.summary()["warnings"][0]) in run._repr_html_().replace("&quot;", '"')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = bnnviz.sample("gaussian", "nuts", draws=1000)
    assert f"rhat_max {run.summary()['rhat_max']:.4g}" in repr(run)


def test_a_finished_run_has_nothing_to_resume(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sample("gaussian", "hmc", record=tmp_path / "mine")
    with pytest.warns(UserWarning, match="finished"):
        again = bnnviz.resume(tmp_path / "mine").wait()
    np.testing.assert_array_equal(again.draws, run.draws)
    for unknown in ({"chains": 10}, {"drawz": 10}, {"draws": 0}):
        with pytest.raises(bnnviz.BnnvizError) as caught:
            bnnviz.resume(tmp_path / "mine", **unknown)
        assert caught.value.field in unknown


@pytest.mark.filterwarnings("ignore::bnnviz.SamplingWarning")
@pytest.mark.parametrize("sampler", ["hmc", "bps", "pmcnet"])
def test_a_finished_run_can_be_extended(sampler: str, tmp_path: Path) -> None:
    options = {"warmup": 20, "chains": 3, "seed": 5, "target_settings": {"size": 2}}
    run = bnnviz.sample("gaussian", sampler, draws=40, record=tmp_path / "mine", **options)
    first, ess = run.draws.copy(), run.summary().get("ess_min")
    run.extend(60)
    assert run.spec.draws == 100 and run.draws.shape == (3, 100, 2)
    np.testing.assert_array_equal(run.draws[:, :40], first)
    assert ess is None or run.summary()["ess_min"] != ess
    if sampler == "hmc":  # chains in lock-step make the draws of one long run
        np.testing.assert_array_equal(bnnviz.sample("gaussian", "hmc", draws=100, **options).draws, run.draws)
    np.testing.assert_array_equal(bnnviz.recording(tmp_path / "mine").draws, run.draws)
    more = bnnviz.resume(tmp_path / "mine", draws=10).wait()
    np.testing.assert_array_equal(more.draws[:, :100], run.draws)
    with bnnviz.start("gaussian", sampler, draws=None, **options) as other, pytest.raises(bnnviz.BnnvizError):
        other.extend(5)


def test_the_change_log_repeats_an_extended_run() -> None:
    run = bnnviz.sample("gaussian", "bps", draws=30, warmup=20, chains=2).extend(20)
    again = Run(run._run.begun)
    replay(again, deque(run._run.changes), slice_s=1.0)
    np.testing.assert_array_equal(again.draws, run.draws)

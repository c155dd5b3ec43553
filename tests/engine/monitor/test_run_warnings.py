"""Sentences against estimates: each figure that is bad says so, and good ones say nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bnnviz
from bnnviz import samplers
from bnnviz.diagnostics import VarianceInflation
from bnnviz.engine.monitor.run_warnings import warnings
from bnnviz.engine.monitor.variances import Variances
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.models import mlp
from bnnviz.specs.run import Spec

GOOD = {"rhat_max": 1.005, "ess_min": 900.0, "widening": {"share": 0.01, "se": 0.02}}
WEIGHTED = {"pareto_k": 0.5, "weight_ess_share": 0.4}


def run(name: str = "bps") -> Any:
    """Return what the warnings read of a run of a sampler on a density whose variances are 1 and 4."""
    return SimpleNamespace(
        sampler=samplers.REGISTRY.get(name)(),
        target=SimpleNamespace(cov=lambda: np.diag([1.0, 4.0]), names=lambda: ["a", "b"]),
        spec=Spec(target="gaussian", sampler=name, draws=100),
        minutes=None,
        own_target=False,
    )


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({}, ""),
        ({"rhat_max": None, "ess_min": None, "widening": None}, ""),
        ({"rhat_max": None, "ess_min": None, "widening": None, "draws": 0}, ""),
        ({"rhat_max": None, "ess_min": None, "widening": None, "draws": 1}, "There is 1 draw of each chain"),
        ({"rhat_max": None, "ess_min": None, "widening": None, "draws": 3}, "There are 3 draws of each chain, and ESS"),
        ({"draws": 4}, ""),
        ({"rhat_max": 1.15, "ess_min": 80.0}, "disagree on a coordinate (R-hat up to 1.15"),
        ({"ess_min": 80.4}, "that mixes worst is 80,"),
        ({"ess_tail_min": 80.4}, "tail ESS of the coordinate that mixes worst is 80,"),
        ({"ess_energy": 6.8}, "U itself mixes slowly (ESS 7,"),
        ({"widening": {"share": 0.4, "se": 0.05}}, "40 ± 5 % too large"),
        ({"widening": {"share": -0.41, "se": 0.003}}, "41 ± 0 % too small"),
        ({"widening": {"share": -0.41, "se": 0.2}}, ""),
    ],
)
def test_a_bad_figure_of_chains_is_told(found: dict[str, Any], says: str) -> None:
    told = warnings(run(), GOOD | found)
    assert len(told) == bool(says)
    assert says in " ".join(told)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({}, ""),
        ({"pareto_k": None}, ""),
        ({"pareto_k": 1.2, "weight_ess_share": 0.001}, "k-hat 1.20"),
        ({"weight_ess_share": 0.001}, "weight ESS is 0.1 % of the number"),
        (
            {"widening": {"share": -0.2, "se": 0.05}},
            "20 ± 5 % too small: the proposals have not been everywhere, which",
        ),
        ({"widening": {"share": -0.2, "se": 0.07}}, ""),
        (
            {"cov": [[1.0, 0.0], [0.0, 2.0]], "variance_se": [0.05, 0.2]},
            "weighted variance of b is 0.50 times the true one, 7 standard errors off: the proposals",
        ),
        ({"cov": [[1.0, 0.0], [0.0, 3.9]], "variance_se": [0.05, 0.2]}, ""),
    ],
)
def test_a_bad_figure_of_weights_is_told(found: dict[str, Any], says: str) -> None:
    told = warnings(run("pmcnet"), WEIGHTED | found)
    assert len(told) == bool(says)
    assert says in " ".join(told)


@pytest.mark.parametrize(
    ("variance", "says"),
    [
        (4.1, ""),
        (6.0, "of b is 1.50 times the true one, 12 standard errors off: the settings bias it; compare with a"),
        (
            2.0,
            "of b is 0.50 times the true one, 7 standard errors off: the chains have not been everywhere yet, so",
        ),
    ],
)
def test_where_the_truth_is_known_it_judges_and_not_an_identity(variance: float, says: str) -> None:
    moments = {"cov": [[1.0, 0.3], [0.3, variance]], "cov_se": [[0.1, 0.1], [0.1, 0.2]]}
    told = warnings(run(), GOOD | moments | {"widening": {"share": 0.4, "se": 0.05}})
    assert len(told) == bool(says)
    assert says in " ".join(told)


@pytest.mark.parametrize(
    ("functions", "says"),
    [
        (1.31, "disagree on what the network predicts (R-hat up to 1.31, good below 1.01; of weights 2.10; 1.02 with"),
        (1.02, "disagree on a weight (R-hat up to 2.10, good below 1.01; 1.02 with hidden units in one order), so"),
        (1.02, "make more draws (`draws=400`); on what it predicts they agree (1.02)."),
        (None, "see ess_function_min"),
    ],
)
def test_of_a_network_the_sentence_says_what_its_chains_disagree_on(functions: float | None, says: str) -> None:
    made = run()
    made.target = bnnviz.BNN(mlp(1, [2], 1), (np.zeros((3, 1)), np.zeros(3)))
    figures = {"rhat_max": 2.1, "rhat_canonical_max": 1.02, "rhat_function_max": functions}
    told = warnings(made, GOOD | figures)
    assert len(told) == 1 and says in told[0]


def test_of_an_approximation_no_more_draws_are_asked_for() -> None:
    assert warnings(run("map"), GOOD | {"rhat_max": 3.0, "ess_min": 4.0}) == []


def test_a_run_tells_it_in_its_summary_and_of_a_network_says_what_else_to_look_at() -> None:
    few = Spec(target="gaussian", sampler="bps", chains=4, draws=30, seed=1)
    network = Spec(
        target="network",
        target_settings={"data": "toy_c", "hidden": "2"},
        sampler="hmc",
        settings={"start": "random"},
        chains=2,
        draws=10,
        warmup=0,
        seed=1,
    )
    for spec, says in ((few, "make more draws (`draws=120`)."), (network, "disagree on what the network predicts")):
        made = ViewedRun(spec)
        while not made.finished:
            made.advance()
        assert says in " ".join(made.summary()["warnings"])


def measures(variance: float) -> Variances:
    """Return the measures of draws whose second variance, truly 4, is this, and which Stein's identity finds wide."""
    found = Variances(SimpleNamespace(**run().__dict__, seconds=2.0, gradients=0))
    found._moments, found._count = (np.array([1.0, variance]), np.array([0.1, 0.1]), np.array([1.0, 4.0])), 1000
    found.variance_inflation = VarianceInflation(0.49, 0.05, None, None)
    return found


@pytest.mark.parametrize(("variance", "says", "silent"), [(1.4, "narrower", "wider"), (6.0, "wider", "narrower")])
def test_where_the_truth_is_known_the_page_says_one_sentence_of_variances(
    variance: float, says: str, silent: str
) -> None:
    told = measures(variance).sentence()
    assert says in told and silent not in told and "Stein" not in told


@pytest.mark.parametrize(("variance", "shown"), [(1.4, 0), (4.0, 1), (6.0, 1)])
def test_the_table_shows_no_identity_that_the_known_variances_contradict(variance: float, shown: int) -> None:
    """It finds them 0.49 too wide."""
    found = measures(variance)
    found._run.target.dim, found._run.sampler.traits = 2, samplers.Traits(weighed_by="")
    rows = [label for label, _, _ in found.rows()]
    assert rows.count("Variances / true (Stein's identity)") == shown


def test_the_table_shows_an_identity_that_says_one_beside_variances_that_are_wrong() -> None:
    """Draws of one mode of two fulfil it up to chance, on either side."""
    for share in (-0.05, 0.05):
        found = measures(1.4)
        found._run.target.dim, found._run.sampler.traits = 2, samplers.Traits(weighed_by="")
        found.variance_inflation = VarianceInflation(share, 0.05, None, None)
        assert "Variances / true (Stein's identity)" in [label for label, _, _ in found.rows()], share


def test_where_the_known_variances_are_right_the_identity_speaks() -> None:
    assert "Stein" in measures(4.0).sentence()


def test_what_took_no_gradients_has_no_rate_of_them() -> None:
    found = measures(4.0)
    found.ess, found.rhat, found._made, found._spent = 100.0, 1.0, 0, (1.0, 0)
    assert found.mixing("PC 1", 90.0)[1] == ["ESS per second; per million gradients", "100; –", ""]


def test_that_functionals_are_wide_is_no_bias() -> None:
    assert warnings(run("func_hmc"), GOOD | {"widening": {"share": 1.7, "se": 0.1}}) == []


def test_a_sampler_that_rejects_moves_is_told_one_cause_of_a_variance_too_small() -> None:
    moments = {"cov": [[1.0, 0.3], [0.3, 2.0]], "cov_se": [[0.1, 0.1], [0.1, 0.2]]}
    told = " ".join(warnings(run("hmc"), GOOD | moments))
    assert told.count("have not been everywhere yet") == 1 and "settings bias" not in told

"""Sentences against estimates: each figure that is bad says so, and good ones say nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bnnviz.engine.caution import warnings
from bnnviz.engine.run import Run
from bnnviz.spec import Spec

GOOD = {"rhat_max": 1.005, "ess_min": 900.0, "widening": {"share": 0.01, "se": 0.02}}
WEIGHTED = {"pareto_k": 0.5, "weight_ess_share": 0.4}


def run(weighted: bool = False, converges: bool = True) -> Any:
    return SimpleNamespace(sampler=SimpleNamespace(weighted=weighted, converges=converges), target=None)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({}, ""),
        ({"rhat_max": None, "ess_min": None, "widening": None}, ""),
        ({"rhat_max": 1.15, "ess_min": 80.0}, "disagree on a coordinate (R-hat up to 1.15"),
        ({"ess_min": 80.4}, "are worth 80 (ESS)"),
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
        ({"weight_ess_share": 0.001}, "worth 0.1 % of their number"),
    ],
)
def test_a_bad_figure_of_weights_is_told(found: dict[str, Any], says: str) -> None:
    told = warnings(run(weighted=True), WEIGHTED | found)
    assert len(told) == bool(says)
    assert says in " ".join(told)


def test_of_an_approximation_no_more_draws_are_asked_for() -> None:
    assert warnings(run(converges=False), GOOD | {"rhat_max": 3.0, "ess_min": 4.0}) == []


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
    for spec, says in ((few, "make more draws."), (network, "see ess_function_min")):
        made = Run(spec)
        while not made.finished:
            made.advance()
        assert says in " ".join(made.summary()["warnings"])

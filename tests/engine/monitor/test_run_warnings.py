"""Sentences against estimates: each figure that is bad says so, and good ones say nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bnnviz
from bnnviz import samplers
from bnnviz.engine.monitor import remedies
from bnnviz.engine.monitor.run_warnings import warnings
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.messages import Message, Remedy
from bnnviz.models import mlp
from bnnviz.specs.run import Spec
from tests.driven import finished

GOOD = {"rhat_max": 1.005, "ess_min": 900.0, "widening": {"share": 0.01, "se": 0.02}}
WEIGHTED = {"pareto_k": 0.5, "weight_ess_share": 0.4}


def run(name: str = "bps") -> Any:
    """Return what the warnings read of a run of a sampler on a density whose variances are 1 and 4."""
    return SimpleNamespace(
        sampler=samplers.REGISTRY.get(name)(),
        target=SimpleNamespace(cov=lambda: np.diag([1.0, 4.0]), names=lambda: ["a", "b"]),
        spec=Spec(target="gaussian", sampler=name, draws=100),
        minutes=None,
        chosen=False,
        own_target=False,
    )


def reported(found: list[Message]) -> tuple[str, dict[str, Any]] | None:
    """Return code and values of the one message, if there is one."""
    assert len(found) <= 1
    return (found[0].code, found[0].values) if found else None


NONE = {"rhat_max": None, "ess_min": None, "widening": None}
HALF = {"cov": [[1.0, 0.0], [0.0, 2.0]], "variance_se": [0.05, 0.2]}


@pytest.mark.parametrize(
    ("sampler", "found", "code", "values"),
    [
        ("bps", {}, None, {}),
        ("bps", NONE, None, {}),
        ("bps", NONE | {"draws": 0}, None, {}),
        ("bps", NONE | {"draws": 3}, "few_draws", {"draws": 3}),
        ("bps", {"draws": 4}, None, {}),
        ("bps", {"rhat_max": 1.15, "ess_min": 80.0}, "rhat", {"rhat": 1.15, "what": "coordinate"}),
        ("bps", {"ess_min": 80.4}, "low_ess", {"ess": 80.4}),
        ("bps", {"ess_tail_min": 80.4}, "low_tail_ess", {"ess": 80.4}),
        ("bps", {"ess_energy": 6.8}, "low_energy_ess", {"ess": 6.8}),
        ("bps", {"widening": {"share": 0.4, "se": 0.05}}, "stein_wide", {"share": 40, "error": 5}),
        ("bps", {"widening": {"share": -0.41, "se": 0.003}}, "stein_narrow", {"share": 41}),
        ("bps", {"widening": {"share": -0.41, "se": 0.2}}, None, {}),
        ("map", {"rhat_max": 3.0, "ess_min": 4.0}, None, {}),
        ("func_hmc", {"widening": {"share": 1.7, "se": 0.1}}, None, {}),
        ("pmcnet", {}, None, {}),
        ("pmcnet", {"pareto_k": None}, None, {}),
        ("pmcnet", {"pareto_k": 1.2, "weight_ess_share": 0.001}, "pareto_k", {"k": 1.2}),
        ("pmcnet", {"weight_ess_share": 0.001}, "low_weight_ess", {"percent": 0.1}),
        ("pmcnet", {"widening": {"share": -0.2, "se": 0.05}}, "weighted_stein", {"share": 20, "side": "small"}),
        ("pmcnet", {"widening": {"share": -0.2, "se": 0.07}}, None, {}),
        ("pmcnet", HALF, "weighted_variance_wrong", {"name": "b", "ratio": 0.5}),
        ("pmcnet", HALF | {"cov": [[1.0, 0.0], [0.0, 3.9]]}, None, {}),
    ],
)
def test_a_bad_figure_gives_one_warning(sampler: str, found: dict, code: str | None, values: dict) -> None:
    good = WEIGHTED if sampler == "pmcnet" else GOOD
    got = reported(warnings(run(sampler), good | found))
    assert (got and got[0]) == code
    for name, value in values.items():
        assert got[1][name] == (value if isinstance(value, str) else pytest.approx(value))


@pytest.mark.parametrize(("variance", "ratio"), [(4.1, None), (6.0, 1.5), (2.0, 0.5)])
def test_known_variances_judge_instead_of_the_identity(variance: float, ratio: float | None) -> None:
    moments = {"cov": [[1.0, 0.3], [0.3, variance]], "cov_se": [[0.1, 0.1], [0.1, 0.2]]}
    found = reported(warnings(run(), GOOD | moments | {"widening": {"share": 0.4, "se": 0.05}}))
    assert (found and found[1]["ratio"]) == ratio
    rejecting = warnings(run("hmc"), GOOD | moments)
    assert ratio != 0.5 or rejecting[0].remedies == (Remedy("make more draws", {"draws": 400}),)


@pytest.mark.parametrize(("functions", "code"), [(1.31, "rhat_functions"), (1.02, "rhat"), (None, "rhat")])
def test_convergence_of_a_network_is_judged_by_its_predictions(functions: float | None, code: str) -> None:
    made = run()
    made.target = bnnviz.BNN(mlp(1, [2], 1), (np.zeros((3, 1)), np.zeros(3)))
    figures = {"rhat_max": 2.1, "rhat_canonical_max": 1.02, "rhat_function_max": functions}
    assert reported(warnings(made, GOOD | figures))[0] == code


def test_the_summary_of_a_run_has_its_warnings() -> None:
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
    made = ViewedRun(network)
    finished(made)
    assert "rhat_functions" in {each.code for each in made.summary()["warnings"]}


@pytest.mark.parametrize("sampler", ["hmc", "nuts", "bps", "sgld", "pmcnet"])
def test_remedies_are_options_that_a_run_takes(sampler: str) -> None:
    made = bnnviz.sample("gaussian", sampler, draws=5, warmup=0, chains=2, seed=1)._run
    choices = (remedies.more, remedies.shorter_steps, remedies.refreshed, remedies.unbiased, remedies.closer_to_mode)
    found = [each for choose in choices for each in choose(made)]
    found += [remedies.elsewhere(made), remedies.reference_sampler("use NUTS")]
    found += remedies.more_weighted(made) if sampler == "pmcnet" else []
    found += remedies.deeper_trees(made) if sampler == "nuts" else []
    options = [each.options for each in found if each.options]
    assert len(options) >= 3
    for given in options:
        kept = {} if "sampler" in given else made.spec.settings
        made.spec.replace(**given | {"settings": kept | given.get("settings", {})}).checked()

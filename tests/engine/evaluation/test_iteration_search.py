"""How many iterations a population makes, by a pilot on the validation rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import data
from bnnviz.engine.drive import drive
from bnnviz.engine.evaluation import iteration_search as searching
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError

NETWORK = {"data": "pmcnet_wine", "hidden": "2"}
FEW = {"draws_each": 10, "start": "random", "sigma0": 0.5}


def spec(**more: Any) -> bnnviz.Spec:
    given = {"chains": 5, "draws": 10, "seed": 3} | more
    return bnnviz.Spec("network", NETWORK, "pmcnet_light", FEW, **given).checked()


@pytest.mark.parametrize("by", ["nll", "accuracy"])
def test_each_iteration_is_judged_by_its_own_draws_on_the_validation_rows(by: str) -> None:
    found = searching.search_iterations(spec(), most=4, by=by)
    validation = spec().replace(target_settings=NETWORK | {"evaluate": "validation"}, draws=40, warmup=0)
    run = Run(validation.checked())
    drive(run, 0.5)
    x, y = data.load("pmcnet_wine").scaled("val")
    for t, value in enumerate(found.values):
        draws, logs = run.draws[:, 10 * t : 10 * t + 10], run.log_weights[:, 10 * t : 10 * t + 10].ravel()
        p = torch.softmax(run.target.outputs(torch.as_tensor(draws), torch.as_tensor(x)), -1).numpy()
        if by == "nll":
            weights = np.exp(logs - logs.max())
            mean = np.einsum("d,drc->rc", weights / weights.sum(), p)
            assert value == pytest.approx(-np.log(mean[np.arange(len(y)), y.astype(int)]).mean(), rel=1e-4)
        else:
            assert value == bnnviz.measure(run.target, draws, logs)["per_draw"]["accuracy"]["mean"]
    best = (np.argmin if by == "nll" else np.argmax)(found.values)
    assert found.iterations == best + 1
    assert (found.spec.draws, found.spec.warmup) == (10, 10 * best)
    assert found.spec.target_settings == spec().target_settings, "it is run on the test rows"


def test_of_equal_ones_the_first_is_chosen() -> None:
    assert searching.IterationSearch(spec(), "nll", (3.0, None, 1.0, 1.0)).iterations == 3
    assert searching.IterationSearch(spec(), "accuracy", (0.5, 0.9, 0.9)).iterations == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bnnviz.search_iterations("network", "hmc", target_settings=NETWORK), "no iterations of a population"),
        (lambda: bnnviz.search_iterations("banana"), "banana has no setting evaluate"),
        (
            lambda: bnnviz.search_iterations("network", target_settings={"data": "moons"}),
            "moons has no validation rows",
        ),
        (lambda: bnnviz.search_iterations(torch.nn.Linear(1, 1)), "a registered target or a Spec"),
        (lambda: searching.search_iterations(spec(), by="rmse"), "cannot be by 'rmse'"),
        (lambda: searching.search_iterations(spec(), most=1, by="mse"), "A classification has no mse"),
        (lambda: searching.search_iterations(spec(), most=0), "no number of iterations"),
    ],
)
def test_what_cannot_be_searched_is_refused(call: Any, words: str) -> None:
    with pytest.raises(BnnvizError, match=words):
        call()

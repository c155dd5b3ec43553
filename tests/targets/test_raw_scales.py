"""A network on rows that are far from the size that its prior expects says so, and no other network does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import bnnviz

RNG = np.random.default_rng(0)
UNIT = RNG.normal(size=(40, 3))


def network(first: Any = None, outputs: int = 1) -> nn.Module:
    return nn.Sequential(*([] if first is None else [first]), nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, outputs))


def with_column(values: np.ndarray) -> np.ndarray:
    return np.column_stack([UNIT[:, 0], values, UNIT[:, 2]])


FAR = {"thousands": 1e4 * UNIT[:, 1], "years": 2000 + UNIT[:, 1], "thousandths": 1e-4 * UNIT[:, 1]}
NEAR = {
    "standardised": UNIT[:, 1],
    "a dummy": (UNIT[:, 1] > 0).astype(float),
    "a constant": np.full(40, 1000.0),
    "percents": 5 * UNIT[:, 1] + 10,
}


@pytest.mark.parametrize("values", FAR.values(), ids=list(FAR))
def test_a_column_of_another_size_is_named(values: np.ndarray) -> None:
    (note,) = bnnviz.BNN(network(), (with_column(values), UNIT[:, 0])).remarks()
    assert note.code == "raw_inputs" and note.values["column"] == 2


@pytest.mark.parametrize("values", NEAR.values(), ids=list(NEAR))
def test_columns_of_about_the_size_one_are_taken_in_silence(values: np.ndarray) -> None:
    assert bnnviz.BNN(network(), (with_column(values), UNIT[:, 0])).remarks() == []


def test_a_module_that_may_scale_its_inputs_itself_is_not_judged() -> None:
    given = with_column(1e4 * UNIT[:, 1]), UNIT[:, 0]
    assert bnnviz.BNN(network(nn.LayerNorm(3)), given).remarks() == []


@pytest.mark.parametrize(
    ("observed", "how"),
    [(UNIT[:, 0] * 5e4, {}), (UNIT[:, 0] + 300, {"likelihood": "student_t"}), (UNIT[:, :2] * 1e-3, {"outputs": 2})],
)
def test_observations_of_another_size_are_told(observed: np.ndarray, how: dict[str, Any]) -> None:
    how = dict(how)
    module = network(outputs=how.pop("outputs", 1))
    (note,) = bnnviz.BNN(module, (UNIT, observed), **how).remarks()
    assert note.code == "raw_observations"
    assert bnnviz.BNN(module, (UNIT, observed), prior_sd=100.0, **how).remarks() == []


@pytest.mark.parametrize("likelihood, outputs", [("poisson", 1), ("categorical", 200)])
def test_counts_and_classes_have_no_unit(likelihood: str, outputs: int) -> None:
    observed = RNG.integers(0, 200, 40)
    assert bnnviz.BNN(network(outputs=outputs), (UNIT, observed), likelihood=likelihood).remarks() == []


def test_a_run_tells_it() -> None:
    target = bnnviz.BNN(network(), (torch.as_tensor(with_column(1e4 * UNIT[:, 1])), UNIT[:, 0]))
    run = bnnviz.sample(target, "hmc", draws=5, chains=2, warmup=5, settings={"mode_steps": 5})
    assert "raw_inputs" in {note.code for note in run.summary()["notes"]}

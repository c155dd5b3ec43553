"""A network on rows that are far from the size that its prior expects says so, and no other network does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
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


@pytest.mark.parametrize(
    ("observed", "how"),
    [(UNIT[:, 0] * 5e4, {}), (UNIT[:, 0] + 300, {"likelihood": "student_t"}), (UNIT[:, :2] * 1e-3, {"outputs": 2})],
)
def test_observations_of_another_size_are_reported(observed: np.ndarray, how: dict[str, Any]) -> None:
    how = dict(how)
    module = network(outputs=how.pop("outputs", 1))
    (note,) = bnnviz.BNN(module, (UNIT, observed), **how).remarks()
    assert note.code == "raw_observations"
    assert bnnviz.BNN(module, (UNIT, observed), prior_sd=100.0, **how).remarks() == []

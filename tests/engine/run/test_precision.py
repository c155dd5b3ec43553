"""The precision of a run for which the caller names none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import bnnviz

SINGLE = torch.eye(3)


def round_gaussian(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x.square().sum(-1)


def in_single_precision(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * (x @ SINGLE).square().sum(-1)


@pytest.mark.parametrize(
    ("function", "dim", "dtype"),
    [(round_gaussian, 50, "float64"), (round_gaussian, 51, "float32"), (in_single_precision, 3, "float32")],
)
def test_small_densities_of_the_caller_are_in_float64(function: Callable, dim: int, dtype: str) -> None:
    options = {"dim": dim, "draws": 3, "warmup": 3, "device": "cpu"}
    assert bnnviz.sample(function, "hmc", dtype="auto", **options).spec.dtype == dtype
    assert bnnviz.sample(function, "hmc", dtype="float32", **options).spec.dtype == "float32"


def test_a_registered_density_has_the_precision_of_its_spec() -> None:
    assert (
        bnnviz.sample("gaussian", "hmc", draws=3, warmup=3, dtype="auto").spec
        == bnnviz.Spec("gaussian", {}, "hmc", {}, draws=3, warmup=3).checked()
    )

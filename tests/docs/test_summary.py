"""The page on summaries names every key that the summary of a run has, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import bnnviz
from bnnviz.engine.evaluation.prior_search import PriorSearch
from bnnviz.specs.run import Spec

PAGE = Path(__file__).resolve().parents[2] / "docs" / "manual" / "summary.md"
NETWORK = {"data": "toy_c", "hidden": "3"}
FEW = {"chains": 2, "draws": 6, "warmup": 4, "seed": 1}
WEIGHED = {"settings": {"draws_each": 20}} | FEW | {"draws": 2, "warmup": 0}
POINTS = FEW | {"draws": 1, "warmup": 0}


def own_density(x: torch.Tensor) -> torch.Tensor:
    return x.square().sum(-1) / 2


def classes() -> bnnviz.BNN:
    """Return a network for two classes, of which one layer is frozen."""
    net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
    x = torch.linspace(-1, 1, 10)[:, None]
    return bnnviz.BNN(net, (x, x[:, 0] > 0), likelihood="bernoulli", sample="last")


def searched() -> PriorSearch:
    spec = Spec(target="network", target_settings=NETWORK | {"prior_sd": 1.0}, sampler="map", **POINTS).checked()
    return PriorSearch(spec, "nll", ({"prior_sd": 1.0, "value": 0.0, "seconds": 1.0},), 0.1, 10.0)


def runs() -> list[tuple[Any, str, dict[str, Any]]]:
    """Return targets, samplers and what else `bnnviz.sample` takes, of runs that have all keys between them."""
    return [
        ("banana", "hmc", FEW),
        ("banana", "bps", FEW | {"settings": {"samples": "events"}}),
        ("banana", "pmcnet", WEIGHED),
        ("banana", "laplace", POINTS),
        ("banana", "func_hmc", FEW),
        (own_density, "nuts", FEW | {"dim": 2}),
        (own_density, "parallel_tempering", FEW | {"dim": 2}),
        (classes(), "hmc", FEW),
        ("network", "hmc", FEW | {"target_settings": NETWORK}),
        ("network", "bps", FEW | {"target_settings": NETWORK}),
        ("network", "sgld", FEW | {"target_settings": NETWORK}),
        ("network", "pmcnet", WEIGHED | {"target_settings": NETWORK}),
        (searched(), "map", {}),
    ]


def listed() -> list[str]:
    """Return the keys of the page's tables."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [key for row in rows for key in re.findall(r"\w+", row)]


@pytest.mark.slow
def test_the_page_names_the_keys_that_summaries_have() -> None:
    made = [bnnviz.sample(target, sampler, progress_bar=False, **options) for target, sampler, options in runs()]
    found = {key for run in made for key in run.summary()}
    keys = listed()
    assert len(keys) == len(set(keys))
    assert sorted(found - set(keys)) == []
    assert sorted(set(keys) - found) == []

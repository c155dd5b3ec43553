"""The families that samplers belong to, by name, a few quick ones of many cases, and a race of samplers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from bnnviz import samplers, settings
from bnnviz.samplers.baselines.adam import Trained
from bnnviz.samplers.importance.population import Population
from bnnviz.samplers.pdmp.base import PDMP
from bnnviz.samplers.sgmcmc.base import StochasticGradient
from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec

PDMPS = [cls.registered for cls in samplers.REGISTRY if issubclass(cls, PDMP)]
STOCHASTIC = [cls.registered for cls in samplers.REGISTRY if issubclass(cls, StochasticGradient)]
TRAINED = [cls.registered for cls in samplers.REGISTRY if issubclass(cls, Trained)]
DISCRETE = [cls.registered for cls in samplers.REGISTRY if not issubclass(cls, PDMP | Population)]

#: Settings that make samplers quick; none for those that are.
QUICK: dict[str, dict[str, Any]] = defaultdict(
    dict,
    {
        "nuts": {"max_treedepth": 3},
        "hmc": {"num_leapfrog_steps": 4},
        "parallel_tempering": {"temperatures": 2, "num_leapfrog_steps": 3},
        "func_hmc": {"num_leapfrog_steps": 3},
        "sae": {"first_epochs": 3, "epochs": 1},
        **{name: {"steps": 70} for name in TRAINED if name != "sae"},
    },
)


def fitting(name: str, **requested: Any) -> dict[str, Any]:
    """Return those of some settings that a sampler has."""
    return {key: value for key, value in requested.items() if key in settings.declared(samplers.REGISTRY.get(name))}


def target_of(name: str) -> tuple[str, dict[str, Any]]:
    """Return a target with data rows that a sampler fits: logistic regression, or a network where it must be one."""
    if name == "mc_dropout":
        return "network", {"data": "toy_c", "hidden": "4"}
    return "logistic_regression", {}


def fits(name: str, target: str) -> bool:
    """Return whether a sampler can draw from a target, or refuses it."""
    return target == "network" or name not in ("mc_dropout", "sae")


def some_quick(cases: Iterable[Any], number: int) -> list[Any]:
    """Return the cases as parameters; all but ``number`` evenly spread ones are marked slow."""
    cases = list(cases)
    quick = {round(place * (len(cases) - 1) / max(number - 1, 1)) for place in range(number)}
    return [
        pytest.param(*(case if type(case) is tuple else (case,)), marks=[pytest.mark.slow] * (place not in quick))
        for place, case in enumerate(cases)
    ]


def race_of(*entries: Any, budget: int = 4_000, **shared: Any) -> RaceSpec:
    """Return a race of samplers, each a name or a name with its settings."""
    shared = {"target": "banana", "chains": 2, "seed": 4, "warmup": 5, **shared}
    named = [(entry, {}) if isinstance(entry, str) else entry for entry in entries]
    return RaceSpec(tuple(Spec(sampler=name, settings=own, **shared) for name, own in named), budget).checked()

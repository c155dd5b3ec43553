"""The families that samplers belong to, by name."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from bnnviz import samplers, settings
from bnnviz.samplers.baselines.adam import Trained
from bnnviz.samplers.importance.population import Population
from bnnviz.samplers.pdmp.base import PDMP
from bnnviz.samplers.sgmcmc.base import StochasticGradient

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

"""The families that samplers belong to, by name."""

from __future__ import annotations

from bnnviz import samplers
from bnnviz.samplers.discrete import Discrete
from bnnviz.samplers.pdmp import PDMP
from bnnviz.samplers.stochastic import StochasticGradient

PDMPS = [cls.registered for cls in samplers.REGISTRY if issubclass(cls, PDMP)]
STOCHASTIC = [cls.registered for cls in samplers.REGISTRY if issubclass(cls, StochasticGradient)]
DISCRETE = [cls.registered for cls in samplers.REGISTRY if issubclass(cls, Discrete)]

#: Settings that make the others of them quick.
QUICK = {"nuts": {"max_depth": 3}, "hmc": {"leaps": 4}, "func_hmc": {"leaps": 3}}

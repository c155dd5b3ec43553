"""The families that samplers belong to, by name."""

from __future__ import annotations

from bnnviz import samplers
from bnnviz.samplers.discrete import Discrete
from bnnviz.samplers.pdmp import PDMP

PDMPS = [cls.registered for cls in samplers.REGISTRY if issubclass(cls, PDMP)]
DISCRETE = [cls.registered for cls in samplers.REGISTRY if issubclass(cls, Discrete)]

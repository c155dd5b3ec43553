"""Wrap densities of other libraries: distributions of PyTorch, models of Pyro."""

from bnnviz.targets.foreign.distributions import DistributionDensity
from bnnviz.targets.foreign.pyro_models import PyroDensity

__all__ = ["DistributionDensity", "PyroDensity"]

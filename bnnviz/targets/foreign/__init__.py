"""Wrap densities of other libraries: distributions of PyTorch, models of Pyro and Stan."""

from bnnviz.targets.foreign.distributions import DistributionDensity
from bnnviz.targets.foreign.pyro_models import PyroDensity
from bnnviz.targets.foreign.stan_models import StanDensity

__all__ = ["DistributionDensity", "PyroDensity", "StanDensity"]

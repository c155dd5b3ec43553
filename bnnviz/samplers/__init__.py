"""Samplers: one file each, registered under an explicit unique name."""

from bnnviz.samplers.base import REGISTRY, Sampler
from bnnviz.samplers.boomerang import Boomerang
from bnnviz.samplers.bps import BPS
from bnnviz.samplers.hmc import HMC
from bnnviz.samplers.sghmc import SGHMC
from bnnviz.samplers.sgld import SGLD
from bnnviz.samplers.sigma_bps import SigmaBPS
from bnnviz.samplers.zigzag import ZigZag

__all__ = ["BPS", "HMC", "REGISTRY", "SGHMC", "SGLD", "Boomerang", "Sampler", "SigmaBPS", "ZigZag"]

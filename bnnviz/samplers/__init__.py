"""Samplers: one file each, registered under an explicit unique name."""

from bnnviz.samplers.base import REGISTRY, Sampler
from bnnviz.samplers.bbb import BayesByBackprop
from bnnviz.samplers.boomerang import Boomerang
from bnnviz.samplers.bps import BPS
from bnnviz.samplers.ensemble import Ensemble
from bnnviz.samplers.func_hmc import FuncHMC
from bnnviz.samplers.hmc import HMC
from bnnviz.samplers.laplace import Laplace
from bnnviz.samplers.map import MAP
from bnnviz.samplers.mc_dropout import MCDropout
from bnnviz.samplers.mle import MLE
from bnnviz.samplers.nuts import NUTS
from bnnviz.samplers.pmcnet import PMCnet
from bnnviz.samplers.pmcnet_light import PMCnetLight
from bnnviz.samplers.psgld import PSGLD
from bnnviz.samplers.sae import SAE
from bnnviz.samplers.sgfuncrld import SGFuncRLD
from bnnviz.samplers.sghmc import SGHMC
from bnnviz.samplers.sgld import SGLD
from bnnviz.samplers.sigma_bps import SigmaBPS
from bnnviz.samplers.zigzag import ZigZag

__all__ = [
    "BPS",
    "HMC",
    "MAP",
    "MLE",
    "NUTS",
    "PSGLD",
    "REGISTRY",
    "SAE",
    "SGHMC",
    "SGLD",
    "BayesByBackprop",
    "Boomerang",
    "Ensemble",
    "FuncHMC",
    "PMCnet",
    "PMCnetLight",
    "Laplace",
    "MCDropout",
    "SGFuncRLD",
    "Sampler",
    "SigmaBPS",
    "ZigZag",
]

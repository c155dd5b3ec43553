"""Define targets: densities with known answers, and posteriors of networks."""

from bnnviz.targets.base import REGISTRY, Callable, Target
from bnnviz.targets.bnn import BNN as BNN
from bnnviz.targets.bnn_network import Network
from bnnviz.targets.densities import Banana, DoubleWell, Funnel, Gaussian, GaussianMixture
from bnnviz.targets.distributions import DistributionDensity
from bnnviz.targets.few_data import LogisticRegression, TwoData
from bnnviz.targets.images import ImageNetwork
from bnnviz.targets.likelihoods import NOISES, Likelihood
from bnnviz.targets.minibatch import LinearLosses, Rows, RowTarget
from bnnviz.targets.parameters import Parameter, ParameterDensity, above, below, interval, positive, simplex

__all__ = [
    "NOISES",
    "REGISTRY",
    "Banana",
    "Callable",
    "DistributionDensity",
    "DoubleWell",
    "Funnel",
    "Gaussian",
    "GaussianMixture",
    "ImageNetwork",
    "Likelihood",
    "LinearLosses",
    "LogisticRegression",
    "Network",
    "Parameter",
    "ParameterDensity",
    "RowTarget",
    "Rows",
    "Target",
    "TwoData",
    "above",
    "below",
    "interval",
    "positive",
    "simplex",
]

"""Sample by PMCnet: population Monte Carlo with gradient steps and robust covariances, of full matrices.

The formulas are those of `bnnviz.samplers.importance.population`. Reference: Huang, Chouzenoux, Elvira and Pesquet
2023, Algorithm 1, equations 10 to 13, doi:10.1016/j.jfranklin.2023.08.044. The text also wants eta_T = 0; nothing is
drawn after the last iteration, so that would change nothing.
"""

from __future__ import annotations

from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.importance.mixture import Full
from bnnviz.samplers.importance.population import Population


@REGISTRY.add
class PMCnet(Population):
    """Adaptive importance sampling with M normal proposals of full covariance, K draws each.

    A chain is a proposal, so ``chains`` is M; each iteration makes K draws of every proposal. Draws have weights
    w = exp(-U) / mixture of all proposals. Survivors, one of each proposal, go along the gradient, scaled by the
    proposal's new covariance, and the step is halved until U falls. ``gradient`` off is PMCnet-gradfree,
    ``adapt_covariance`` off PMCnet-covfree, both off DM-PMC.
    """

    registered = "pmcnet"
    title = "PMCnet"
    covariance = Full
    presets = [
        {
            "name": "gradfree",
            "title": "PMCnet-gradfree",
            "doc": "Means do not go along the gradient.",
            "settings": {"gradient": False},
        },
        {
            "name": "covfree",
            "title": "PMCnet-covfree",
            "doc": "Covariances stay as they are.",
            "settings": {"adapt_covariance": False},
        },
        {
            "name": "dm-pmc",
            "title": "DM-PMC",
            "doc": "Neither: deterministic-mixture population Monte Carlo.",
            "settings": {"gradient": False, "adapt_covariance": False},
        },
        {
            "name": "reference",
            "title": "As in the authors' code",
            "doc": "What the authors' code does instead of what the paper says.",
            "settings": {"variant": "reference-code"},
        },
    ]

"""Run Boston housing from one MAP start: Table 1 of the PDMP paper."""

from __future__ import annotations

from typing import Any

from bnnviz.experiments import published
from bnnviz.experiments.experiment import Case, Experiment, repeated

SEEDS = range(5)
#: Algorithm 2 as the paper has it: a line through two signed rates, alpha 1, R 2, no horizon, draws at events.
PAPER = {"bound": "interpolated", "alpha": 1.0, "reject_above": 2.0, "horizon": 1000.0, "samples": "events"}
#: Batches of 10, as in the authors' code. The step size is a fifth of one over the largest curvature at the MAP: the
#: variance along the stiffest direction comes out 5 % too large under SGLD, which goes slowly everywhere else.
BATCHES = {"batch_size": 10, "every": 50}
_TARGET = {"data": "boston", "split": 0, "hidden": "50", "activation": "tanh", "noise_sd": 1.0}
_AT_THE_MAP = "The published figures are what the MAP has: over these seeds 2.71 ± 0.04 and 0.961 ± 0.001."
#: Case, sampler, settings, note.
_CASES: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("BPS", "bps", {}, _AT_THE_MAP + " Draws two events apart leave it slowly."),
    (
        "sigma-BPS",
        "sigma_bps",
        {},
        "Its NLL of {nll|.2f} is above the published one because this one leaves the MAP, whose NLL that is.",
    ),
    (
        "Boomerang, reference for prior",
        "boomerang",
        {"reference": "prior"},
        "An NLL of 0.96 is the MAP's, so the paper's draws were narrower: with gamma 0.01 and"
        " Algorithm 2 one run gave 0.97 and an ESS of 173. An ESS of 901 was not reached with any setting tried.",
    ),
    (
        "Boomerang",
        "boomerang",
        {},
        "The posterior itself, which the paper does not sample: its figures are of the flat prior. Its NLL is"
        " {nll|.2f}, and SGHMC's {nll@SGHMC|.2f}.",
    ),
    (
        "BPS, Algorithm 2",
        "bps",
        PAPER,
        "Without a horizon half of the ratios are above 1, and runs scatter. Variances are {widening_share|.0%} too"
        " large."
        " Velocities in the authors' code have a standard deviation of 0.001, not 1: its paths stay near the MAP.",
    ),
    (
        "Boomerang, Algorithm 2",
        "boomerang",
        {"reference": "prior", **PAPER},
        "As above, half of the ratios are above 1. Variances are {widening_share|.0%} too large.",
    ),
    (
        "SGLD",
        "sgld",
        {"decay": 0.55, **BATCHES},
        "The authors' code adds the noise to the gradient, which makes it eps^2 too cold: SGD in effect, at the"
        " MAP. With temperature 0.001 one run of ours gave 0.96 and 2.63. At 1 the chain leaves the MAP, and its"
        " falling step leaves it stuck on the way.",
    ),
    ("SGLD-ND", "sgld", BATCHES, "Not in the paper's table. Its step stays: it comes further."),
    (
        "SGHMC",
        "sghmc",
        BATCHES,
        "The NLL is not the MAP's, as the published one is: variances are {-widening_share|.0%} too"
        " small, those of SGLD {-widening_share@SGLD|.0%}.",
    ),
)


def _case(name: str, sampler: str, settings: dict[str, Any], note: str) -> Case:
    specs = repeated("network", _TARGET, sampler, {"start": "mode", **settings}, seeds=SEEDS, draws=1000, warmup=100)
    return Case(name, specs, published.read("pdmp-table1").get(name.partition(",")[0], {}), note)


TABLE1 = Experiment(
    name="pdmp-table1",
    title="Boston housing, a 13-50-1 tanh network, all samplers from one MAP (PDMP paper, Table 1)",
    doc="Five runs on split 0, one chain of 1,000 draws each; for each seed all samplers start at the same MAP. Noise"
    " N(0, 1) on the standardised target, prior N(0, 1). variance off by: by what share the draws' variances are too"
    " large, by Stein's identity; -1 is a point.",
    measures=("nll", "rmse", "ess_pc1", "ess_per_million", "widening_share"),
    cases=tuple(_case(*row) for row in _CASES),
    minutes=12,
)

"""Boston housing from one MAP start: Table 1 of the PDMP paper (corrected text)."""

from __future__ import annotations

from typing import Any

from bnnviz.experiments.experiment import Case, Experiment
from bnnviz.specs.run import Spec

SEEDS = range(5)
#: Algorithm 2 as the paper has it: a line through two signed rates, alpha 1, R 2, no horizon, draws at events.
PAPER = {"bound": "interpolated", "alpha": 1.0, "reject_above": 2.0, "horizon": 1000.0, "samples": "events"}
#: Batches of 10, as in the reference code. The step size is a fifth of one over the largest curvature at the MAP: the
#: variance along the stiffest direction comes out 5 % too large under SGLD, which goes slowly everywhere else.
BATCHES = {"batch_size": 10, "every": 50}

_AT_THE_MAP = "The published figures are what the MAP has: over these seeds 2.71 ± 0.04 and 0.961 ± 0.001."
_BOOMERANG = (0.96, 2.77, 901.07)


def _specs(sampler: str, settings: dict[str, Any]) -> tuple[Spec, ...]:
    target = {"data": "boston", "split": 0, "hidden": "50", "activation": "tanh", "noise_sd": 1.0}
    settings = {"start": "mode", **settings}
    return tuple(
        Spec("network", target, sampler, settings, chains=1, draws=1000, warmup=100, seed=seed) for seed in SEEDS
    )


def _case(name: str, sampler: str, settings: dict[str, Any], published: tuple[float, ...], note: str) -> Case:
    return Case(name, _specs(sampler, settings), dict(zip(("nll", "rmse", "ess_pc1"), published, strict=False)), note)


TABLE1 = Experiment(
    name="pdmp-table1",
    title="Boston housing, a 13-50-1 tanh network, all samplers from one MAP (PDMP paper, Table 1)",
    doc="Five runs on split 0, one chain of 1,000 draws each; for each seed all samplers start at the same MAP. Noise"
    " N(0, 1) on the standardised target, prior N(0, 1). widening: by what share the draws' variances are too large,"
    " by Stein's identity; -1 is a point.",
    measures=("nll", "rmse", "ess_pc1", "ess_per_million", "widening_share"),
    cases=(
        _case("BPS", "bps", {}, (0.96, 2.76, 2.71), _AT_THE_MAP + " Draws two events apart leave it slowly."),
        _case(
            "sigma-BPS",
            "sigma_bps",
            {},
            (0.96, 2.73, 2.70),
            "RMSE as published; the NLL is higher because this one leaves the MAP, whose NLL the published one is.",
        ),
        _case(
            "Boomerang, reference for prior",
            "boomerang",
            {"reference": "prior"},
            _BOOMERANG,
            "RMSE as published. An NLL of 0.96 is the MAP's, so the paper's draws were narrower: with gamma 0.01 and"
            " Algorithm 2 one run gave 0.97 and an ESS of 173. An ESS of 901 was not reached with any setting tried.",
        ),
        _case(
            "Boomerang",
            "boomerang",
            {},
            _BOOMERANG,
            "The posterior itself, which the paper does not sample: its figures are of the flat prior. SGHMC has the"
            " same NLL, and nearly the posterior's width.",
        ),
        _case(
            "BPS, Algorithm 2",
            "bps",
            PAPER,
            (0.96, 2.76, 2.71),
            "Without a horizon half of the ratios are above 1, the draws many times too wide, and runs scatter. The"
            " reference code's velocities have a standard deviation of 0.001, not 1: its paths stay near the MAP.",
        ),
        _case(
            "Boomerang, Algorithm 2",
            "boomerang",
            {"reference": "prior", **PAPER},
            _BOOMERANG,
            "As above: half of the ratios are above 1, and variances come out eight times too large.",
        ),
        _case(
            "SGLD",
            "sgld",
            {"decay": 0.55, **BATCHES},
            (0.96, 2.68, 2.89),
            "The reference code adds the noise to the gradient, which makes it eps^2 too cold: SGD in effect, at the"
            " MAP. With temperature 0.001 one run of ours gave 0.96 and 2.63. At 1 the chain leaves the MAP, and its"
            " falling step leaves it stuck on the way.",
        ),
        _case("SGLD-ND", "sgld", BATCHES, (), "Not in the paper's table. Its step stays: it comes further."),
        _case(
            "SGHMC",
            "sghmc",
            BATCHES,
            (0.96, 2.69, 2.71),
            "RMSE as published; the NLL is not the MAP's, as the published one is: the draws are nearly as wide as the"
            " posterior.",
        ),
    ),
    minutes=12,
)

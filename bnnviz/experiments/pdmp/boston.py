"""Boston housing, Table 1 of the PDMP paper (corrected text)."""

from __future__ import annotations

from typing import Any

from bnnviz.experiments.experiment import Case, Experiment
from bnnviz.specs.run import Spec

_SPLITS = 20
_NOTE = "published: five runs on one split; ours: Gal's splits. nll: standardised target."


def _specs(sampler: str, settings: dict[str, Any]) -> tuple[Spec, ...]:
    return tuple(
        Spec(
            target="network",
            target_settings={"data": "boston", "split": split, "hidden": "50", "activation": "tanh", "noise_sd": 1.0},
            sampler=sampler,
            settings=settings,
            chains=4,
            draws=500,
            warmup=100,
            seed=split,
        )
        for split in range(_SPLITS)
    )


BOSTON = Experiment(
    name="pdmp-boston",
    title="Boston housing, a 13-50-1 tanh network (PDMP paper, Table 1)",
    doc="RMSE and NLL over Gal's 20 splits, noise N(0, 1) on the standardised target, prior N(0, 1), four chains from"
    " modes, draws along the path under the grid bound.",
    measures=("rmse", "nll", "ess_pc1"),
    cases=(
        Case("Boomerang", _specs("boomerang", {}), {"rmse": 2.77, "nll": 0.96}, _NOTE),
        Case(
            "Boomerang, reference for prior",
            _specs("boomerang", {"reference": "prior"}),
            {"rmse": 2.77, "nll": 0.96},
            _NOTE,
        ),
        Case("Bouncy Particle", _specs("bps", {"refresh_rate": 10.0}), {"rmse": 2.76, "nll": 0.96}, _NOTE),
    ),
)

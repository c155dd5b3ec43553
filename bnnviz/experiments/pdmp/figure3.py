"""Predict the synthetic regressions, all samplers from one MAP start: Fig. 3 of the PDMP paper."""

from __future__ import annotations

from typing import Any

from bnnviz.experiments.experiment import Case, Experiment, repeated
from bnnviz.specs.run import Spec

SEEDS = range(5)
DATA = ("toy_a", "toy_b", "toy_c")
#: All rows, as in the authors' code; the step size as in `bnnviz.experiments.pdmp.table1`.
_ROWS = {"thin": 10}
SAMPLERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("BPS", "bps", {}),
    ("sigma-BPS", "sigma_bps", {}),
    ("Boomerang", "boomerang", {"reference": "prior"}),
    ("SGLD", "sgld", {"decay": 0.55, **_ROWS}),
    ("SGLD-ND", "sgld", _ROWS),
)


def _specs(data: str, sampler: str, settings: dict[str, Any]) -> tuple[Spec, ...]:
    target = {"data": data, "hidden": "25-10", "activation": "tanh", "noise_sd": 0.1}
    return repeated("network", target, sampler, {"start": "mode", **settings}, seeds=SEEDS, draws=600, warmup=100)


FIG3 = Experiment(
    name="pdmp-fig3",
    title="Predictions on toy_a, toy_b and toy_c, a 1-25-10-1 tanh network (PDMP paper, Fig. 3)",
    doc="Five runs, one chain of 600 draws each, all rows in every gradient; for each seed all samplers start at the"
    " same MAP. The noise N(0, 0.1^2) is ours; the paper's is not public. toy_c has 28 points here and 500 in the"
    " authors' code. band: half the width of the 95% band of the functions, near the data and away from them; --out"
    " FILE.html draws the bands.",
    measures=("band_near", "band_away", "rmse", "ess_pc1", "widening_share"),
    cases=tuple(
        Case(f"{data}, {name}", _specs(data, sampler, settings), at={"data": data, "sampler": name})
        for data in DATA
        for name, sampler, settings in SAMPLERS
    ),
    why="SGLD's band is narrow because 7,000 moves of a safe size do not leave the MAP, not because of its target. The"
    " Boomerang's target is the likelihood times N(w*, S), which keeps it near w*.",
    bands=True,
    minutes=52,
)

"""Predict the synthetic regressions, all samplers from one MAP start: Fig. 3 of the PDMP paper."""

from __future__ import annotations

from typing import Any

from bnnviz.experiments.experiment import Case, Experiment, repeated
from bnnviz.specs.run import Spec

SEEDS = range(5)
DATA = ("toy_a", "toy_b", "toy_c")
#: All rows, as in the authors' code; the step size as in `bnnviz.experiments.pdmp.table1`.
_ROWS = {"every": 10}
SAMPLERS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    (
        "BPS",
        "bps",
        {},
        "Away from the data its band is {band_away / band_near|.1f} times as wide as near them. It is not the"
        " posterior's yet: variances are {-widening_share|.0%} too small{widening_share < 0}.",
    ),
    (
        "sigma-BPS",
        "sigma_bps",
        {},
        "Its band is {band_away / band_near|.1f} times as wide away from the data, and variances are"
        " {-widening_share|.0%} too small.",
    ),
    (
        "Boomerang",
        "boomerang",
        {"reference": "prior"},
        "Away from the data its band is {band_away / band_away@DATA, BPS|.1f} times BPS's and"
        " {band_away / band_away@DATA, SGLD|.1f} times SGLD's. Its own target is the likelihood times N(w*, S), which"
        " holds it near w*.",
    ),
    (
        "SGLD",
        "sgld",
        {"decay": 0.55, **_ROWS},
        "Away from the data its band is {band_away / band_near|.1f} times as wide as near them. That is no law of SGLD:"
        " 7,000 moves of a safe size do not leave the MAP, variances are {-widening_share|.0%} too small, and the"
        " authors' code is colder still.",
    ),
    (
        "SGLD-ND",
        "sgld",
        _ROWS,
        "Its band is {band_away / band_away@DATA, SGLD|.1f} times SGLD's away from the data: still little, for the same"
        " reason.",
    ),
)


def _specs(data: str, sampler: str, settings: dict[str, Any]) -> tuple[Spec, ...]:
    target = {"data": data, "hidden": "25-10", "activation": "tanh", "noise_sd": 0.1}
    return repeated("network", target, sampler, {"start": "mode", **settings}, seeds=SEEDS, draws=600, warmup=100)


FIG3 = Experiment(
    name="pdmp-fig3",
    title="Predictions on toy_a, toy_b and toy_c, a 1-25-10-1 tanh network (PDMP paper, Fig. 3)",
    doc="Five runs, one chain of 600 draws each, all rows in every gradient; for each seed all samplers start at the"
    " same MAP. Noise N(0, 0.1^2),"
    " which is ours: the paper's is not public. Of toy_c the authors' code draws 500 points; here it has 28. band: half"
    " the width of the 95 % band of the functions, near the data and away from them; --out FILE.html draws the bands.",
    measures=("band_near", "band_away", "rmse", "ess_pc1", "widening_share"),
    cases=tuple(
        Case(
            f"{data}, {name}",
            _specs(data, sampler, settings),
            {},
            note.replace("DATA", data),
            {"data": data, "sampler": name},
        )
        for data in DATA
        for name, sampler, settings, note in SAMPLERS
    ),
    bands=True,
    minutes=52,
)

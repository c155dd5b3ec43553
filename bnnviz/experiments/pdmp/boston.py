"""Run Boston housing, Table 1 of the PDMP paper, on twenty splits."""

from __future__ import annotations

from typing import Any

from bnnviz.experiments import published
from bnnviz.experiments.experiment import Case, Experiment, repeated

_SPLITS = range(20)
_TARGET = {"data": "boston", "hidden": "50", "activation": "tanh", "noise_sd": 1.0}
#: Case, the paper's name of the sampler, sampler, settings.
_CASES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("Boomerang", "Boomerang", "boomerang", {}),
    ("Boomerang, reference for prior", "Boomerang", "boomerang", {"reference": "prior"}),
    ("Bouncy Particle", "BPS", "bps", {"refresh_rate": 10.0}),
)


def _case(name: str, printed: str, sampler: str, settings: dict[str, Any]) -> Case:
    specs = repeated(
        "network", _TARGET, sampler, settings, seeds=_SPLITS, splits=_SPLITS, chains=4, draws=500, warmup=100
    )
    values = published.read("pdmp-table1")[printed]
    return Case(name, specs, {measure: values[measure] for measure in ("rmse", "nll")})


BOSTON = Experiment(
    name="pdmp-boston",
    title="Boston housing, a 13-50-1 tanh network (PDMP paper, Table 1)",
    doc="RMSE and NLL over Gal's 20 splits, noise N(0, 1) on the standardised target, prior N(0, 1), four chains from"
    " modes, draws along the path under the grid bound.",
    measures=("rmse", "nll", "ess_pc1"),
    cases=tuple(_case(*row) for row in _CASES),
    why="The paper has five runs on one split. Their spread is not the spread over splits.",
)

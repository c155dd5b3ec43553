"""Run Figures 1, 2 and 4 of the PDMP paper: Lab figures of one run each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bnnviz.experiments.experiment import Case, Panel, as_printed
from bnnviz.experiments.pdmp.table1 import PAPER
from bnnviz.experiments.predictive import PredictiveExperiment
from bnnviz.specs.run import Spec

# Views whose names differ from their parts
_VIEWS = {"envelope": "thinning", "wells": "functionals", "ratio": "density_ratio"}
_SCENES = {
    **dict.fromkeys(("prediction", "spread"), ("dim", "data")),
    **dict.fromkeys(("envelope", "ratios"), ("dim",)),
    "wells": ("x", "truth", "first"),
    "ratio": (),
}
_NOT_DRAWN = ("current", "settling")  # of a finished prediction


@dataclass(frozen=True)
class FrameExperiment(PredictiveExperiment):
    """A figure whose pictures are parts of the last frame, and whose numbers come from the run's summary."""

    runner: str = "figure_run:result"
    watched: dict[str, Any] = field(default_factory=dict)
    headings: dict[str, str] = field(default_factory=dict)

    @property
    def _measured(self) -> list[str]:
        return [*super()._measured, *map(str, self.watched.items())]

    def _panels_of(self, picture: str, firsts: list[tuple[str, dict[str, Any]]]) -> list[Panel]:
        parts = [(name, _slim(picture, pictures[picture])) for name, pictures in firsts if pictures.get(picture)]
        view = _VIEWS.get(picture, picture)
        return [(f"{name}: {self.headings[picture]}", view, part) for name, part in parts]


def _slim(picture: str, part: dict[str, Any]) -> dict[str, Any]:
    """Return a part with only the scene data that its figure uses, without weight names and the plane's density."""
    scene = {key: value for key, value in part["scene"].items() if key in _SCENES.get(picture, part["scene"])}
    return {key: value for key, value in part.items() if key not in _NOT_DRAWN} | {"scene": scene}


def _case(name: str, target: str, values: dict[str, Any], sampler: str, draws: int, **settings: Any) -> Case:
    spec = Spec(
        target, values, sampler, as_printed(sampler, settings), chains=1, draws=draws, warmup=draws // 5, seed=0
    )
    return Case(name, (spec,))


_LINE = {"data": "toy_c", "hidden": "10", "activation": "tanh", "noise_sd": 0.1}
FIG1 = FrameExperiment(
    name="pdmp-fig1",
    title="Correlations of a first layer's weights (PDMP paper, Fig. 1)",
    doc="A 1-10-1 tanh network on toy_c, one chain of 500 draws: the correlations of the first layer's weights, and the"
    " density of one of them. The paper does not describe its network.",
    measures=("ess_pc1", "ess_min"),
    cases=(_case("Boomerang", "network", _LINE, "boomerang", 500), _case("BPS", "network", _LINE, "bps", 500)),
    pictures=("weights", "marginal"),
    watched={"block": 0, "component": {"kind": "coordinate", "i": 0}},
    headings={"weights": "correlations of the first layer", "marginal": "one weight"},
    minutes=1,
)
FIG2 = FrameExperiment(
    name="pdmp-fig2",
    title="Envelopes of thinning (PDMP paper, Fig. 2)",
    doc="One segment between two events of the Bouncy Particle on a banana: rates, the line through the last two"
    " of them, and proposals, with Algorithm 2 as printed and with the grid bound.",
    measures=("ess_pc1", "violation_share"),
    cases=(
        _case("Algorithm 2", "banana", {}, "bps", 500, **PAPER),
        _case("Grid bound", "banana", {}, "bps", 500),
    ),
    pictures=("envelope", "ratios"),
    headings={"envelope": "one segment", "ratios": "rate over envelope, all proposals"},
    minutes=1,
)
_MOONS = {"data": "moons", "hidden": "100-100", "activation": "relu"}
FIG4 = FrameExperiment(
    name="pdmp-fig4",
    title="Mean and spread of the probability on two moons (PDMP paper, Fig. 4)",
    doc="The 2-100-100-1 ReLU network of the paper, one run of 100 draws of each sampler, from a MAP of 1,000 steps."
    " The authors' code has 5,000 points with a noise of .1, scaled, and batches of 150; here are 120 training rows; a"
    " batch holds all of them.",
    measures=("accuracy", "nll", "ess_pc1"),
    cases=tuple(
        _case(name, "network", _MOONS, sampler, 100, batch_size=150, mode_steps=1000, **settings)
        for name, sampler, settings in (
            ("BPS, interpolated", "bps", {"bound": "interpolated"}),
            ("sigma-BPS, interpolated", "sigma_bps", {"bound": "interpolated", "warmup_events": 200}),
            ("Boomerang, interpolated", "boomerang", {"bound": "interpolated"}),
            ("SGLD", "sgld", {"decay": 0.55, "thin": 20}),
            ("SGLD-ND", "sgld", {"thin": 20}),
        )
    ),
    pictures=("prediction", "spread"),
    headings={"prediction": "mean", "spread": "standard deviation"},
    minutes=4,
)
FIGURES_1_2_4 = (FIG1, FIG2, FIG4)

"""Run the double well, Figure 1 of the functional-BNN paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bnnviz.engine.drive import drive
from bnnviz.experiments.experiment import Case, Experiment, Panel
from bnnviz.files import to_json
from bnnviz.specs.wells import WellsSpec

_SEEDS = 5
_SLICE_S = 0.5
#: Pictures of a run: the part of a frame, its figure, and its heading.
_PICTURES = {"wells": ("functionals", "functionals and points"), "ratio": ("density_ratio", "truth over draws (KLIEP)")}


@dataclass(frozen=True)
class DoubleWellExperiment(Experiment):
    """A figure of one run of FuncHMC and HMC, its numbers over 400 runs for each seed."""

    pictures: tuple[str, ...] = tuple(_PICTURES)
    runner: str = "functional.figure1:result"

    def panels(self, done: dict[str, list[dict[str, Any]]]) -> list[Panel]:
        """Return (heading, view, part) of each picture of the first run of each case."""
        firsts = [(case.name, done[case.name][0]["pictures"]) for case in self.cases if done.get(case.name)]
        return [
            (f"{name.partition(',')[0]}: {heading}", view, pictures[part])
            for name, pictures in firsts
            for part, (view, heading) in _PICTURES.items()
        ]


def result(spec: WellsSpec, experiment: DoubleWellExperiment) -> dict[str, Any]:
    """Make both samplers' moves, and return their results with the arrays of the pictures."""
    from bnnviz.engine.wells import Wells  # with torch

    run = Wells(spec)
    drive(run, _SLICE_S)
    scene = {key: run.scene()[key] for key in ("x", "truth", "first")}
    frame = run.frame([*_PICTURES])
    pictures = {name: to_json(frame[name] | ({"scene": scene} if name == "wells" else {})) for name in _PICTURES}
    return run.summary() | {"pictures": pictures}


def _case(reading: str) -> Case:
    specs = tuple(WellsSpec({"reading": reading, "seed": seed}) for seed in range(_SEEDS))
    return Case(f"{reading}, 10 moves of 10 leaps", specs)


DOUBLE_WELL = DoubleWellExperiment(
    name="func-wells",
    title="FuncHMC and HMC on the double well (functional paper, Fig. 1)",
    doc="Share of runs that cover both wells, and the median over runs of the total variation between a run's draws and"
    " the truth, 400 runs for each seed; learning rate .2, momentum .5, 100 draws of a functional.",
    measures=("func_hmc_covered", "hmc_covered", "func_hmc_median", "hmc_median", "first_distance"),
    cases=(_case("figure"), _case("text")),
    why="The paper shows one run as a picture and prints no values. Both wells are covered if at least a fifth of the"
    " draws is on either side. A move of FuncHMC takes about 20 times the gradients of one of HMC.",
    minutes=0.2,
)

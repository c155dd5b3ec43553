"""Run the double well, Figure 1 of the functional-BNN paper."""

from __future__ import annotations

from bnnviz.experiments.experiment import Case
from bnnviz.experiments.pdmp.figures1_2_4 import FrameExperiment
from bnnviz.specs.wells import WellsSpec

_SEEDS = 5


def _case(reading: str) -> Case:
    specs = tuple(WellsSpec({"reading": reading, "seed": seed}) for seed in range(_SEEDS))
    return Case(f"{reading}, 10 moves of 10 leaps", specs)


DOUBLE_WELL = FrameExperiment(
    name="func-wells",
    title="FuncHMC and HMC on the double well (functional paper, Fig. 1)",
    doc="Share of runs that cover both wells, and the median over runs of the total variation between a run's draws and"
    " the truth, 400 runs for each seed; learning rate .2, momentum .5, 100 draws of a functional.",
    measures=("func_hmc_covered", "hmc_covered", "func_hmc_median", "hmc_median", "first_distance"),
    cases=(_case("figure"), _case("text")),
    pictures=("wells", "ratio"),
    headings={"wells": "functionals and points", "ratio": "truth over draws (KLIEP)"},
    why="The paper shows one run as a picture and prints no values. Both wells are covered if at least a fifth of the"
    " draws is on either side. A move of FuncHMC takes about 20 times the gradients of one of HMC.",
    minutes=0.2,
)

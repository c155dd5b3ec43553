"""Test the PDMP paper's claim of effective draws, with several chains, at equal gradients and for functions."""

from __future__ import annotations

from typing import Any

from bnnviz.experiments.experiment import Case, repeated
from bnnviz.experiments.pdmp.table2 import ALGORITHM_2
from bnnviz.experiments.predictive import PredictiveExperiment

_CHAINS = 4
#: Target, its settings, draws per chain, discarded draws, batch size, steps to the mode, and seeds.
_TARGETS: dict[str, tuple[str, dict[str, Any], int, int, int, int, range]] = {
    "moons": ("network", {"data": "moons", "hidden": "10", "activation": "tanh"}, 500, 100, 50, 500, range(5)),
    "digits": (
        "images",
        {"data": "mnist", "network": "lenet5", "train_rows": 400, "test_rows": 500},
        40,
        5,
        100,
        400,
        range(1),
    ),
}
_EVENTS = {"bound": "interpolated"}
_NARROW = {"reference": "prior", "gamma": 1e-3, **ALGORITHM_2}
#: Sampler, settings, and whether it uses batches.
_ENTRIES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "BPS": ("bps", _EVENTS, False),
    "Boomerang": ("boomerang", _EVENTS, False),
    "Boomerang, Algorithm 2": ("boomerang", _NARROW, True),
    "SGLD": ("sgld", {"decay": 0.55}, True),
    "SGLD-ND": ("sgld", {}, True),
    "SGHMC": ("sghmc", {}, True),
}
#: Moves between draws of samplers with batches, for about equal gradients.
_MOVES = {"moons": 30, "digits": 60}


def _case(where: str, name: str) -> Case:
    target, values, draws, warmup, batch, mode_steps, seeds = _TARGETS[where]
    sampler, settings, batched = _ENTRIES[name]
    chosen = {"mode_steps": mode_steps, "start": "mode", **settings}
    if batched:
        chosen |= {"batch_size": batch}
    if "bound" not in settings:
        chosen |= {"thin": _MOVES[where]}
    if where == "digits" and sampler == "sghmc":
        chosen |= {"step_size": 5e-6}  # a tenth of the automatic value, at which batch noise causes divergence
    specs = repeated(target, values, sampler, chosen, seeds=seeds, chains=_CHAINS, draws=draws, warmup=warmup)
    label = f"{name}, interpolated, all rows" if not batched else name
    return Case(f"{where}, {label}", specs)


MIXING = PredictiveExperiment(
    name="pdmp-mixing",
    title="The claim on effective draws, at equal gradients and with four chains (PDMP paper, Table 2)",
    doc="The paper has 175 effective draws of 200 for the Boomerang on MNIST and 23 for SGLD, of one chain each. Here"
    " four chains run on two moons with a 2-10-1 tanh network (five seeds) and on 400 digits with a LeNet-5; the paths"
    " of the PDMPs are sampled. ess_per_million: effective draws of the first component for a million gradients of one"
    " example; ess_function_median: the median over the probabilities at test rows.",
    measures=("ess_pc1", "rhat_max", "ess_per_million", "ess_function_median", "function_ess_per_million", "nll"),
    cases=tuple(_case(where, name) for where in _TARGETS for name in _ENTRIES),
    pictures=("trace",),
    runner="uncertainty_run:mixed",
    why="The Boomerang's chains all start at the mode of its reference, those of the others at different modes, so its"
    " ESS is an upper limit. With the gamma of the authors' code, 0.001, it samples a narrow normal distribution around"
    " one MAP, which is not the posterior.",
    minutes=25,
)

"""Sweep over refreshment, velocity and alpha (PDMP paper, supplement D and A)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bnnviz.experiments.experiment import Case, Experiment, repeated

_SEEDS = range(2)
_RATES = (0.1, 0.5, 2.0, 10.0)
_SPEEDS = (0.1, 0.3, 1.0, 3.0)
_ALPHAS = (1.0, 1.2, 1.5, 2.0)
_TARGET = {"data": "toy_a", "hidden": "25-10", "noise_sd": 1.0}


def _sweep(setting: str, values: tuple[float, ...], samplers: tuple[str, ...], **fixed: Any) -> Iterator[Case]:
    for sampler in samplers:
        for value in values:
            settings = {"mode_steps": 500, **fixed, setting: value}
            specs = repeated("network", _TARGET, sampler, settings, seeds=_SEEDS, chains=4, draws=100, warmup=25)
            at = {"sampler": sampler, "setting": setting, "value": value}
            yield Case(f"{sampler}, {setting} {value:g}", specs, at=at)


SWEEPS = Experiment(
    name="pdmp-sweeps",
    title="Refresh rate, velocity and alpha on toy_a, a 1-25-10-1 tanh network (PDMP paper, supplement)",
    doc="Effective draws of the first component for a million gradients, violations and test error, over the refresh"
    " rate and the velocity's standard deviation under the grid bound, and over alpha under the papers' bound;"
    " --out FILE.html draws them as small multiples.",
    measures=("ess_per_million", "ess_pc1", "violation_share", "rmse", "nll"),
    cases=(
        *_sweep("refresh_rate", _RATES, ("bps", "sigma_bps", "boomerang")),
        *_sweep("velocity_sd", _SPEEDS, ("bps", "sigma_bps")),
        *_sweep("alpha", _ALPHAS, ("bps", "sigma_bps", "boomerang"), bound="interpolated"),
    ),
    why="Four chains, each from its own mode, and noise N(0, 1); the paper's values are not public. An ESS near the"
    " number of chains means that they did not mix. A velocity s times as fast, refreshed at rate r, is the plain one"
    " refreshed at rate r / s with its clock s times as fast.",
)

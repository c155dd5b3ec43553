"""What a run has spent is the same however its steps are grouped into blocks, whose length is a matter of time."""

from __future__ import annotations

import pytest
from families import some_quick

from bnnviz.engine.run.run import Run
from bnnviz.specs.run import Spec

SAMPLERS = (
    "zigzag",
    "bps",
    "boomerang",
    "hmc",
    "nuts",
    "sgld",
    "map",
    "bbb",
    "func_hmc",
    "pmcnet",
    "parallel_tempering",
)
SETTINGS = {"map": {"steps": 50}, "bbb": {"steps": 50}, "func_hmc": {"draws_each": 3}, "nuts": {"max_treedepth": 4}}


def finished(spec: Spec, block: int) -> Run:
    run = Run(spec)
    run.prepare()
    while not run.finished:
        run.take(block, seconds=1000.0)
    return run


@pytest.mark.parametrize(
    ("sampler", "target"),
    some_quick(((sampler, target) for sampler in SAMPLERS for target in ("gaussian", "logistic_regression")), 4),
)
def test_gradients_are_counted_up_to_the_last_draw_of_each_chain(sampler: str, target: str) -> None:
    settings = SETTINGS.get(sampler, {})
    spec = Spec(target=target, sampler=sampler, settings=settings, chains=3, draws=20, warmup=5, seed=2).checked()
    one, many = finished(spec, 1), finished(spec, 100)
    assert many.steps == one.steps, "a block ends with the last draw"
    assert many.stats == pytest.approx(one.stats, nan_ok=True) and (many.rng.get_state() == one.rng.get_state()).all()
    assert one.gradients == many.gradients > 0
    assert (one.draws == many.draws).all()

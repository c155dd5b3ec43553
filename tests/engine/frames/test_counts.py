"""What the figures say of moves while a sampler learns its step, and of those that become draws."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bnnviz import samplers
from bnnviz.engine.frames.parts import count_rows
from bnnviz.samplers.moves import MoveStats


@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_what_diverges_while_a_sampler_learns_its_step_is_no_alarm(sampler: str) -> None:
    stats = MoveStats(samplers.REGISTRY.get(sampler)())
    stats.moves, stats.sums["diverging"] = 100, 10.0
    run = SimpleNamespace(sampler_stats=stats, phase="tuning")
    (row,) = [row for row in count_rows(run) if row[0].endswith("that diverged")]
    assert row[1:] == ["10% (warm-up)", ""]
    run.phase = "sampling"
    (row,) = [row for row in count_rows(run) if row[0].endswith("that diverged")]
    assert row[1:] == ["10%", "bad"]

"""What is driven declares what it can do, and does what a driver asks of it."""

from __future__ import annotations

import pytest

from bnnviz.engine.demos.double_well import DoubleWellDemo
from bnnviz.engine.demos.step_size import StepSizeDemo
from bnnviz.engine.history.fork import Fork
from bnnviz.engine.protocol import Simulation
from bnnviz.engine.race.image_race import ImageRace
from bnnviz.engine.race.race import Race
from bnnviz.engine.viewed_run import ViewedRun

#: can_record, has_history, is_fork
CAPABILITIES = {
    ViewedRun: (True, True, False),
    Race: (False, False, False),
    ImageRace: (False, False, False),
    DoubleWellDemo: (False, False, False),
    StepSizeDemo: (False, False, False),
    Fork: (False, True, True),
}
METHODS = [name for name in dir(Simulation) if callable(getattr(Simulation, name)) and not name.startswith("_")]


@pytest.mark.parametrize("driven", CAPABILITIES, ids=lambda driven: driven.__name__)
def test_what_is_driven_declares_its_capabilities(driven: type) -> None:
    assert (driven.can_record, driven.has_history, driven.is_fork) == CAPABILITIES[driven]


@pytest.mark.parametrize("driven", CAPABILITIES, ids=lambda driven: driven.__name__)
def test_what_is_driven_has_all_methods_of_a_simulation(driven: type) -> None:
    assert {"advance", "frame", "checkpoint"} <= set(METHODS)
    assert all(callable(getattr(driven, name)) for name in METHODS)

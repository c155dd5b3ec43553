"""What the figures of a run are is told where they stand."""

from __future__ import annotations

import contextlib

import pytest

from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.engine.wells import Wells
from bnnviz.errors import BnnvizError
from bnnviz.samplers import REGISTRY
from bnnviz.specs.run import Spec
from bnnviz.specs.wells import WellsSpec
from bnnviz_app.components.cards.cards import definition


def labels_of(target: str, sampler: str) -> set[str]:
    """Return the labels of the rows of a short run with all its views; none if the sampler refuses the target."""
    settings, found = {"hidden": "2"} if target == "network" else {}, set()
    with contextlib.suppress(BnnvizError):
        run = ViewedRun(Spec(target=target, sampler=sampler, chains=2, warmup=2, target_settings=settings).checked())
        for _ in range(40):
            run.advance(0.05)
            frame = run.frame(run.scene()["emits"])
            found |= {label for label, _, _ in frame.get("table", {"rows": []})["rows"]}
            if run.finished or run.store.common(run.alive) > 50:
                break
    return found


@pytest.mark.slow
@pytest.mark.parametrize("target", ["banana", "network", "double_well"])
@pytest.mark.parametrize("sampler", REGISTRY.names())
def test_every_row_of_every_sampler_is_defined(target: str, sampler: str) -> None:
    assert not {label for label in labels_of(target, sampler) if not definition(label)}


def test_every_row_of_the_wells_is_defined() -> None:
    wells = Wells(WellsSpec({"moves": 1}))
    wells.prepare()
    wells.step_proposal()
    labels = [label for label, _, _ in wells.frame(["table"])["table"]["rows"]]
    assert len(labels) > 4 and all(definition(label) for label in labels if label)

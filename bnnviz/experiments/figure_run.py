"""Run a figure of a page: its summary, and parts of its last frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bnnviz.engine.drive import drive
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.experiments.experiment import made
from bnnviz.experiments.predictive_run import outcome
from bnnviz.files import to_json
from bnnviz.specs.run import Spec
from bnnviz.specs.wells import WellsSpec

if TYPE_CHECKING:
    from bnnviz.experiments.pdmp.figures1_2_4 import FrameExperiment

_SLICE_S, _SHORT_S = 0.5, 0.005
_MOVING = ("envelope",)
_LATE, _EVENTS = 0.5, 3  # share of the run before events are inspected, and number of inspected events
_SCENE = ("dim", "names", "blocks", "emits", "plane", "data", "density", "truth", "x", "first")


def result(spec: Spec | WellsSpec, experiment: FrameExperiment) -> dict[str, Any]:
    """Run a spec and return statistics of its summary, and the plotted parts with the scene data they need."""
    run, pictures = made(spec), experiment.pictures
    run.watch(**experiment.watched)
    moving = _advanced(run, [name for name in pictures if name in _MOVING])
    summary, frame = run.summary(), run.frame([name for name in pictures if name not in _MOVING]) | moving
    scene = {key: value for key, value in run.scene().items() if key in _SCENE}
    figures = {name: summary.get(name) for name in experiment.measures}
    return outcome(
        run, figures, {name: to_json({**frame[name], "scene": scene}) for name in pictures if frame.get(name)}
    )


def _advanced(run: ViewedRun, moving: list[str]) -> dict[str, Any]:
    """Finish a run; return the parts that only a moving run has, from its last moves."""
    frame: dict[str, Any] = {}
    if moving and not drive(run, _SHORT_S, stopped=lambda: run.progress > _LATE):
        for _ in range(_EVENTS):
            run.step_event()
            frame = run.frame(moving)
    drive(run, _SLICE_S)
    return frame

"""Show the step-size grid as a live run: what a page's transport, caption and table need of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from bnnviz import targets
from bnnviz.engine.demos.demo import Demo
from bnnviz.engine.demos.step_size_grid import StepSizeGrid
from bnnviz.engine.monitor.words import with_error
from bnnviz.errors import BnnvizError
from bnnviz.specs.demo import TARGETS, StepSizeSpec

_LIVE = ("sampler", "place")
_EACH = "Error at a step size; slope"  # what each row of the table is
_NEAR = 0.8  # of the largest stable step size: from there on is near
# Slopes that are called a proportion, and a square.
_FIRST, _SECOND = (0.75, 1.35), (1.65, 2.4)
_VAGUE = 0.25  # a slope is not told with a larger standard error
_CLEAR = 2.0  # standard errors by which an error must differ from 0 to have a sign


class StepSizeDemo(Demo):
    """Run a `StepSizeSpec`.

    A step is a few moves of every cell. It has no end. The sampler and the step size whose density is shown may change.
    """

    spec_class: ClassVar[type[StepSizeSpec]] = StepSizeSpec
    parts: ClassVar[tuple[str, ...]] = ("status", "caption", "table", "errors", "cell")

    def __init__(self, spec: StepSizeSpec) -> None:
        super().__init__(spec)
        self.phase = "sampling"
        name, values = TARGETS[self.spec.settings["target"]]
        target = targets.REGISTRY.get(name)(**values)
        self.grid = StepSizeGrid(target, **{key: self.spec.settings[key] for key in ("sizes", "chains", "seed")})
        self._scene = self.grid.scene()
        self._choose()

    @property
    def steps(self) -> int:
        """Moves that every cell has made."""
        return self.grid.moves

    @property
    def gradients(self) -> int:
        """Gradients that the chains of all cells have taken."""
        return self.grid.gradients

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do: never, errors become smaller for as long as one waits."""
        return False

    @property
    def progress(self) -> float:
        """Share of the work that is done: there is no end to it."""
        return 0.0

    def prepare(self) -> None:
        """Do nothing: it is ready when it is made."""

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about so many seconds; return the moves of all cells together."""
        with self._worked():
            return self.grid.advance(seconds)

    def step_proposal(self) -> None:
        """Let every cell make a few moves."""
        with self._worked():
            self.grid.round()

    def step_event(self) -> None:
        """Step until there is a cell that counts."""
        self.step_proposal()
        while not self.grid.counting:
            self.step_proposal()

    def change(self, settings: dict[str, Any]) -> None:
        """Choose whose density is shown: ``sampler``, ``place``, or both."""
        for name in settings:
            if name not in _LIVE:
                raise BnnvizError(f"{name} cannot change while the step-size grid runs; begin again with it.", name)
        self.spec = self.spec.replace(settings=self.spec.settings | settings).checked()
        self._choose()
        self.changes.append((self.steps, dict(settings)))

    def _choose(self) -> None:
        self.grid.choose(self.spec.settings["sampler"], self.spec.settings["place"] - 1)

    # ---- what is looked at

    def scene(self) -> dict[str, Any]:
        """Return what stays the same, as `StepSizeGrid.scene` has it."""
        return self._scene | {
            "spec": self.spec.to_json(),
            "title": f"Step sizes on {self._scene['target']}",
            "emits": list(self.parts),
        }

    def _makers(self) -> dict[str, Callable[[], dict[str, Any]]]:
        seen = self.grid.frame()
        return {
            "caption": lambda: self._caption(seen),
            "table": lambda: self._table(seen),
            "errors": lambda: seen["errors"],
            "cell": lambda: seen["cell"],
        }

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return for each sampler, by name, its step ``size``s, relative ``error``s and ``se``s, and the ``slope``."""
        return {
            found["name"]: {
                **{key: found[key].tolist() for key in ("size", "error", "se")},
                "slope": None if found["slope"] is None else tuple(found["slope"]),
            }
            for found in self.grid.frame()["errors"]["samplers"]
        }

    def _status(self) -> dict[str, Any]:
        return super()._status() | {"chains": self.spec.settings["chains"]}

    def _caption(self, seen: dict[str, Any]) -> dict[str, Any]:
        cell, reference = seen["cell"], seen["errors"]["reference"]
        found = next(each for each in seen["errors"]["samplers"] if each["name"] == cell["name"])
        place = self.spec.settings["place"] - 1
        sentences = [
            f"{cell['title']}'s {_off(found, place, cell)} at step size {cell['size']:.3g}",
            f"its error {_falls(found['slope'])}",
        ]
        if reference is not None:
            percent = _percent(reference["error"], reference["se"])
            sentences.append(f"{self._scene['reference']}, which has no step size, is off by {percent}")
        warning = " ".join(part for part in (self._diverged(), self._near(cell), self._guessed(cell)) if part)
        return {"text": "; ".join(sentences) + ".", "kind": "summary", "warning": warning, "remedies": []}

    def _diverged(self) -> str:
        """Name the samplers and step sizes whose chains have left all bounds."""
        told = [
            f"{cells[0].sampler.title} at {', '.join(f'{cell.size:.3g}' for cell in lost)}"
            for cells in self.grid.cells.values()
            if (lost := [cell for cell in cells if cell.diverged])
        ]
        return f"Diverged, and not drawn: {'; '.join(told)}." if told else ""

    def _near(self, cell: dict[str, Any]) -> str:
        if cell["diverged"] or cell["size"] < _NEAR * cell["limit"]:
            return ""
        return f"Near the limit of stability, {cell['limit']:.3g}: beyond it {cell['title']} diverges."

    def _guessed(self, cell: dict[str, Any]) -> str:
        if cell["diverged"] or not cell["guessed"] or cell["tuned"] or cell["wait"]:
            return ""
        return f"How soon {cell['title']} forgets its start here is not known: part of the error may be the start's."

    def _table(self, seen: dict[str, Any]) -> dict[str, Any]:
        place, reference = self.spec.settings["place"] - 1, seen["errors"]["reference"]
        titles = {each["name"]: each["title"] for each in self._scene["samplers"]}
        rows = [["", f"error at step size {place + 1} of {self.spec.settings['sizes']}, from the smallest; slope", ""]]
        rows += [[titles[each["name"]], _row(each, place), ""] for each in seen["errors"]["samplers"]]
        if reference is not None:
            percent = _percent(reference["error"], reference["se"])
            rows.append([self._scene["reference"], percent, ""])
        return {"rows": rows, "each": _EACH}

    # ---- checkpoints

    def _save(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "microscope": self.grid.save()}

    def _load(self, saved: dict[str, Any]) -> None:
        self.grid.load(saved["microscope"])
        self.seconds = saved["seconds"]


def _percent(error: float, se: float) -> str:
    """Write a relative error in percent with its standard error, to a digit that the latter leaves."""
    digits = 1 if 100 * se < 1 else 0
    # Adding 0 takes the sign off a zero.
    return f"{round(100 * error, digits) + 0.0:.{digits}f} ± {max(100 * se, 0.1**digits):.{digits}f} %"


def _off(found: dict[str, Any], place: int, cell: dict[str, Any]) -> str:
    error, se = found["error"][place], found["se"][place]
    if cell["diverged"]:
        return "chains have diverged"
    if cell["tuned"]:
        return "chains are still tuned and do not count yet"
    if cell["wait"]:
        return f"chains have {cell['wait']:,} moves to go before they have forgotten their start and count"
    if abs(error) < _CLEAR * se:
        return f"variance is right within {_percent(0.0, _CLEAR * se).split(' ± ')[1]}"
    return f"variance is {_percent(abs(error), se)} too {'large' if error > 0 else 'small'}"


def _falls(slope: Any) -> str:
    """Say how an error goes with the step size."""
    if slope is None or slope.error > _VAGUE:
        return "is not clear enough yet at small step sizes to have a slope"
    told = f"slope {with_error(*slope)}"
    if slope.value + _CLEAR * slope.error < _FIRST[0]:
        share = "does not fall with the step size" if slope.value < _FIRST[0] / 2 else "falls more slowly than it"
        return f"{share} ({told})"
    if _FIRST[0] <= slope.value <= _FIRST[1] or abs(slope.value - 1) <= _CLEAR * slope.error:
        return f"falls in proportion to it ({told})"
    if _SECOND[0] <= slope.value <= _SECOND[1]:
        return f"falls with its square ({told})"
    return f"falls as a power of it ({told})"


def _row(found: dict[str, Any], place: int) -> str:
    error, se, slope = found["error"][place], found["se"][place], found["slope"]
    told = _percent(error, se) if np.isfinite(error) else "–"
    return f"{told}; " + ("–" if slope is None else with_error(*slope))

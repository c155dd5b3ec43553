"""The microscope as a live run: what a page's transport, caption and table need of it."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np
import torch

from bnnviz import targets
from bnnviz.engine.demos.step_size_grid import Microscope
from bnnviz.engine.run import checkpoint
from bnnviz.errors import BnnvizError
from bnnviz.specs.step_size import TARGETS, ScopeSpec

_CHECKPOINT_VERSION = 1
_PARTS = ("status", "caption", "table", "errors", "lens")
_LIVE = ("sampler", "place")
_NEAR = 0.8  # of the largest stable step size: from there on is near
# Slopes that are called a proportion, and a square.
_FIRST, _SECOND = (0.75, 1.35), (1.65, 2.4)
_VAGUE = 0.25  # a slope is not told with a larger standard error
_CLEAR = 2.0  # standard errors by which an error must differ from 0 to have a sign


class Scope:
    """The execution of a `ScopeSpec`, driven by its caller as a `Run` is: `prepare`, `advance`, `frame`.

    A step is a few moves of every lens. It has no end. The sampler and the step size whose density is shown may change.

    Parameters
    ----------
    spec : ScopeSpec

    Raises
    ------
    BnnvizError
        If a value does not fit.
    """

    can_record: ClassVar[bool] = False
    has_history: ClassVar[bool] = False
    is_fork: ClassVar[bool] = False

    def __init__(self, spec: ScopeSpec) -> None:
        self.spec = spec = spec.checked()
        self.device = torch.device("cpu")
        self.phase, self.era, self.seconds = "sampling", 0, 0.0
        self.changes: list[tuple[int, dict[str, Any]]] = []
        self.notes: list[str] = []
        self.error: str | None = None
        self.patient = False
        name, values = TARGETS[spec.settings["target"]]
        target = targets.REGISTRY.get(name)(**values)
        self.microscope = Microscope(target, **{key: spec.settings[key] for key in ("sizes", "chains", "seed")})
        self._scene = self.microscope.scene()
        self._choose()
        self._seq = 0

    @property
    def steps(self) -> int:
        """Moves that every lens has made."""
        return self.microscope.moves

    @property
    def gradients(self) -> int:
        """Gradients that the chains of all lenses have taken."""
        return self.microscope.gradients

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do: never."""
        return self.microscope.finished

    @property
    def progress(self) -> float:
        """Share of the work that is done: there is no end to it."""
        return 0.0

    def prepare(self) -> None:
        """Do nothing: it is ready when it is made."""

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about so many seconds; return the moves of all lenses together."""
        begun = time.perf_counter()
        moves = self.microscope.advance(seconds)
        self.seconds += time.perf_counter() - begun
        return moves

    def step_proposal(self) -> None:
        """Let every lens make a few moves."""
        begun = time.perf_counter()
        self.microscope.round()
        self.seconds += time.perf_counter() - begun

    def step_event(self) -> None:
        """Step until there is a lens that counts."""
        self.step_proposal()
        while not self.microscope.counting:
            self.step_proposal()

    def change(self, settings: dict[str, Any]) -> None:
        """Choose whose density is shown: ``sampler``, ``place``, or both.

        Raises
        ------
        BnnvizError
            If a value does not fit, or another setting is named.
        """
        for name in settings:
            if name not in _LIVE:
                raise BnnvizError(f"{name} cannot change while the microscope works; begin anew with it.", name)
        self.spec = self.spec.replace(settings=self.spec.settings | settings).checked()
        self._choose()
        self.changes.append((self.steps, dict(settings)))

    def watch(self, **what: Any) -> None:
        """Do nothing: what is looked at is a setting."""

    def select(self, choice: dict[str, Any] | None) -> None:
        """Pick nothing."""

    def _choose(self) -> None:
        self.microscope.choose(self.spec.settings["sampler"], self.spec.settings["place"] - 1)

    # ---- what is looked at

    def scene(self) -> dict[str, Any]:
        """Return what stays the same, as `Microscope.scene` has it."""
        return self._scene | {
            "spec": self.spec.to_json(),
            "title": f"Step sizes on {self._scene['target']}",
            "emits": list(_PARTS),
        }

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the wanted parts: status, caption, table, errors, lens."""
        self._seq += 1
        seen = self.microscope.frame()
        made = {
            "status": self._status,
            "caption": lambda: self._caption(seen),
            "table": lambda: self._table(seen),
            "errors": lambda: seen["errors"],
            "lens": lambda: seen["lens"],
        }
        return {"seq": self._seq} | {name: made[name]() for name in want if name in made}

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return for each sampler, by name, its step ``size``s, relative ``error``s and ``se``s, and the ``slope``."""
        return {
            found["name"]: {
                **{key: found[key].tolist() for key in ("size", "error", "se")},
                "slope": None if found["slope"] is None else tuple(found["slope"]),
            }
            for found in self.microscope.frame()["errors"]["samplers"]
        }

    def _status(self) -> dict[str, Any]:
        return {
            "phase": self.phase,
            "device": "cpu",
            "kernel": "eager",
            "step": self.steps,
            "gradients": self.gradients,
            "elapsed": self.seconds,
            "progress": self.progress,
            "chains": self.spec.settings["chains"],
            "message": "",
        }

    def _caption(self, seen: dict[str, Any]) -> dict[str, Any]:
        lens, reference = seen["lens"], seen["errors"]["reference"]
        found = next(each for each in seen["errors"]["samplers"] if each["name"] == lens["name"])
        place = self.spec.settings["place"] - 1
        said = [
            f"{lens['title']}'s {_off(found, place, lens)} at step size {lens['size']:.3g}",
            f"its error {_falls(found['slope'])}",
        ]
        if reference is not None:
            percent = _percent(reference["error"], reference["se"])
            said.append(f"{self._scene['reference']}, which has no step size, is off by {percent}")
        warning = " ".join(part for part in (self._diverged(), self._near(lens), self._guessed(lens)) if part)
        return {"text": "; ".join(said) + ".", "kind": "summary", "warning": warning, "remedies": []}

    def _diverged(self) -> str:
        """Name the samplers and step sizes whose chains have left all bounds."""
        told = [
            f"{lenses[0].sampler.title} at {', '.join(f'{lens.size:.3g}' for lens in lost)}"
            for lenses in self.microscope.lenses.values()
            if (lost := [lens for lens in lenses if lens.diverged])
        ]
        return f"Diverged, and not drawn: {'; '.join(told)}." if told else ""

    def _near(self, lens: dict[str, Any]) -> str:
        if lens["diverged"] or lens["size"] < _NEAR * lens["limit"]:
            return ""
        return f"Near the limit of stability, {lens['limit']:.3g}: beyond it {lens['title']} diverges."

    def _guessed(self, lens: dict[str, Any]) -> str:
        if lens["diverged"] or not lens["guessed"] or lens["tuned"] or lens["wait"]:
            return ""
        return f"How soon {lens['title']} forgets its start here is not known: part of the error may be the start's."

    def _table(self, seen: dict[str, Any]) -> dict[str, Any]:
        place, reference = self.spec.settings["place"] - 1, seen["errors"]["reference"]
        titles = {each["name"]: each["title"] for each in self._scene["samplers"]}
        rows = [["", f"error at step size number {place + 1}; slope", ""]]
        rows += [[titles[each["name"]], _row(each, place), ""] for each in seen["errors"]["samplers"]]
        if reference is not None:
            percent = _percent(reference["error"], reference["se"])
            rows.append([self._scene["reference"], percent, ""])
        return {"rows": rows}

    # ---- checkpoints

    def checkpoint(self) -> bytes:
        """Return everything needed to go on."""
        saved = {
            "version": _CHECKPOINT_VERSION,
            "spec": self.spec.to_json(),
            "seconds": self.seconds,
            "microscope": self.microscope.save(),
        }
        return checkpoint.pack(saved)

    @classmethod
    def restore(cls, data: bytes) -> Scope:
        """Return a microscope that goes on from a checkpoint.

        Raises
        ------
        BnnvizError
            If the bytes are no checkpoint of this version.
        """
        saved = checkpoint.unpack(data, _CHECKPOINT_VERSION, "start anew")
        scope = cls(ScopeSpec.from_json(saved["spec"]))
        scope.microscope.load(saved["microscope"])
        scope.seconds = saved["seconds"]
        return scope


def _percent(error: float, se: float) -> str:
    """Write a relative error in percent with its standard error, to a digit that the latter leaves."""
    digits = 1 if 100 * se < 1 else 0
    # Adding 0 takes the sign off a zero.
    return f"{round(100 * error, digits) + 0.0:.{digits}f} ± {max(100 * se, 0.1**digits):.{digits}f} %"


def _off(found: dict[str, Any], place: int, lens: dict[str, Any]) -> str:
    error, se = found["error"][place], found["se"][place]
    if lens["diverged"]:
        return "chains have diverged"
    if lens["tuned"]:
        return "chains are still tuned and do not count yet"
    if lens["wait"]:
        return f"chains have {lens['wait']:,} moves to go before they have forgotten their start and count"
    if abs(error) < _CLEAR * se:
        return f"variance is right within {_percent(0.0, _CLEAR * se).split(' ± ')[1]}"
    return f"variance is {_percent(abs(error), se)} too {'large' if error > 0 else 'small'}"


def _falls(slope: Any) -> str:
    """Say how an error goes with the step size."""
    if slope is None or slope.error > _VAGUE:
        return "is not clear enough yet at small step sizes to have a slope"
    told = f"slope {slope.value:.2f} ± {slope.error:.2f}"
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
    return f"{told}; " + ("–" if slope is None else f"{slope.value:.2f} ± {slope.error:.2f}")

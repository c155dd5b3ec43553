"""Advance several runs on one target together, as one run: a race, or the double well."""

from __future__ import annotations

import time
import uuid
from typing import Any, ClassVar, Self

from bnnviz.engine.run import checkpoint
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.targets import Target

_VERSION = 1


class Entry(ViewedRun):
    """Run one sampler of a comparison; subclasses define its end, ``over``, and ``spent``, equal in all samplers."""

    @property
    def warmup_moves(self) -> int:
        """Moves of the warm-up, as in the spec."""
        return self.spec.warmup

    def save(self) -> dict[str, Any]:
        """Return the run's checkpoint, and what else it keeps, as tensors and plain values."""
        return {"run": self.checkpoint()}

    def load(self, saved: dict[str, Any]) -> None:
        """Restore what the run keeps beside its checkpoint."""


class Comparison:
    """Drive several runs like one `Run`, without recordings, history or changes."""

    has_history: ClassVar[bool] = False
    is_fork: ClassVar[bool] = False
    spec_class: ClassVar[type[Any]]
    entry_class: ClassVar[type[Entry]] = Entry
    #: The error message for a change of settings.
    fixed: ClassVar[str]
    #: The reason for a comparison without results.
    error: str | None = None

    def __init__(self, spec: Any, *, target: Target | None = None, saved: dict[str, Any] | None = None) -> None:
        self.spec, self.names = spec, spec.names()
        self.phase = "start"
        self.changes: list[tuple[int, dict[str, Any]]] = []
        saved_entries = (saved and saved["entries"]) or [None] * len(spec.entries)
        self.entries = [self._new_entry(number, target, each) for number, each in enumerate(saved_entries)]
        self.runs = self.entries
        self.device = self.entries[0].device
        self.run_id, self._seq = uuid.uuid4().hex[:12], 0
        if saved:
            self.phase = saved["phase"]

    def _new_entry(self, number: int, target: Target | None, saved: dict[str, Any] | None) -> Entry:
        if saved is None:
            return self.entry_class(self.spec.entries[number], target=target)
        entry = self.entry_class.restore(saved["run"], target=target)
        entry.load(saved)
        entry.show_here()
        return entry

    @property
    def steps(self) -> int:
        """Steps of all samplers so far."""
        return sum(entry.steps for entry in self.entries)

    @property
    def gradients(self) -> int:
        """Per-example gradients of all samplers so far."""
        return sum(entry.gradients for entry in self.entries)

    @property
    def seconds(self) -> float:
        """Seconds spent by the samplers."""
        return sum(entry.seconds for entry in self.entries)

    @property
    def notes(self) -> list[str]:
        """Messages of all samplers, prefixed by their names."""
        return [f"{name}: {note}" for name, entry in zip(self.names, self.entries, strict=True) for note in entry.notes]

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.phase == "done"

    @property
    def going(self) -> list[Any]:
        """The samplers that take more steps."""
        return [entry for entry in self.entries if not entry.over]

    # driving

    def prepare(self) -> None:
        """Find the start and initialize all samplers there."""
        while self.phase == "start":
            self._prepare_some()

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about the given seconds; return the number of steps."""
        begun, done = time.perf_counter(), 0
        while not self.finished and (left := seconds - (time.perf_counter() - begun)) > 0:
            if self.phase != "start":
                done += self._turn(left)
                continue
            self._prepare_some()
            if self.phase != "start":
                # A comparison paused during its start search must not take a step.
                break
        return done

    def _turn(self, seconds: float) -> int:
        """Let every sampler take one step; return the steps of all."""
        before = self.steps
        self.step_proposal()
        return self.steps - before

    def step_proposal(self) -> None:
        """Take one step with each sampler that is behind."""
        self.prepare()
        going = self.going
        least = min((entry.spent for entry in going), default=0)
        for entry in going:
            if entry.spent == least:
                entry.step_proposal()
        self._end_phase()

    def step_event(self) -> None:
        """Take one step: there are no common events."""
        self.step_proposal()

    def _end_phase(self) -> None:
        """Note the end of all samplers in the phase."""
        if not self.going:
            self.phase = "done"

    def change(self, settings: dict[str, Any]) -> None:
        """Raise the error for a change of settings."""
        raise BnnvizError(self.fixed, next(iter(settings), None))

    # views

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the requested parts, ``path.2`` as that of one sampler."""
        self._seq += 1
        parts, frame = self.parts(), {"seq": self._seq}
        pictures: dict[int, list[str]] = {}
        for name in want:
            part, _, number = name.partition(".")
            if number.isdecimal() and int(number) < len(self.entries):
                pictures.setdefault(int(number), []).append(part)
            elif name in parts:
                frame[name] = parts[name]()
        for number, names in pictures.items():
            built = self.entries[number].frame(names)
            frame |= {f"{part}.{number}": built[part] for part in names if part in built}
        return frame

    def watch(self, **what: Any) -> None:
        """Choose what frames show of all samplers, as in `ViewedRun.watch`."""
        for entry in self.entries:
            entry.watch(**what)

    def select(self, choice: dict[str, Any] | None) -> None:
        """Select nothing: the samplers have no common draws."""

    # checkpoints

    def checkpoint(self) -> bytes:
        """Return the state, from which all samplers continue with the same draws; before the start the spec alone."""
        return checkpoint.pack(
            {
                "version": _VERSION,
                "spec": self.spec.to_json(),
                "attachment": self.spec.attachment,
                "phase": self.phase,
                "entries": [] if self.phase == "start" else [entry.save() for entry in self.entries],
            }
            | self._save()
        )

    def _save(self) -> dict[str, Any]:
        """Return what the comparison keeps beside its samplers, as tensors and plain values."""
        return {}

    @classmethod
    def restore(cls, data: bytes) -> Self:
        """Continue a comparison from a checkpoint."""
        saved = checkpoint.unpack(data, _VERSION, "start again")
        attached = () if saved["attachment"] is None else (saved["attachment"],)
        return cls(cls.spec_class.from_json(saved["spec"], *attached), saved=saved)

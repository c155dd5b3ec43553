"""Race samplers on one target from one start, each with the same budget of gradients, advancing together."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import torch

from bnnviz.engine.comparison import SamplerComparison
from bnnviz.engine.race.entry import Entry
from bnnviz.engine.race.estimates import TrueMoments, known_truth
from bnnviz.engine.race.reference import Reference
from bnnviz.engine.race.view import RaceView
from bnnviz.engine.run.initialization import Start, StartSearch, random_points
from bnnviz.errors import BnnvizError
from bnnviz.specs.race import RaceSpec, of_entry
from bnnviz.targets import Target

_DESCENT_STEPS = 10
_STEP_S = 0.02  # seconds of reference work per single step when only the reference is running


class Race(SamplerComparison):
    """Run a race, driven like a `Run` with `prepare`, `advance` and `frame`.

    All samplers start at the same points with the same seed. The sampler with the fewest gradients spent runs next. It
    ends when its next step could exceed the budget or all its chains have diverged. The cost of the start search is
    shared and not charged. If the target has no known moments, a reference run gets an equal share of the time, and all
    of it after the samplers have ended.
    """

    fixed: ClassVar[str] = "Settings cannot change during a race; start another one."
    spec_class: ClassVar[type[RaceSpec]] = RaceSpec
    entry_class: ClassVar[type[Entry]] = Entry
    view_class: ClassVar[type[RaceView]] = RaceView

    def __init__(self, spec: RaceSpec, *, target: Target | None = None, measured: bool = True) -> None:
        super().__init__(spec, own_target=target is not None)
        spec = self.spec
        self.entries = self.runs = [self._new_entry(number, target) for number in range(len(spec.entries))]
        self.device = self.entries[0].device
        for entry in self.entries:
            # Wait for compiled kernels: the end of a sampler must not depend on compile time.
            entry.budget, entry.wait_for_compile = spec.budget, True
            if entry.target.dim > 2:
                # Share one plane, as principal axes differ between samplers.
                entry.watch(plane={"kind": "coordinates", "i": 0, "j": 1})
        self._known = known_truth(self.entries[0].target)
        self.reference = Reference(spec, target) if self._known is None and measured else None
        self._search: StartSearch | None = None
        self._raced = 0.0  # seconds spent by all samplers
        self.view = self.view_class(self)

    def _new_entry(self, number: int, target: Target | None) -> Entry:
        spec = self.spec.entries[number]
        try:
            entry = self.entry_class(spec, target=target)
            entry.sampler.check(entry.target)
        except BnnvizError as error:
            raise of_entry(error, number, spec) from None
        return entry

    @property
    def truth(self) -> TrueMoments | None:
        """Truth used for the errors; None while unknown."""
        return self._known if self.reference is None else self.reference.truth

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
    def progress(self) -> float:
        """Fraction of the budgets spent, 0 to 1; an ended sampler counts as fully spent."""
        shares = [1.0 if entry.over else entry.gradients / self.spec.budget for entry in self.entries]
        return sum(shares) / len(shares)

    @property
    def error(self) -> str | None:
        """The reason for a race without results."""
        if not all(entry.diverged for entry in self.entries):
            return None
        return "All samplers diverged: their chains met values that are not finite; try smaller steps, or float64."

    @property
    def notes(self) -> list[str]:
        """Messages of all samplers, prefixed by their names."""
        return [
            f"{name}: {note}"
            for name, entry in zip(self.spec.names(), self.entries, strict=True)
            for note in entry.notes
        ]

    def prepare(self) -> None:
        """Find the start and initialize all samplers there."""
        while self.phase == "start":
            self._prepare_some(_DESCENT_STEPS)

    def advance(self, seconds: float = 0.02) -> int:
        """Work for about the given seconds; return the number of steps, including the reference's."""
        begun, done = time.perf_counter(), 0
        while not self.finished and (left := seconds - (time.perf_counter() - begun)) > 0:
            if self.phase != "start":
                done += self._turn(left)
                continue
            self._prepare_some(_DESCENT_STEPS)
            if self.phase != "start":
                # A race paused during its start search must not take a step.
                break
        return done

    def step_proposal(self) -> None:
        """Take one step with each sampler that is behind."""
        self.prepare()
        going = [entry for entry in self.entries if not entry.over]
        if not going:
            self._turn(_STEP_S)
            return
        least = min(entry.gradients for entry in going)
        for entry in going:
            if entry.gradients == least:
                entry.step()
        self._next_phase()

    def _turn(self, seconds: float) -> int:
        """Advance the least advanced sampler, or the reference, by one block."""
        going = [entry for entry in self.entries if not entry.over]
        reference = None if self.reference is None or self.reference.finished else self.reference
        if reference is not None and (not going or reference.seconds < self._raced / len(self.entries)):
            done = reference.advance(seconds)
        elif going:
            begun = time.perf_counter()
            done = min(going, key=lambda entry: entry.gradients).go_on(seconds)
            self._raced += time.perf_counter() - begun
        else:
            done = 0
        self._next_phase()
        return done

    def _next_phase(self) -> None:
        if not all(entry.over for entry in self.entries):
            return
        referring = self.reference is not None and not self.reference.finished
        # Without surviving samplers there is nothing to measure.
        self.phase = "reference" if referring and self.error is None else "done"

    # the start

    @property
    def _searching(self) -> list[Entry]:
        """The samplers, first the one that determines the start: one without its own search, if any."""
        return sorted(self.entries, key=lambda entry: entry.sampler.traits.descends)

    def _prepare_some(self, steps: int) -> None:
        first = self._searching[0]
        if self._search is None:
            rng = torch.Generator(self.device).manual_seed(first.spec.seed)
            x0 = random_points(first.target, first.spec.chains, rng)
            self._search = StartSearch(first.target, [entry.sampler for entry in self._searching], x0)
        self._search.advance(steps)
        if not self._search.done:
            return
        start = self._search.start()
        for number, entry in enumerate(self.entries):
            try:
                entry.set_out(Start(self._search.x0, start.mode) if entry.sampler.traits.descends else start)
            except BnnvizError as error:
                raise of_entry(error, number, entry.spec) from None
        self._search, self.phase = None, "racing"
        self._next_phase()

    @property
    def start_sentence(self) -> str:
        """Description of the common starting points."""
        first = self._searching[0]
        if not first.sampler.starts_at_mode(first.target):
            return "All samplers start at the same random points."
        sentence = "All samplers start at the same modes, each chain at the end of its own descent"
        if any(entry.sampler.starts_together(entry.target) for entry in self.entries):
            sentence = "All chains of all samplers start at one mode, the centre used by one of the samplers"
        searches = any(entry.sampler.traits.descends for entry in self.entries)
        return sentence + (", but those that look for one themselves, from random points." if searches else ".")

    # views

    def scene(self) -> dict[str, Any]:
        """Return the static view data: scene, names and budget of each sampler."""
        return self.view.scene()

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the requested frame parts of the race, or of one sampler as ``path.2``."""
        return self.view.frame(want)

    def summary(self) -> dict[str, Any]:
        """Return the output of ``bnnviz race --json``."""
        return self.view.summary()

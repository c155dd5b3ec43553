"""Race samplers on one target from one start, each with the same budget of gradients, advancing together."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch

from bnnviz.engine.race.comparison import Comparison
from bnnviz.engine.race.entry import RaceEntry
from bnnviz.engine.race.errors import Errors
from bnnviz.engine.run.initialization import Start, StartSearch, random_points
from bnnviz.errors import BnnvizError
from bnnviz.specs.race import RaceSpec, of_entry
from bnnviz.targets import Target

_DESCENT_STEPS = 10
_STEP_S = 0.02  # seconds of measuring per single step
_RATE_S = 0.5


class Race(Comparison):
    """Run samplers from the same points with the same seed and budget; the measure has a share of the time."""

    fixed: ClassVar[str] = "Settings cannot change during a race; start another one."
    spec_class: ClassVar[type[RaceSpec]] = RaceSpec
    entry_class: ClassVar[type[RaceEntry]] = RaceEntry
    measure_class: ClassVar[type[Any]] = Errors

    def __init__(
        self,
        spec: RaceSpec,
        *,
        target: Target | None = None,
        measured: bool = True,
        saved: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(spec.checked(own_target=target is not None), target=target, saved=saved)
        for entry in self.entries:
            # Wait for compiled kernels: the end of a sampler must not depend on compile time.
            entry.budget, entry.wait_for_compile = self.spec.budget, True
            if entry.target.dim > 2:
                # Share one plane, as principal axes differ between samplers.
                entry.watch(plane={"kind": "coordinates", "i": 0, "j": 1})
        self.measure = self.measure_class(self, target, measured)
        self._search: StartSearch | None = None
        # Seconds of the samplers and of the measure, and steps of the latter
        self._raced, self._measured, self._looks = (0.0, 0.0, 0) if saved is None else saved["shares"]
        if saved is not None:
            self.measure.load(saved["measure"])
            self._end_phase()
        self._rate, self._at = math.nan, (time.perf_counter(), self.gradients)

    def _new_entry(self, number: int, target: Target | None, saved: dict[str, Any] | None) -> RaceEntry:
        try:
            entry = super()._new_entry(number, target, saved)
            entry.sampler.check(entry.target)
        except BnnvizError as error:
            raise of_entry(error, number, self.spec.entries[number]) from None
        return entry

    @property
    def steps(self) -> int:
        """Steps of all samplers so far, and of the measure."""
        return super().steps + self._looks

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

    def step_proposal(self) -> None:
        """Take one step with each sampler that is behind, and measure."""
        super().step_proposal()
        self._measure_some(_STEP_S)
        self._end_phase()

    def _turn(self, seconds: float) -> int:
        """Let the measure or the least advanced sampler work; return the number of steps."""
        done, going = self._measure_some(seconds), self.going
        if not done and going:
            begun = time.perf_counter()
            done = min(going, key=lambda entry: entry.spent).go_on(seconds)
            self._raced += time.perf_counter() - begun
        self._end_phase()
        return done

    def _measure_some(self, seconds: float) -> int:
        """Let the measure work if it is behind, or alone; return the number of its steps."""
        behind = self._measured < self.measure.share * self._raced or not self.going
        if not (behind and self.measure.busy):
            return 0
        begun = time.perf_counter()
        done = self.measure.advance(seconds)
        self._measured += time.perf_counter() - begun
        self._looks += done
        return done

    def _end_phase(self) -> None:
        if not self.going:
            # Without surviving samplers there is nothing to measure.
            waits = "racing" if self.measure.reference_status is None else "reference"
            self.phase = waits if self.measure.busy and self.error is None else "done"

    # the start

    @property
    def _searching(self) -> list[RaceEntry]:
        """The samplers, first the one that determines the start: one without its own search, if any."""
        return sorted(self.entries, key=lambda entry: entry.sampler.traits.descends)

    def _prepare_some(self) -> None:
        first = self._searching[0]
        if self._search is None:
            rng = torch.Generator(self.device).manual_seed(first.spec.seed)
            x0 = random_points(first.target, first.spec.chains, rng)
            self._search = StartSearch(first.target, [entry.sampler for entry in self._searching], x0)
        self._search.advance(_DESCENT_STEPS)
        if not self._search.done:
            return
        start = self._search.start()
        for number, entry in enumerate(self.entries):
            try:
                entry.set_out(Start(self._search.x0, start.mode) if entry.sampler.traits.descends else start)
            except BnnvizError as error:
                raise of_entry(error, number, entry.spec) from None
        self._search, self.phase = None, "racing"
        self._end_phase()

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
        """Return the static view data: of the race, and of each sampler."""
        measure, target = self.measure, self.entries[0].target
        found = measure.scene()
        pictures = [part for part in measure.pictures if all(part in scene["emits"] for scene in found["entries"])]
        return found | {
            "run": self.run_id,
            "spec": self.spec.to_json(),
            "budget": self.spec.budget,
            "start": self.start_sentence,
            "target": target.describe_value(),
            "dim": target.dim,
            "emits": [*self.parts(), *(f"{part}.{i}" for i in range(len(self.entries)) for part in pictures)],
            "pictures": pictures,
            "entries": [{"name": name} | scene for name, scene in zip(self.names, found["entries"], strict=True)],
            "measured": measure.meaning,
        }

    def parts(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Return the builders of the parts of a frame, by name."""
        return {"status": self._status, "caption": self._caption, "table": self._table, **self.measure.parts}

    def _status(self) -> dict[str, Any]:
        entries, now, spent = self.entries, time.perf_counter(), self.gradients
        if now - self._at[0] > _RATE_S:
            self._rate, self._at = (spent - self._at[1]) / (now - self._at[0]), (now, spent)
        kernels = [entry.kernel for entry in entries]
        return {
            "phase": self.phase,
            "device": str(self.device),
            "kernel": next(slowest for slowest in ("compiling", "eager", "compiled") if slowest in kernels),
            "step": self.steps,
            "gradients": spent,
            "gradients_per_s": self._rate,
            "budget": self.spec.budget,
            "chains": entries[0].spec.chains,
            "elapsed": self.seconds,
            "message": self.error or "",
            "progress": self.progress,
            "entries": [
                {"spent": each.gradients, "state": each.standing, "diverged": each.diverged, "lost": each.lost}
                for each in entries
            ],
            "reference": self.measure.reference_status,
        }

    def _caption(self) -> dict[str, Any]:
        return {"text": self._message(), "kind": "race", "warning": self._warning(), "remedies": []}

    def _message(self) -> str:
        if self.phase == "start":
            return "Searching for a common start; its cost is not charged."
        if self.error is not None:
            return self.error
        spent = max(entry.gradients for entry in self.entries)
        if not spent:
            budget = f"Each sampler may spend {self.spec.budget:,} gradients. {self.start_sentence}"
            return f"{budget} Press play, or take one step."
        standing = self.measure.standing(self.table())
        return f"After {spent if self.going else self.spec.budget:,} gradients each: {standing}"

    def _warning(self) -> str:
        named = list(zip(self.names, self.entries, strict=True))
        gone = [name for name, entry in named if entry.diverged]
        parts = []
        if gone and self.error is None:
            parts.append(f"{' and '.join(gone)} diverged and {'is' if len(gone) == 1 else 'are'} not ranked.")
        for name, entry in named:
            if entry.lost and not entry.diverged:
                parts.append(f"{name}: {entry.lost} of {len(entry.alive)} chains diverged.")
        spent = [name for name, entry in named if entry.over and not entry.diverged and not entry.drawn]
        if spent:
            parts.append(
                f"{' and '.join(spent)} spent all on tuning and warm-up: give a larger budget or fewer chains."
            )
        return " ".join(parts)

    def _table(self) -> dict[str, Any]:
        measure = self.measure
        table = {"rows": self.table(), "scores": measure.scores, "errors": measure.errors}
        return table | {"reference": measure.reference_status}

    def table(self) -> list[dict[str, Any]]:
        """Return one row per sampler: best first, those without a metric last.

        ``rank`` orders the metric itself; ``rank_best`` and ``rank_worst`` bound it by the uncertainty.
        """
        rows, metric = [self._row(number, entry) for number, entry in enumerate(self.entries)], self.measure.ranked_by
        # Without a metric last, and those that diverged after them.
        rows.sort(key=lambda row: (row["diverged"], np.nan_to_num(row[metric], nan=math.inf)))
        ranked = [row for row in rows if math.isfinite(row[metric])]
        for place, row in enumerate(ranked, 1):
            best = worst = place
            if self.measure.errors:
                best = 1 + sum(self.measure.is_better(other, row) for other in ranked)
                worst = len(ranked) - sum(self.measure.is_better(row, other) for other in ranked)
            ranks = f"{best}" if best == worst else f"{best}–{worst}"
            row |= {"rank": place, "rank_best": best, "rank_worst": worst, "ranks": ranks}
        return rows

    def _row(self, number: int, entry: RaceEntry) -> dict[str, Any]:
        row = {
            **dict.fromkeys(("rank", "rank_best", "rank_worst", "ranks")),
            "entry": number,
            "name": self.names[number],
            "sampler": entry.spec.sampler,
            "settings": self.spec.differing(number),
            "state": entry.standing,
            "diverged": entry.diverged,
            "chains_lost": entry.lost,
            **dict.fromkeys(self.measure.columns, math.nan),
            "draws": 0 if entry.diverged else entry.drawn,
            "steps": entry.steps,
            "gradients": entry.gradients,
            "seconds": entry.seconds,
            "cpu_seconds": entry.cpu_seconds,
            "device_seconds": entry.device_seconds,
        }
        return row if entry.diverged else row | self.measure.figures(number)

    def summary(self) -> dict[str, Any]:
        """Return the output of ``bnnviz race --json``: the spec and the results as plain JSON."""
        curves = self.measure.parts.get("curves", dict)()
        return {
            **{name: value for name, value in self.spec.to_json().items() if name != "entries"},
            "dim": self.entries[0].target.dim,
            "phase": self.phase,
            "start": self.start_sentence,
            "measured": self.measure.meaning,
            "reference": self.measure.reference_status,
            "statement": self._message(),
            "entries": self.table(),
            "curves": curves.get("entries"),
            "notes": self.notes,
        }

    def _save(self) -> dict[str, Any]:
        return {"shares": (self._raced, self._measured, self._looks), "measure": self.measure.save()}

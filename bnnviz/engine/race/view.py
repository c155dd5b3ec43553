"""Build the scene, frames, table, curves and status text of a race."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bnnviz.engine.race.estimates import FUNCTION_FIGURES, EstimateError, error
from bnnviz.targets import BNN

if TYPE_CHECKING:
    from bnnviz.engine.race.entry import Entry

_APART = 2.0  # standard errors of the difference beyond which two samplers differ
_UNKNOWN = EstimateError(math.nan, math.nan)
_RATE_S = 0.5
#: Columns of the table and of the curves.
_ERRORS = ("error", "error_low", "error_high", "error_mean", "error_sd")


class RaceView:
    """Build the view of a race; it does not affect any draw."""

    #: Whether errors are measured against a truth.
    errors: ClassVar[bool] = True
    #: The metric that ranks samplers, smallest first.
    ranked_by: ClassVar[str] = "error"
    #: Frame parts available per sampler.
    pictures: ClassVar[tuple[str, ...]] = ("path", "prediction")

    def __init__(self, race: Any) -> None:
        self._race = race
        self._id = uuid.uuid4().hex[:12]
        self._names = race.spec.names()
        self._seq = 0
        self._rate, self._at = math.nan, (time.perf_counter(), race.gradients)
        self._known: dict[int, list[tuple[Any, EstimateError]]] = {}
        self.parts: dict[str, Callable[[], dict[str, Any]]] = {
            "status": self._status,
            "caption": self._caption,
            "table": self._table,
            **self._pictures(),
        }

    def _pictures(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Return the builders of the parts that differ between kinds of races."""
        return {"curves": lambda: {"entries": self.curves(), "budget": self._race.spec.budget}}

    def scene(self) -> dict[str, Any]:
        """Return the static view data."""
        race = self._race
        whole = {"run": self._id, "spec": race.spec.to_json(), "budget": race.spec.budget, "start": race.start_sentence}
        return whole | self._scene()

    def _scene(self) -> dict[str, Any]:
        """Return the part of the static view data that differs between kinds of races."""
        scenes = [entry.scene() for entry in self._race.entries]
        for scene in scenes[1:]:
            # One shared figure of the density: it is large.
            scene["plane"] = scenes[0]["plane"]
        pictures = [part for part in self.pictures if all(part in scene["emits"] for scene in scenes)]
        first = scenes[0]
        return {
            "title": f"Race on {first['target']}",
            **{name: first[name] for name in ("target", "remarks", "dim", "names")},
            "emits": [*self.parts, *(f"{part}.{i}" for i in range(len(scenes)) for part in pictures)],
            "pictures": pictures,
            "entries": [{"name": name} | scene for name, scene in zip(self._names, scenes, strict=True)],
            "measured": self._error_meaning(),
        }

    def _error_meaning(self) -> str:
        """Return a description of the error."""
        entry, reference = self._race.entries[0], self._race.reference
        against = "the truth" if reference is None else f"a long run of {reference.title}"
        return f"error of mean and sd of the {entry.estimates.what} against {against}, in its sd"

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Build the requested parts."""
        self._seq += 1
        frame: dict[str, Any] = {"seq": self._seq}
        pictures: dict[int, list[str]] = {}
        for name in want:
            part, _, number = name.partition(".")
            if number.isdecimal() and int(number) < len(self._race.entries):
                pictures.setdefault(int(number), []).append(part)
            elif name in self.parts:
                frame[name] = self.parts[name]()
        for number, parts in pictures.items():
            built = self._race.entries[number].frame(parts)
            frame |= {f"{part}.{number}": built[part] for part in parts if part in built}
        return frame

    def summary(self) -> dict[str, Any]:
        """Return the spec and the results as plain JSON."""
        race = self._race
        return {
            **{name: value for name, value in race.spec.to_json().items() if name != "entries"},
            "dim": race.entries[0].target.dim,
            "phase": race.phase,
            "start": race.start_sentence,
            "measured": self._error_meaning(),
            "reference": self._reference(),
            "statement": self._caption()["text"],
            "entries": self.table(),
            "curves": self.curves(),
            "notes": race.notes,
        }

    # ---- metrics ------------------------------------------------------------------------------------------

    def _table(self) -> dict[str, Any]:
        table = {"rows": self.table(), "scores": self._scores(), "errors": self.errors}
        return table | {"reference": self._reference()}

    def table(self) -> list[dict[str, Any]]:
        """Return one row per sampler: best first, those without a metric last.

        ``rank`` orders the metric itself; ``rank_best`` and ``rank_worst`` bound it by the uncertainty.
        """
        rows = [self._row(number, entry) for number, entry in enumerate(self._race.entries)]
        # Without a metric last, and those that diverged after them.
        rows.sort(key=lambda row: (row["diverged"], np.nan_to_num(row[self.ranked_by], nan=math.inf)))
        for place, row in enumerate(rows):
            row["rank"] = place + 1 if math.isfinite(row[self.ranked_by]) else None
        ranked = [row for row in rows if row["rank"] is not None]
        for row in ranked:
            best = 1 + sum(_is_better(other, row) for other in ranked) if self.errors else row["rank"]
            worst = len(ranked) - sum(_is_better(row, other) for other in ranked) if self.errors else row["rank"]
            row |= {"rank_best": best, "rank_worst": worst, "ranks": f"{best}" if best == worst else f"{best}–{worst}"}
        return rows

    def _row(self, number: int, entry: Entry) -> dict[str, Any]:
        spec = self._race.spec
        nan = math.nan
        row = {
            **dict.fromkeys(("rank", "rank_best", "rank_worst", "ranks")),
            "entry": number,
            "name": self._names[number],
            "sampler": entry.spec.sampler,
            "settings": spec.differing(number),
            "state": _state(entry),
            "diverged": entry.diverged,
            "chains_lost": entry.lost,
            **dict.fromkeys((*_ERRORS, "error_log_se"), nan),
            **dict.fromkeys(("rhat", "ess", "ess_per_s", "ess_per_million"), nan),
            **dict.fromkeys((*FUNCTION_FIGURES, *self._scores()) if isinstance(entry.target, BNN) else (), nan),
            "draws": 0 if entry.diverged else entry.drawn,
            "steps": entry.steps,
            "gradients": entry.gradients,
            "seconds": entry.seconds,
            "cpu_seconds": entry.cpu_seconds,
            "device_seconds": entry.device_seconds,
        }
        if entry.diverged:
            return row
        found = self._errors(number)[-1] if entry.recorded else _UNKNOWN
        errors = dict(zip(_ERRORS, (found.both, *found.interval, found.mean, found.sd), strict=True))
        return row | errors | {"error_log_se": found.log_se} | entry.figures()

    def _scores(self) -> list[str]:
        """Return the names of the scores of a network's predictions."""
        target = self._race.entries[0].target
        if not isinstance(target, BNN):
            return []
        if target.likelihood.task == "outputs":
            return ["nll"]
        return ["nll", "accuracy", "ece"] if target.likelihood.task == "classification" else ["nll", "rmse"]

    def _errors(self, number: int) -> list[EstimateError]:
        """Return the recorded errors of a sampler against the current truth."""
        truth, recorded = self._race.truth, self._race.entries[number].recorded
        if truth is None:
            return [_UNKNOWN] * len(recorded)
        known = self._known.setdefault(number, [])
        if known and known[0][0] is not truth:
            known.clear()
        known += [(truth, error(note.moments, truth)) for note in recorded[len(known) :]]
        return [found for _, found in known]

    def curves(self) -> list[dict[str, Any]]:
        """Return name, spent gradients and errors per sampler; a diverged sampler has its final gradients."""
        curves = []
        for number, entry in enumerate(self._race.entries):
            rows = [(each.both, *each.interval, each.mean, each.sd) for each in self._errors(number)]
            columns = np.array(rows, dtype=float).reshape(-1, len(_ERRORS)).T
            curves.append(
                {
                    "entry": number,
                    "name": self._names[number],
                    "gradients": np.array([note.gradients for note in entry.recorded], dtype=float),
                    **dict(zip(_ERRORS, columns, strict=True)),
                    "diverged": float(entry.gradients) if entry.diverged else math.nan,
                }
            )
        return curves

    def _reference(self) -> dict[str, Any] | None:
        return None if self._race.reference is None else self._race.reference.status()

    # ---- texts --------------------------------------------------------------------------------------------

    def _status(self) -> dict[str, Any]:
        race, entries = self._race, self._race.entries
        kernels = [entry.kernel for entry in entries]
        now, spent = time.perf_counter(), race.gradients
        if now - self._at[0] > _RATE_S:
            self._rate, self._at = (spent - self._at[1]) / (now - self._at[0]), (now, spent)
        return {
            "phase": race.phase,
            "device": str(race.device),
            "kernel": next(slowest for slowest in ("compiling", "eager", "compiled") if slowest in kernels),
            "step": race.steps,
            "gradients": spent,
            "gradients_per_s": self._rate,
            "budget": race.spec.budget,
            "chains": entries[0].spec.chains,
            "elapsed": race.seconds,
            "generation": 0,
            "message": race.error or "",
            "progress": race.progress,
            "entries": [
                {
                    "spent": entry.gradients,
                    "state": _state(entry),
                    "phase": entry.phase,
                    "over": entry.over,
                    "diverged": entry.diverged,
                    "lost": entry.lost,
                    "draws": entry.drawn,
                }
                for entry in entries
            ],
            "reference": self._reference(),
        }

    def _caption(self) -> dict[str, Any]:
        return {"text": self._message(), "kind": "race", "warning": self._warning(), "remedies": []}

    def _message(self) -> str:
        race = self._race
        if race.phase == "start":
            return "Searching for a common start; its cost is not charged."
        if race.error is not None:
            return race.error
        spent = max(entry.gradients for entry in race.entries)
        over = all(entry.over for entry in race.entries)
        if not spent:
            budget = f"Each sampler may spend {race.spec.budget:,} gradients. {race.start_sentence}"
            return f"{budget} Press play, or take one step."
        after = f"After {race.spec.budget if over else spent:,} gradients each: "
        return after + self._standing() + self._against()

    def _standing(self) -> str:
        """Describe the leader, its margin and the samplers that do not differ from it."""
        ranked = [row for row in self.table() if row["rank"] is not None]
        if not ranked and any(entry.recorded for entry in self._race.entries):
            if self._race.reference is None:
                return "samplers are not ranked without a reference; the table has R-hat and ESS."
            return f"no ranking yet: the reference run of {self._race.reference.title} has too few draws."
        if not ranked:
            return self._unmeasured()
        first, rest = ranked[0], ranked[1:]
        error = f"{first['error']:.2g} sd"
        if _is_judged(first):
            error += f", {first['error_low']:.2g} to {first['error_high']:.2g}"
        leads = f"{first['name']} has the smallest error ({error})"
        if not rest:
            return f"{leads}; no other sampler can be measured yet."
        unlike = [row for row in rest if _is_better(first, row)]
        alike = [row["name"] for row in rest if row not in unlike]
        if not alike:
            ratio = unlike[0]["error"] / max(first["error"], 1e-300)
            times = f"{ratio:.2g} times" if ratio < 100 else "over 100 times"
            return f"{leads}, {times} smaller than that of {unlike[0]['name']}, which is next."
        if not any(map(_is_judged, ranked)):
            return f"{leads}; fewer than four chains do not show a significant difference."
        named = " and ".join(alike) if len(alike) < 3 else f"{', '.join(alike[:-1])} and {alike[-1]}"
        return f"{leads}, not significantly different from {'that' if len(alike) == 1 else 'those'} of {named}."

    def _unmeasured(self) -> str:
        """Describe whether draws or only their metrics are missing."""
        if any(row["draws"] for row in self.table()):
            return "the first draws are not measured yet."
        return "no sampler has draws yet, as tuning and warm-up are charged too."

    def _against(self) -> str:
        """Describe the reference, if any."""
        found = self._reference()
        if found is None:
            return ""
        if found["error"]:
            return f" {found['error']}"
        if self._race.truth is None:
            return ""
        more = "" if found["finished"] else f" of {found['goal']:,}"
        mixing = f", R-hat {found['rhat']:.2f}" if math.isfinite(found["rhat"]) else ""
        return f" (Reference: {found['title']}, {found['draws']:,}{more} draws{mixing}.)"

    def _warning(self) -> str:
        entries = self._race.entries
        named = list(zip(self._names, entries, strict=True))
        gone = [name for name, entry in named if entry.diverged]
        parts = []
        if gone and len(gone) < len(entries):
            parts.append(f"{' and '.join(gone)} diverged and {'is' if len(gone) == 1 else 'are'} not ranked.")
        for name, entry in named:
            if entry.lost and not entry.diverged:
                parts.append(f"{name}: {entry.lost} of {len(entry.alive)} chains diverged.")
        spent = [name for name, entry in named if entry.over and not entry.diverged and self._silent(entry)]
        if spent:
            parts.append(
                f"{' and '.join(spent)} spent all on tuning and warm-up: give a larger budget or fewer chains."
            )
        return " ".join(parts)

    def _silent(self, entry: Entry) -> bool:
        """Whether a sampler has no results."""
        return not entry.recorded


def _state(entry: Entry) -> str:
    if entry.diverged:
        return "diverged"
    if entry.over:
        return "done"
    return entry.phase


def _is_judged(row: dict[str, Any]) -> bool:
    """Return whether a row has a standard error."""
    return math.isfinite(row["error_log_se"])


def _is_better(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a row's error is significantly smaller than another's."""
    if not (_is_judged(one) and _is_judged(other)) or one["error"] >= other["error"]:
        return False
    apart = math.log(other["error"]) - math.log(max(one["error"], 1e-300))
    return apart > _APART * math.hypot(one["error_log_se"], other["error_log_se"])

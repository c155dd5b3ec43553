"""Measure a race by the errors of means and standard deviations, against the truth or a long run."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bnnviz.engine.evaluation.predictions import chosen_draws, scores, weights
from bnnviz.engine.race.estimates import (
    FUNCTION_FIGURES,
    EstimateError,
    Estimates,
    MomentEstimates,
    TrueMoments,
    error,
    known_truth,
    loaded_arrays,
    saved_arrays,
    worst_mixing,
)
from bnnviz.engine.race.reference import Reference
from bnnviz.targets import BNN, Target

_APART = 2.0  # standard errors of the difference beyond which two samplers differ
_SCORED = 400  # draws
#: Columns of the table and of the curves.
_ERRORS = ("error", "error_low", "error_high", "error_mean", "error_sd")
_MIXING = ("rhat", "ess", "ess_per_s", "ess_per_million")


class Note(NamedTuple):
    """Estimates after the given number of gradients and draws per chain."""

    gradients: int
    draws: int
    moments: MomentEstimates


class Errors:
    """Record estimates of each sampler at the places of its schedule, and their errors against truth or reference."""

    #: Whether there are errors, with uncertainties, that rank the samplers.
    errors: ClassVar[bool] = True
    #: The metric that ranks samplers, smallest first.
    ranked_by: ClassVar[str] = "error"
    #: Frame parts available per sampler.
    pictures: ClassVar[tuple[str, ...]] = ("path", "prediction")

    def __init__(self, race: Any, target: Target | None, measured: bool) -> None:
        self._race, self._target = race, race.entries[0].target
        self.share = 1 / len(race.entries)  # of the time of all samplers
        self._known = known_truth(self._target)
        self.reference = Reference(race.spec, target) if self._known is None and measured else None
        self.estimates = [Estimates(entry) for entry in race.entries]
        self.recorded: list[list[Note]] = [[] for _ in race.entries]
        self._spent = [entry.gradients for entry in race.entries]  # at the end of the last block
        self._found: dict[int, list[tuple[TrueMoments, EstimateError]]] = {}
        self._figures: dict[int, tuple[int, dict[str, float]]] = {}  # by sampler: its number of draws, and its figures
        for number, entry in enumerate(race.entries):
            entry.on_work.append(partial(self._note, number))

    def _note(self, number: int) -> None:
        """Record estimates when due and at the end."""
        entry = self._race.entries[number]
        before, self._spent[number] = self._spent[number], entry.gradients
        passed = np.searchsorted(entry.schedule, [before, entry.gradients], side="right")
        if entry.phase == "start" or entry.diverged or not (passed[1] > passed[0] or entry.over):
            return
        moments = self.estimates[number].moments()
        if moments is not None:
            self.recorded[number].append(Note(entry.gradients, entry.store.common(entry.alive), moments))

    @property
    def truth(self) -> TrueMoments | None:
        """Truth used for the errors; None while unknown."""
        return self._known if self.reference is None else self.reference.truth

    @property
    def busy(self) -> bool:
        """Whether the reference has more to do."""
        return self.reference is not None and not self.reference.finished

    def advance(self, seconds: float) -> int:
        """Advance the reference for about the given seconds; return the number of steps."""
        return self.reference.advance(seconds)

    def save(self) -> dict[str, Any]:
        """Return the recorded estimates and the reference as tensors and plain values."""
        notes = [[(*note[:2], *saved_arrays(note.moments)) for note in each] for each in self.recorded]
        return {"notes": notes, "reference": None if self.reference is None else self.reference.save()}

    def load(self, saved: dict[str, Any]) -> None:
        """Restore estimates and reference."""
        self.recorded = [
            [Note(*note[:2], MomentEstimates(*loaded_arrays(note[2:]))) for note in each] for each in saved["notes"]
        ]
        if self.reference is not None:
            self.reference.load(saved["reference"])

    # figures

    @property
    def scores(self) -> list[str]:
        """Names of the scores of a network's predictions."""
        if not isinstance(self._target, BNN):
            return []
        if self._target.likelihood.task == "outputs":
            return ["nll"]
        return ["nll", "accuracy", "ece"] if self._target.likelihood.task == "classification" else ["nll", "rmse"]

    @property
    def columns(self) -> list[str]:
        """Names of a sampler's figures."""
        functions = FUNCTION_FIGURES if isinstance(self._target, BNN) else ()
        return [*_ERRORS, "error_log_se", *_MIXING, *functions, *self.scores]

    def figures(self, number: int) -> dict[str, float]:
        """Return errors, ESS and R-hat of a sampler, and the scores of a network."""
        entry, made = self._race.entries[number], int(self._race.entries[number].store.made.sum())
        if made != self._figures.get(number, (0, {}))[0] and entry.store.common(entry.alive):
            self._figures[number] = made, entry.mixing() | self._network_figures(number)
        known = self._figures.get(number, (0, {}))[1]
        if not self.recorded[number]:
            return known
        found = self.found_errors(number)[-1]
        errors = dict(zip(_ERRORS, (found.both, *found.interval, found.mean, found.sd), strict=True))
        return known | errors | {"error_log_se": found.log_se}

    def _network_figures(self, number: int) -> dict[str, float]:
        """Return scores of a network, and the worst R-hat and smallest ESS of its predictions."""
        entry = self._race.entries[number]
        if not isinstance(entry.target, BNN):
            return {}
        if entry.sampler.traits.weighted:
            return scores(entry.target, entry.resampled(_SCORED))
        found = scores(entry.target, weights(entry.store, chosen_draws(entry.store, entry.alive, _SCORED)))
        # Without records, evaluating the functions is too expensive.
        if entry.sampler.traits.converges and self.recorded[number]:
            found |= dict(zip(FUNCTION_FIGURES, worst_mixing(self.estimates[number].values()), strict=True))
        return found

    def found_errors(self, number: int) -> list[EstimateError]:
        """Return the recorded errors of a sampler against the current truth."""
        truth, recorded = self.truth, self.recorded[number]
        if truth is None:
            return [EstimateError(math.nan, math.nan)] * len(recorded)
        known = self._found.setdefault(number, [])
        if known and known[0][0] is not truth:
            known.clear()
        known += [(truth, error(note.moments, truth)) for note in recorded[len(known) :]]
        return [found for _, found in known]

    def curves(self) -> list[dict[str, Any]]:
        """Return name, spent gradients and errors per sampler; a diverged sampler has its final gradients."""
        curves = []
        for number, (name, entry) in enumerate(zip(self._race.names, self._race.entries, strict=True)):
            rows = [(each.both, *each.interval, each.mean, each.sd) for each in self.found_errors(number)]
            columns = np.array(rows, dtype=float).reshape(-1, len(_ERRORS)).T
            gradients = np.array([note.gradients for note in self.recorded[number]], dtype=float)
            named = {"entry": number, "name": name, "gradients": gradients}
            lost = float(entry.gradients) if entry.diverged else math.nan
            curves.append(named | dict(zip(_ERRORS, columns, strict=True)) | {"diverged": lost})
        return curves

    # views

    @property
    def parts(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Builders of parts of frames."""
        return {"curves": lambda: {"entries": self.curves(), "budget": self._race.spec.budget}}

    def scene(self) -> dict[str, Any]:
        """Return the static view data beside that of the race, with one figure of the density, which is large."""
        scenes = [entry.scene() for entry in self._race.entries]
        first = {name: scenes[0][name] for name in ("remarks", "names")}
        entries = [scene | {"plane": scenes[0]["plane"]} for scene in scenes]
        return {"title": f"Race on {scenes[0]['target']}", **first, "entries": entries}

    @property
    def meaning(self) -> str:
        """Description of the error."""
        against = "the truth" if self.reference is None else f"a long run of {self.reference.title}"
        return f"error of mean and sd of the {self.estimates[0].what} against {against}, in its sd"

    @property
    def reference_status(self) -> dict[str, Any] | None:
        """Progress and mixing of the reference; None without one."""
        return None if self.reference is None else self.reference.status()

    def is_better(self, one: dict[str, Any], other: dict[str, Any]) -> bool:
        """Return whether a row's error is significantly smaller than another's."""
        if not (_is_judged(one) and _is_judged(other)) or one["error"] >= other["error"]:
            return False
        apart = math.log(other["error"]) - math.log(max(one["error"], 1e-300))
        return apart > _APART * math.hypot(one["error_log_se"], other["error_log_se"])

    def standing(self, rows: list[dict[str, Any]]) -> str:
        """Describe the leader of the rows of the table, its margin, and the reference."""
        return self._leader(rows) + self._against()

    def _leader(self, rows: list[dict[str, Any]]) -> str:
        ranked = [row for row in rows if row["rank"] is not None]
        if not ranked and any(self.recorded):
            if self.reference is None:
                return "samplers are not ranked without a reference; the table has R-hat and ESS."
            return f"no ranking yet: the reference run of {self.reference.title} has too few draws."
        if not ranked:
            return unmeasured(rows)
        first, rest = ranked[0], ranked[1:]
        error = f"{first['error']:.2g} sd"
        if _is_judged(first):
            error += f", {first['error_low']:.2g} to {first['error_high']:.2g}"
        leads = f"{first['name']} has the smallest error ({error})"
        if not rest:
            return f"{leads}; no other sampler can be measured yet."
        unlike = [row for row in rest if self.is_better(first, row)]
        alike = [row["name"] for row in rest if row not in unlike]
        if not alike:
            ratio = unlike[0]["error"] / max(first["error"], 1e-300)
            times = f"{ratio:.2g} times" if ratio < 100 else "over 100 times"
            return f"{leads}, {times} smaller than that of {unlike[0]['name']}, which is next."
        if not any(map(_is_judged, ranked)):
            return f"{leads}; fewer than four chains do not show a significant difference."
        named = " and ".join(alike) if len(alike) < 3 else f"{', '.join(alike[:-1])} and {alike[-1]}"
        return f"{leads}, not significantly different from {'that' if len(alike) == 1 else 'those'} of {named}."

    def _against(self) -> str:
        """Describe the reference, if any."""
        found = self.reference_status
        if found is None:
            return ""
        if found["error"]:
            return f" {found['error']}"
        if self.truth is None:
            return ""
        more = "" if found["finished"] else f" of {found['goal']:,}"
        mixing = f", R-hat {found['rhat']:.2f}" if math.isfinite(found["rhat"]) else ""
        return f" (Reference: {found['title']}, {found['draws']:,}{more} draws{mixing}.)"


def unmeasured(rows: list[dict[str, Any]]) -> str:
    """Describe whether draws or only their metrics are missing."""
    if any(row["draws"] for row in rows):
        return "the first draws are not measured yet."
    return "no sampler has draws yet, as tuning and warm-up are charged too."


def _is_judged(row: dict[str, Any]) -> bool:
    """Return whether a row has a standard error."""
    return math.isfinite(row["error_log_se"])

"""Define experiments whose figures are of single draws' predictions on test rows, and the arrays of their pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bnnviz.experiments import cache
from bnnviz.experiments.experiment import LABELS, Case, Experiment, standard_error
from bnnviz.specs.run import Spec

_HEADINGS = {"trace": "Trace of the first component", "acf": "Its autocorrelation"}


@dataclass(frozen=True)
class PredictiveExperiment(Experiment):
    """A table or figure whose numbers are means and standard deviations over single draws."""

    pictures: tuple[str, ...] = ()
    followed: tuple[str, ...] = ()
    together: bool = False
    taken: tuple[str, ...] = ()

    @property
    def has_figure(self) -> bool:
        """Whether it has a figure."""
        return bool(self.pictures)

    @property
    def over_draws(self) -> bool:
        """Whether its figures are means over single draws, each with a standard deviation."""
        return True

    def _place(self, spec: Spec) -> Any:
        return cache.place(spec.checked().to_json(), [*self._taken, *self.followed])

    @property
    def _taken(self) -> tuple[str, ...]:
        """The pictures that are taken of a run."""
        return self.taken or self.pictures

    def seconds(self, repetitions: int | None = None) -> float:
        """Return about how long the missing runs take here, from the first two seconds of one run of each case.

        A run that has no draws by then, such as one that is still trained, counts as ten times that.
        """
        from bnnviz.experiments.predictive_run import pilot  # with torch

        total = 0.0
        for case in self.cases:
            missing = [spec for spec in case.specs[:repetitions] if self._read(spec) is None]
            if missing:
                total += len(missing) * pilot(missing[0])
        return total

    def result(self, spec: Spec) -> dict[str, Any]:
        """Run a spec of one of its cases to the end, and return what is kept of it."""
        from bnnviz.experiments.predictive_run import result  # with torch

        return result(spec, self._taken, self.followed)

    def row(self, case: Case, summaries: Any) -> dict[str, Any]:
        """Return a case's figures: of each the mean over runs of its mean over draws, and what goes with it.

        ``<figure>_se``: the standard error over runs; ``_sd``: the mean standard deviation over draws; ``_averaged``:
        that of the averaged predictive; ``_published`` and ``_published_sd``: the paper's.
        """
        summaries = list(summaries)
        row = self._row(case, len(summaries))
        for key in self.measures:
            values = _known(summaries, "figures", key)
            row[key], row[f"{key}_se"] = _mean(values), standard_error(values)
            row[f"{key}_sd"] = _mean(_known(summaries, "sds", key))
            row[f"{key}_averaged"] = _mean(_known(summaries, "averaged", key))
            row[f"{key}_published"] = case.published.get(key)
            row[f"{key}_published_sd"] = case.published.get(f"{key}_sd")
        row["weights_ess"] = _mean([s["weights_ess"] for s in summaries if s.get("weights_ess") is not None])
        failed = [s["error"] for s in summaries if s.get("error")]
        return row | {"note": " ".join([case.note, *failed[:1]]).strip()}

    def panels(self, done: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str, dict[str, Any]]]:
        """Return (heading, view, part) of each picture of the first run of each case."""
        firsts = [(case.name, done[case.name][0]["pictures"]) for case in self.cases if done.get(case.name)]
        firsts = [(name, pictures) for name, pictures in firsts if pictures]
        return [panel for picture in self.pictures for panel in self._panels_of(picture, firsts)]

    def _panels_of(self, picture: str, firsts: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str, dict]]:
        parts = [(name, pictures[picture]) for name, pictures in firsts if pictures.get(picture) is not None]
        if picture == "roc":
            curves = [(name, part | {"name": name}) for name, part in parts]
            if self.together:
                return [("All methods", "roc", {"curves": [curve for _, curve in curves]})]
            return [(name, "roc", {"curves": [curve]}) for name, curve in curves]
        if picture == "history":
            return [(LABELS.get(f, f), "history", _joined(parts, f)) for f in self.followed]
        if picture == "errors2":
            return [("Squared errors", "errors2", {"boxes": [part | {"name": name} for name, part in parts]})]
        if picture == "chances":
            return [(name, "chances", one) for name, part in parts for one in part]
        more = f": {_HEADINGS[picture]}" if picture in _HEADINGS else ""
        return [(name + more, picture, part) for name, part in parts]


def _known(summaries: list[dict[str, Any]], kind: str, key: str) -> list[float]:
    return [s[kind][key] for s in summaries if s.get(kind, {}).get(key) is not None]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _joined(parts: list[tuple[str, dict]], figure: str) -> dict[str, Any]:
    """Return the part of a history: the same figure of all cases."""
    lines = [{"name": name, "iteration": part["iteration"], **part[figure]} for name, part in parts]
    return {"label": LABELS.get(figure, figure), "lines": lines}

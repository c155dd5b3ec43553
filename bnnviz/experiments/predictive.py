"""Define experiments evaluated by single draws' predictions on test rows, and the arrays of their pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bnnviz.experiments.experiment import Case, Experiment, Panel, mean
from bnnviz.experiments.table import LABELS

_HEADINGS = {"trace": "Trace of the first component", "acf": "Its autocorrelation"}


@dataclass(frozen=True)
class PredictiveExperiment(Experiment):
    """A table or figure whose numbers are means and standard deviations over single draws."""

    runner: str = "predictive_run:result"
    followed: tuple[str, ...] = ()
    together: bool = False
    taken: tuple[str, ...] = ()

    @property
    def _measured(self) -> list[str]:
        return [self.runner, *(self.taken or self.pictures), *self.followed]

    def row(self, case: Case, summaries: Any) -> dict[str, Any]:
        """Return means over runs with errors (``_se``), sds over draws (``_sd``), ``_averaged`` and the first error."""
        summaries = list(summaries)
        row = self._row(case, summaries, [summary["figures"] for summary in summaries])
        for key in self.measures:
            for kind, name in (("sds", f"{key}_sd"), ("averaged", f"{key}_averaged")):
                row[name] = mean([s[kind][key] for s in summaries if s.get(kind, {}).get(key) is not None])
        row["weights_ess"] = mean([s["weights_ess"] for s in summaries if s.get("weights_ess") is not None])
        failed = [s["error"] for s in summaries if s.get("error")]
        return row | ({"error": failed[0]} if failed else {})

    def panels(self, done: dict[str, list[dict[str, Any]]]) -> list[Panel]:
        """Return (heading, view, part) of each picture of the first run of each case."""
        firsts = [(case.name, done[case.name][0]["pictures"]) for case in self.cases if done.get(case.name)]
        firsts = [(name, pictures) for name, pictures in firsts if pictures]
        return [panel for picture in self.pictures for panel in self._panels_of(picture, firsts)]

    def _panels_of(self, picture: str, firsts: list[tuple[str, dict[str, Any]]]) -> list[Panel]:
        parts = [(name, pictures[picture]) for name, pictures in firsts if pictures.get(picture) is not None]
        if picture == "roc":
            curves = [(name, part | {"name": name}) for name, part in parts]
            if self.together:
                return [("All methods", "roc", {"curves": [curve for _, curve in curves]})]
            return [(name, "roc", {"curves": [curve]}) for name, curve in curves]
        if picture == "history":
            panels = []
            for figure in self.followed:
                lines = [{"name": name, "iteration": part["iteration"], **part[figure]} for name, part in parts]
                label = LABELS.get(figure, figure)
                panels.append((label, "history", {"label": label, "lines": lines}))
            return panels
        if picture == "errors2":
            return [("Squared errors", "errors2", {"boxes": [part | {"name": name} for name, part in parts]})]
        if picture == "chances":
            return [(name, "chances", one) for name, part in parts for one in part]
        more = f": {_HEADINGS[picture]}" if picture in _HEADINGS else ""
        return [(name + more, picture, part) for name, part in parts]

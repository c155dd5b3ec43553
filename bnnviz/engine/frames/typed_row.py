"""Predict one entered row with all kept draws of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.engine.evaluation.metrics import network_draws
from bnnviz.engine.evaluation.predictive_distribution import Surroundings, predict
from bnnviz.engine.protocol import SingleRun
from bnnviz.errors import BnnvizError

#: Quantiles of an observation: the ends of the 90 % and the 50 % interval, and the median.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_FIGURES = ("mean", "sd", "epistemic_sd", "aleatoric_sd", "entropy", "mutual_information")


class TypedRow:
    """Predict an entered row like `bnnviz.Run.predict`."""

    def __init__(self, run: SingleRun) -> None:
        self._run = run
        self._row: np.ndarray | None = None
        self.forget()

    def forget(self) -> None:
        """Drop results of earlier training rows and keep the row."""
        self._surroundings: Surroundings | None = None

    def look_like(self, other: TypedRow) -> None:
        """Take the row of another run of the same target."""
        self._row = other._row

    def choose(self, row: Any) -> None:
        """Set a row (inputs,) in the units of the data."""
        inputs = int(np.prod(self._run.target.x.shape[1:]))
        try:
            found = np.array(row, dtype=float)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.shape != (inputs,) or not np.isfinite(found).all():
            raise BnnvizError(f"A row to predict has {inputs} numbers, one for each input; give as many.", "row")
        self._row = found

    def part(self) -> dict[str, Any]:
        """Return the part ``row`` of a frame; empty without a row, or without draws."""
        run = self._run
        if self._row is None or not run.store.common(run.alive):
            return {}
        if self._surroundings is None:
            self._surroundings = Surroundings(run.target)
        x = self._row.reshape(1, *run.target.x.shape[1:])
        try:
            given = network_draws(run)
            found = predict(given, x, LEVELS, self._surroundings)
        except BnnvizError:  # no draw with a weight yet
            return {}
        figures = {name: getattr(found, name) for name in _FIGURES}
        return {
            "row": self._row,
            "draws": len(given.theta),
            "task": found.task,
            "far": bool(found.far[0]),
            "note": found.note,
            "quantiles": {level: float(values[0]) for level, values in found.quantiles.items()},
            "classes": list(found.class_names),
            "probabilities": None if found.probabilities is None else found.probabilities[0],
            **{name: None if values is None else float(values[0]) for name, values in figures.items()},
        }

"""Measure how well the draws of a population predict the test rows, iteration by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.evaluation.metrics import Predictions, class_names, positive_class, predict
from bnnviz.engine.evaluation.predictions import observed_rows
from bnnviz.engine.protocol import AnyRun

if TYPE_CHECKING:
    from bnnviz.engine.monitor.importance import Importance

_DRAWS = 50  # resampled by their weights
_REMEMBERED = 400  # iterations
_AREA, _RIGHT, _ERROR = "AUC", "accuracy", "RMSE"


class TestMetrics:
    """Measure the last weighted draws, once per viewed iteration."""

    def __init__(self, run: AnyRun, importance: Importance) -> None:
        self._run, self._importance = run, importance
        self._classes = class_names(run.target)
        picture = "errors2" if not self._classes else "roc" if len(self._classes) == 2 else "confusion"
        measurable = picture != "roc" or diagnostics.has_learn()
        if picture == "roc" and measurable:
            # The import takes a second or two: do it before anyone waits for a frame.
            diagnostics.learn_metrics()
        self.emits = ("history", picture) if measurable else ()
        self.forget()

    def forget(self) -> None:
        """Drop results of earlier draws."""
        self._key: tuple[int, int] | None = None
        self._parts: dict[str, dict[str, Any]] = {}
        self._lines: dict[str, list[tuple[int, float, float]]] = {}

    def part(self, name: str) -> dict[str, Any]:
        """Return a part of a frame; empty before there are draws."""
        iteration = self._run.chain_trace.iteration
        if iteration and (iteration, self._run.generation) != self._key:
            theta = self._importance.current(_DRAWS)
            if len(theta):
                self._key = iteration, self._run.generation
                self._take(iteration, predict(self._run.target, theta))
        return self._parts.get(name, {})

    def _take(self, iteration: int, found: Predictions) -> None:
        observed = observed_rows(self._run.target)
        if self._classes:
            figures = self._of_classes(found.probabilities, observed.astype(int))
        else:
            figures = self._of_numbers(found.law.means.reshape(len(found.law.means), -1), observed)
        for name, values in figures.items():
            known = [*self._lines.get(name, []), (iteration, float(values.mean()), float(values.std()))]
            self._lines[name] = known[-_REMEMBERED:]
        lines = [
            dict(zip(("iteration", "mean", "sd"), map(np.array, zip(*line, strict=True)), strict=True)) | {"name": name}
            for name, line in self._lines.items()
        ]
        self._parts["history"] = {"label": " and ".join(self._lines), "lines": lines}

    def _of_numbers(self, means: np.ndarray, observed: np.ndarray) -> dict[str, np.ndarray]:
        spread = diagnostics.error_spread((means.mean(0) - observed) ** 2)
        boxes = [] if spread is None else [{"name": self._run.sampler.title, **spread._asdict()}]
        self._parts["errors2"] = {"boxes": boxes}
        return {_ERROR: np.sqrt(((means - observed) ** 2).mean(1))}

    def _of_classes(self, probabilities: np.ndarray, observed: np.ndarray) -> dict[str, np.ndarray]:
        right = (probabilities.argmax(-1) == observed).mean(1)
        if len(self._classes) > 2:
            matrix = diagnostics.confusion(probabilities.mean(0).argmax(1), observed, len(self._classes))
            self._parts["confusion"] = {"matrix": matrix, "classes": self._classes}
            return {_RIGHT: right}
        positive = positive_class(self._run.target)
        if len(np.unique(observed)) < 2:
            # Rows of a single class have no ROC curve.
            return {_RIGHT: right}
        curve = diagnostics.roc_envelopes(probabilities[..., positive], observed == positive)
        self._parts["roc"] = {"curves": [{"name": self._run.sampler.title, **curve._asdict()}]}
        areas = [diagnostics.class_metrics(each, observed, positive).values["auc"] for each in probabilities]
        return {_AREA: np.array(areas), _RIGHT: right}

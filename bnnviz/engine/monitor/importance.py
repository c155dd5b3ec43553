"""Judge the weights of draws for the table, and resample weighted draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from bnnviz import diagnostics, optional
from bnnviz.diagnostics import VarianceInflation
from bnnviz.diagnostics.packages import learn_metrics
from bnnviz.engine.evaluation.metrics import class_names, positive_class, predict
from bnnviz.engine.evaluation.predictions import observed_rows
from bnnviz.engine.monitor.mixing import stated
from bnnviz.engine.monitor.variances import EFFORT, is_clear, measured_variance_inflation, variance_rows, with_error
from bnnviz.engine.protocol import AnyRun
from bnnviz.engine.run.draw_store import resampled
from bnnviz.messages import Message
from bnnviz.numerals import number

_MOST_VARIANCES = 3  # rows of the table
_MOST_MOMENTS = 50  # dimensions
POOR, GOOD_K, BAD_K = 0.05, 0.7, 1.0
CLEAR_WEIGHTED = 3.0  # standard errors: weights are examined once, a chain repeatedly
_FAR = 5  # standard errors
_DRAWS = 50  # resampled by their weights
_REMEMBERED = 400  # iterations
_AREA, _RIGHT, _ERROR = "AUC", "accuracy", "RMSE"


class Importance:
    """Measure the last weighted draws of a run's sampler, once per iteration."""

    def __init__(self, run: AnyRun) -> None:
        self._run = run
        self._key: tuple[int, int] | None = None
        self._rows: list[list[str]] = []
        self.messages: list[Message] = []  # that the draws miss a part of the density, although the weights are even
        self._stein: tuple[int, VarianceInflation | None] = (0, None)

    @property
    def weight_ess(self) -> float:
        """Weight ESS of the draws of the last iteration; nan before there are any."""
        return self._run.chain_trace.weight_ess

    def current(self, count: int) -> Tensor:
        """Return resampled draws (count, dim) of the last iteration; (0, dim) without weights."""
        found = self._run.chain_trace.current()
        if found is None:
            return self._run.chain_trace.current_point()[None][:0]
        return resampled(found[0], found[1].cpu().numpy(), count)

    def rows(self) -> list[list[str]]:
        """Return rows (label, text, tone): weight ESS, tail of the weights, and known variances with the estimates."""
        found = self._run.chain_trace.current()
        if found is None:
            return self._rows
        key = self._run.chain_trace.iteration, self._run.generation
        if key != self._key:
            self._key, self._rows = key, self._taken(*found)
        return self._rows

    def _taken(self, draws: Tensor, weights: Tensor) -> list[list[str]]:
        logs = weights.cpu().numpy()
        weight_ess, k = diagnostics.weight_ess(logs), diagnostics.pareto_k(logs)
        share, (log_z, error) = weight_ess / len(logs), diagnostics.log_evidence(logs)
        known = self._variances(draws, logs)
        # With known variances the identity is redundant, or wrong: it may take draws of a part of a curved density for
        # too wide.
        stein = None
        if not known:
            measured, stein = self._stein
            iteration = self._run.chain_trace.iteration
            # Again after a quarter more iterations.
            if not measured <= iteration < EFFORT.growth * measured:
                stein = measured_variance_inflation(self._run, EFFORT, draws[None], logs[None])
                self._stein = iteration, stein
        missed = stein is not None and is_clear(stein.share, stein.error, CLEAR_WEIGHTED)
        missed = missed or any(tone == "bad" for _, _, tone in known)
        self.messages = [Message("even_weights", percent=100 * share)] if missed and share >= POOR else []
        off = []
        if stein is not None:
            text = f"{100 * stein.share:+.0f} ± {100 * stein.error:.0f}%"
            at = stated(self._stein[0], self._run.chain_trace.iteration)
            off.append([f"Weighted variances, off by Stein's identity{at}", text, "bad" if missed else ""])
        # A light tail does not show what draws have missed.
        tone = "bad" if k > BAD_K else "good" if k < GOOD_K and not missed else ""
        return [
            [f"Weight ESS of {len(logs):,} draws", f"{weight_ess:,.1f}", "bad" if share < POOR else ""],
            ["Tail of the weights, Pareto k-hat", number(k, ".2f"), tone],
            *off,
            ["log of the integral of exp(-U)", with_error(log_z, error), ""],
            *known[:_MOST_VARIANCES],
        ]

    def _variances(self, draws: Tensor, logs: np.ndarray) -> list[list[str]]:
        target = self._run.target
        cov = target.cov()
        if cov is None or target.dim > _MOST_MOMENTS:
            return []
        found = diagnostics.weighted_moments(draws.double().cpu().numpy(), logs)
        variance, error, true = np.diag(found.cov), found.variance_se, np.diag(cov)
        tones = np.where(np.abs(variance - true) > _FAR * error, "bad", "").tolist()
        return variance_rows(zip(target.names(), variance, error, true, tones, strict=True))


class TestMetrics:
    """Measure the last weighted draws, once per viewed iteration."""

    def __init__(self, run: AnyRun, importance: Importance) -> None:
        self._run, self._importance = run, importance
        self._classes = class_names(run.target)
        picture = "errors2" if not self._classes else "roc" if len(self._classes) == 2 else "confusion"
        measurable = picture != "roc" or optional.has("sklearn")
        if picture == "roc" and measurable:
            # The import takes a second or two: do it before anyone waits for a frame.
            learn_metrics()
        self.emits = ("history", picture) if measurable else ()
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
                self._take(iteration, theta)
        return self._parts.get(name, {})

    def _take(self, iteration: int, theta: Tensor) -> None:
        found, observed = predict(self._run.target, theta), observed_rows(self._run.target)
        if self._classes:
            figures = self._of_classes(found, observed.astype(int))
        else:
            means = found.means.reshape(len(theta), -1)
            spread = diagnostics.error_spread((means.mean(0) - observed) ** 2)
            boxes = [] if spread is None else [{"name": self._run.sampler.title, **spread._asdict()}]
            self._parts["errors2"] = {"boxes": boxes}
            figures = {_ERROR: np.sqrt(((means - observed) ** 2).mean(1))}
        for name, values in figures.items():
            known = [*self._lines.get(name, []), (iteration, float(values.mean()), float(values.std()))]
            self._lines[name] = known[-_REMEMBERED:]
        lines = [
            dict(zip(("iteration", "mean", "sd"), map(np.array, zip(*line, strict=True)), strict=True)) | {"name": name}
            for name, line in self._lines.items()
        ]
        self._parts["history"] = {"label": " and ".join(self._lines), "lines": lines}

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

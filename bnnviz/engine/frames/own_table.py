"""Frame parts of a run on the user's own table: the verdict, and the prediction of an entered row."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bnnviz.data import DataSet
from bnnviz.engine.evaluation.baselines import compared
from bnnviz.engine.evaluation.metrics import measure, network_draws
from bnnviz.engine.evaluation.predictions import evenly
from bnnviz.engine.evaluation.predictive_distribution import Surroundings, predict
from bnnviz.engine.monitor import remedies
from bnnviz.engine.monitor.mixing import LiveMixing
from bnnviz.engine.monitor.summary import summarise
from bnnviz.engine.monitor.verdict import verdict
from bnnviz.engine.protocol import AnyRun
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message

#: Quantiles of an observation: the ends of the 90% and the 50% interval, and the median.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_FIGURES = ("mean", "sd", "epistemic_sd", "aleatoric_sd", "entropy", "mutual_information")
_FEWEST = 10  # draws of each chain before a running sampler is judged
_SHARE, _LEAST_S, _MOST_S = 0.02, 1.0, 30.0  # maximum fraction of the time, and seconds between two
_DRAWS, _LEAST_DRAWS, _WORK = 400, 50, 2e8  # maximum and minimum draws, and their maximum multiply-adds
_WAITS = {
    "start": "each chain descends to a mode",
    "tuning": "the sampler warms up",
    "warm-up": "the sampler warms up",
    "failed": "the run stopped",
}


OWN_PARTS = ("verdict", "row")


class OwnTable:
    """Build the parts ``verdict`` and ``row`` for a network on the user's own table."""

    def __init__(self, run: AnyRun) -> None:
        self._run = run
        self.row: np.ndarray | None = None

    def forget(self) -> None:
        """Drop results of earlier draws and training rows, and keep the row."""
        self._surroundings: Surroundings | None = None
        self._verdict: dict[str, Any] = {}
        self._pace = Throttle(_SHARE, least=_LEAST_S, most=_MOST_S)
        self._judged = (0, False)  # judged draws of each chain, and whether these were all

    def choose(self, row: Any) -> None:
        """Set a row (inputs,) in the units of the data."""
        inputs = int(np.prod(self._run.target.x.shape[1:]))
        try:
            found = np.array(row, dtype=float)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.shape != (inputs,) or not np.isfinite(found).all():
            raise BnnvizError(f"A row to predict has {inputs} numbers, one for each input; give as many.", "row")
        self.row = found

    def part(self, name: str, component: np.ndarray, mixing: LiveMixing | None) -> dict[str, Any]:
        """Return a part; ``component`` (chains, draws) is the first component of the draws, and ``mixing`` theirs."""
        return self._predicted() if name == "row" else self._judgement(component, mixing)

    def _predicted(self) -> dict[str, Any]:
        """Return the prediction of the row, as of `bnnviz.Run.predict`; empty without a row or draws."""
        run = self._run
        if self.row is None or not run.store.common(run.alive):
            return {}
        if self._surroundings is None:
            self._surroundings = Surroundings(run.target)
        x = self.row.reshape(1, *run.target.x.shape[1:])
        try:
            given = network_draws(run)
            found = predict(given, x, LEVELS, self._surroundings)
        except BnnvizError:  # no draw with a weight
            return {}
        figures = {name: getattr(found, name) for name in _FIGURES}
        return {
            "row": self.row,
            "draws": len(given.theta),
            "task": found.task,
            "far": bool(found.far[0]),
            "note": found.note,
            "quantiles": {level: float(values[0]) for level, values in found.quantiles.items()},
            "classes": list(found.class_names),
            "probabilities": None if found.probabilities is None else found.probabilities[0],
            **{name: None if values is None else float(values[0]) for name, values in figures.items()},
        }

    def _judgement(self, component: np.ndarray, mixing: LiveMixing | None) -> dict[str, Any]:
        run = self._run
        draws = run.store.common(run.alive)
        if draws < (1 if run.finished else _FEWEST):
            findings = f"it needs {_FEWEST} draws of each chain, and there are {draws}."
            if run.phase in _WAITS:
                way = run.waiting.message()
                findings = f"{_WAITS[run.phase]}.{'' if way is None else f' {way.text}'}"
            return _part(Message("no_verdict", findings=findings), draws)
        if (draws, run.finished) != self._judged and (self._pace.due or run.finished or not self._verdict):
            begun = time.thread_time()
            ended = summarise(run) if run.phase == "done" else {}
            judged = ended.get("verdict") or self._judge(component, mixing)
            self._judged, self._verdict = (draws, run.finished), _part(judged, draws)
            self._pace.spent(time.thread_time() - begun)
        return self._verdict

    def _judge(self, component: np.ndarray, mixing: LiveMixing | None) -> Message:
        """Judge a running sampler by a selection of its draws."""
        run = self._run
        try:
            found = {"metrics": (metrics := self._measured())}
        except BnnvizError as error:  # no draw with a weight
            return Message("no_verdict", findings=error.message.text)
        if isinstance(run.target.data_set, DataSet):
            found |= compared(metrics["row_scores"], run.target.data_set)
        if component.size and mixing is not None:
            mixing.take(component)
            found["rhat_function_max"] = mixing.found.rhat if np.isfinite(mixing.found.rhat) else None
        return verdict(found, run.target.data_set is not None, run.sampler.traits.converges, remedies.more(run))

    def _measured(self) -> dict[str, Any]:
        """Return the metrics at the held-out rows."""
        run = self._run
        if run.sampler.traits.weighted:
            return measure(run)
        rows, _ = run.target.held_out()
        affordable = _WORK / max(len(rows) * run.target.row_work, 1)
        given = network_draws(run)
        kept = evenly(len(given.theta), int(min(max(affordable, _LEAST_DRAWS), _DRAWS)))
        return measure(run.target, given.theta[kept], None if given.log_weights is None else given.log_weights[kept])


def _part(message: Message, draws: int) -> dict[str, Any]:
    return {"code": message.code, "text": message.text, "draws": draws}

"""Judge a running network in one line, by fewer draws than at its end (`verdict`)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.data import DataSet
from bnnviz.engine.evaluation.baselines import baselines
from bnnviz.engine.evaluation.metrics import measure, network_draws
from bnnviz.engine.evaluation.predictions import Predictor, evenly
from bnnviz.engine.monitor import remedies
from bnnviz.engine.monitor.mixing import measured_mixing
from bnnviz.engine.monitor.verdict import verdict
from bnnviz.engine.protocol import SingleRun
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message

_FEWEST = 10  # draws of each chain
_SHARE, _LEAST_S, _MOST_S = 0.02, 1.0, 30.0  # maximum fraction of the time, and seconds between two
_DRAWS, _LEAST_DRAWS, _WORK = 400, 50, 2e8  # maximum and minimum draws, and their maximum multiply-adds
_LENGTH = 500  # draws of each chain for R-hat
_COLUMNS, _ALL_COLUMNS = 20, 100  # weights with R-hat in a live run, and in an ended one
_WAITS = {
    "start": "each chain descends to a mode",
    "tuning": "the sampler warms up",
    "warm-up": "the sampler warms up",
    "failed": "the run stopped",
}


class LiveVerdict:
    """Judge a run of a network within a small fraction of its time."""

    def __init__(self, run: SingleRun) -> None:
        self._run = run
        self.forget()

    def forget(self) -> None:
        """Drop results of earlier draws."""
        self._part: dict[str, Any] = {}
        self._pace = Throttle(_SHARE, least=_LEAST_S, most=_MOST_S)
        self._judged = (0, False)  # judged draws of each chain, and whether these were all

    def part(self, rhat: float) -> dict[str, Any]:
        """Return the part ``verdict`` of a frame."""
        run = self._run
        draws = run.store.common(run.alive)
        if draws < (1 if run.finished else _FEWEST):
            return _part(self._waits(draws), draws)
        if (draws, run.finished) != self._judged and (self._pace.due or run.finished or not self._part):
            begun = time.thread_time()
            self._judge(rhat, draws)
            self._pace.spent(time.thread_time() - begun)
        return self._part

    def _waits(self, draws: int) -> Message:
        """Return the message on a missing verdict."""
        run = self._run
        if run.phase in _WAITS:
            way = run.waiting.message()
            return Message("no_verdict", findings=f"{_WAITS[run.phase]}.{'' if way is None else f' {way.text}'}")
        return Message("no_verdict", findings=f"it needs {_FEWEST} draws of each chain, and there are {draws}.")

    def _judge(self, rhat: float, draws: int) -> None:
        run = self._run
        try:
            found = {"metrics": self._measured()}
        except BnnvizError as error:  # no draw with a weight
            judged = Message("no_verdict", findings=error.message.text)
        else:
            if isinstance(run.target.data_set, DataSet):
                found["baselines"] = baselines(run.target.data_set)
            if not run.sampler.traits.weighted:
                found |= self._mixed(rhat)
            judged = verdict(found, run.target.data_set is not None, run.sampler.traits.converges, remedies.more(run))
        self._judged, self._part = (draws, run.finished), _part(judged, draws)

    def _measured(self) -> dict[str, Any]:
        """Return the metrics at the held-out rows, of a selection while the run continues."""
        run = self._run
        if run.finished or run.sampler.traits.weighted:
            return measure(run)
        rows, _ = run.target.held_out()
        affordable = _WORK / max(len(rows) * run.target.row_work, 1)
        given = network_draws(run)
        kept = evenly(len(given.theta), int(min(max(affordable, _LEAST_DRAWS), _DRAWS)))
        return measure(run.target, given.theta[kept], None if given.log_weights is None else given.log_weights[kept])

    def _mixed(self, rhat: float) -> dict[str, float | None]:
        """Return R-hat of weights and predictions, as in a summary."""
        run = self._run
        if run.finished:
            rhat = measured_mixing(run, Predictor(run.target)).rhat
        draws = run.store.view(run.alive)
        stride = 1 if run.finished else max(1, draws.shape[1] // _LENGTH)
        columns = evenly(draws.shape[2], _ALL_COLUMNS if run.finished else _COLUMNS)
        chosen = draws[:, ::stride][:, :, np.unique(columns)].double().cpu().numpy()
        each = [diagnostics.rhat(chosen[:, :, i]) for i in range(chosen.shape[2])]
        worst = max((one for one in each if np.isfinite(one)), default=None)
        return {"rhat_max": worst, "rhat_function_max": rhat if np.isfinite(rhat) else None}


def _part(message: Message, draws: int) -> dict[str, Any]:
    return {"code": message.code, "text": message.text, "draws": draws}

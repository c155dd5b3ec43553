"""Measure how draws mix where one coordinate does not show it: in the function that they stand for, and in U."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import torch

from bnnviz import diagnostics
from bnnviz.engine.evaluation.draw_table import DrawTable
from bnnviz.engine.evaluation.predictions import Predictor, evenly
from bnnviz.engine.monitor.words import number
from bnnviz.engine.protocol import DrawSource
from bnnviz.engine.throttle import Throttle


class MixingEffort(NamedTuple):
    """Say how much may be spent on measuring how a run mixes.

    Attributes
    ----------
    points : int
        Inputs that functions are taken at.
    draws, least_draws : int
        Of all chains at most; of each chain of a run that goes on, of all chains of a finished one, at least.
    work : float
        Multiply-adds.
    """

    points: int
    draws: int
    least_draws: int
    work: float


# The sizes of a few draws of many say nothing of the many.
LIVE, FINISHED = MixingEffort(8, 2000, 25, 1e8), MixingEffort(40, 20_000, 100, 3e9)
_SHARE, _LONGEST_WAIT = 0.002, 10.0  # of the time that a run that goes on may be measured, and seconds
_CHUNK = 64


class MixingEss(NamedTuple):
    """Hold bulk effective sample sizes; nan where they are not known.

    Attributes
    ----------
    energy : float
        Of U.
    least, median : float
        Of the predictions, over the inputs that they were taken at; nan for what is no network.
    rhat : float
        The largest R-hat of these predictions, of a finished run.
    """

    energy: float = float("nan")
    least: float = float("nan")
    median: float = float("nan")
    rhat: float = float("nan")


class _Values(DrawTable):
    """Keep U of draws, and of a network the predictions at a few inputs."""

    def __init__(self, run: DrawSource, predictor: Predictor | None, points: int) -> None:
        super().__init__(run, self._rows)
        self._predictor, self._points = predictor, points

    @property
    def work(self) -> float:
        """Multiply-adds that a draw takes, about."""
        rows = max(self._run.target.examples, 1) + (0 if self._predictor is None else self._points)
        return 2.0 * rows * self._run.target.row_work

    def _rows(self, theta: torch.Tensor) -> np.ndarray:
        target = self._run.target
        energy = torch.cat([target.potential(part) for part in torch.split(theta, _CHUNK)]).double().cpu().numpy()
        if self._predictor is None:
            return energy[:, None]
        functions = self._predictor.functions(theta, self._points)
        # Where there are classes, each input has the probability of each.
        return np.column_stack([energy, functions[:, evenly(functions.shape[1], self._points)]])


def _measured(table: np.ndarray) -> MixingEss:
    """Return the sizes from (chains, draws, 1 + points)."""
    energy, *functions = diagnostics.ess_each(table)
    known = [size for size in functions if np.isfinite(size)]
    if not known:
        return MixingEss(energy)
    return MixingEss(energy, float(min(known)), float(np.median(known)))


class LiveMixing:
    """Measure a run that goes on, as often as a small share of the time allows.

    Parameters
    ----------
    run : DrawSource
    predictor : Predictor or None
        Gives the functions, where there are any.

    Attributes
    ----------
    found : MixingEss
    tail : float
        Tail ESS of the first principal component. Both as they were when they were last measured.
    cpu_seconds : float
        That measuring has taken.
    """

    def __init__(self, run: DrawSource, predictor: Predictor | None) -> None:
        self._run, self._predictor, self.cpu_seconds = run, predictor, 0.0
        self.forget()

    def forget(self) -> None:
        """Drop what was measured of earlier draws."""
        self.found, self.tail = MixingEss(), float("nan")
        self._values = _Values(self._run, self._predictor, LIVE.points)
        self._pace, self._made = Throttle(_SHARE, most=_LONGEST_WAIT), 0

    def take(self, component: np.ndarray) -> None:
        """Measure again, if there are other draws and it is time to; ``component`` (chains, draws) is their first."""
        run = self._run
        made = int(run.store.made.sum())
        if made == self._made or (not self._pace.due and not run.finished):
            return
        begun, self._made = time.thread_time(), made
        self.tail = diagnostics.ess_tail(component)
        if self._values.work <= LIVE.work:
            self.found = _measured(
                self._values.values(max(LIVE.draws, LIVE.least_draws * len(component)), LIVE.work / self._values.work)
            )
        cost = time.thread_time() - begun
        self.cpu_seconds += cost
        self._pace.spent(cost)

    def rows(self) -> list[list[str]]:
        """Return rows (label, text, tone) of the table."""
        energy, least, median = (number(size, ",.0f") for size in self.found[:3])
        if not np.isfinite(self.found.energy):
            return []
        if self._predictor is None:
            return [["ESS of U", energy, ""]]
        return [["ESS of U; functions (least, median)", f"{energy}; {least}, {median}", ""]]


def measured_mixing(run: DrawSource, predictor: Predictor | None) -> MixingEss:
    """Return the measures of a finished run's draws, of 20,000 evenly spread ones if there are more.

    They are not known where the work allows neither all draws nor a hundred.

    Parameters
    ----------
    run : DrawSource
    predictor : Predictor or None
        Gives the functions, where there are any; they are taken at up to 40 of its inputs.
    """
    values = _Values(run, predictor, FINISHED.points)
    draws = int(min(FINISHED.draws, FINISHED.work / values.work))
    enough = draws >= min(FINISHED.least_draws, run.store.common(run.alive) * int(run.alive.sum()))
    if not (draws and enough):
        return MixingEss()
    table = values.values(draws)
    return _measured(table)._replace(rhat=_largest_rhat(table[:, :, 1:]))


def _largest_rhat(functions: np.ndarray) -> float:
    """Return the largest R-hat of functions (chains, draws, functions) that is known; nan where none is."""
    each = [diagnostics.rhat(functions[:, :, k]) for k in range(functions.shape[2])]
    return max((one for one in each if not np.isnan(one)), default=float("nan"))

"""Measure the mixing of U, of functions, and of weights in canonical order.

Chains at copies of one network, with other orders and signs of the hidden units, disagree on weights but not on
functions. So R-hat is computed for functions, and for weights with the units of every draw in one order.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import torch

from bnnviz import diagnostics
from bnnviz.engine.evaluation.predictions import DrawTable, Predictor, evenly
from bnnviz.engine.monitor.components import canonical_form
from bnnviz.engine.protocol import AnyRun
from bnnviz.engine.throttle import Throttle
from bnnviz.numerals import number


class MixingEffort(NamedTuple):
    """Limits on the cost of measuring the mixing."""

    points: int
    weights: int
    draws: int
    least_draws: int
    work: float


# The cost of a few draws does not predict that of many.
LIVE, FINISHED = MixingEffort(8, 20, 2000, 25, 1e8), MixingEffort(40, 100, 20_000, 100, 3e9)
_SHARE, _LONGEST_WAIT = 0.01, 10.0  # maximum fraction of the time to measure a live run, and seconds
_CHUNK = 64
_ORDERED = 2000  # maximum draws in canonical order
_ASSIGNMENT = 3e5  # multiply-adds that take as long as the assignment of a layer's units
#: R-hat above which chains disagree, and below which they agree.
BAD_RHAT, GOOD_RHAT = 1.05, 1.01
_AT = " at step "
JUDGED = 50  # minimum draws per chain to judge an R-hat


class MixingEss(NamedTuple):
    """Bulk effective sample sizes, and R-hat in canonical order; nan if unknown."""

    energy: float = float("nan")
    least: float = float("nan")
    median: float = float("nan")
    rhat: float = float("nan")
    canonical_rhat: float = float("nan")


def _tables(
    run: AnyRun, predictor: Predictor | None, effort: MixingEffort
) -> tuple[DrawTable, float, DrawTable, float]:
    """Return U and a network's predictions at a few inputs, and weights in canonical order, each with its cost.

    The cost is in multiply-adds per draw, that of the latter infinite without hidden units.
    """
    target, columns = run.target, evenly(run.target.dim, effort.weights)

    def values(theta: torch.Tensor) -> np.ndarray:
        energy = torch.cat([target.potential(part) for part in torch.split(theta, _CHUNK)]).double().cpu().numpy()
        if predictor is None:
            return energy[:, None]
        functions = predictor.functions(theta, effort.points)
        # For a classification, each input has the probability of each class.
        return np.column_stack([energy, functions[:, evenly(functions.shape[1], effort.points)]])

    def ordered(theta: torch.Tensor) -> np.ndarray:
        form, parts = canonical_form(run), torch.split(theta, _CHUNK)
        return np.concatenate([form(part.double().cpu().numpy())[:, columns] for part in parts])

    rows = max(target.examples, 1) + (0 if predictor is None else effort.points)
    each = [_ASSIGNMENT + layer.outputs**2 * (layer.inputs + layer.outputs) for layer in target.units[:-1]]
    in_order = sum(each) + target.dim if each else np.inf
    return DrawTable(run, values), 2.0 * rows * target.row_work, DrawTable(run, ordered), in_order


def _measured(table: np.ndarray, ordered: np.ndarray | None) -> MixingEss:
    """Return the metrics from (chains, draws, 1 + points), and from weights (chains, draws, weights) in order."""
    energy, *functions = diagnostics.ess_each(table)
    known = [size for size in functions if np.isfinite(size)]
    canonical = float("nan") if ordered is None else _worst_rhat(ordered)
    if not known:
        return MixingEss(energy, canonical_rhat=canonical)
    return MixingEss(energy, float(min(known)), float(np.median(known)), _worst_rhat(table[:, :, 1:]), canonical)


def _worst_rhat(table: np.ndarray) -> float:
    """Return the largest known R-hat of the columns of (chains, draws, columns)."""
    found = [diagnostics.rhat(table[:, :, i]) for i in range(table.shape[2])]
    return max((rhat for rhat in found if not np.isnan(rhat)), default=float("nan"))


class LiveMixing:
    """Measure a live run within a small fraction of its time; the rows state the step."""

    def __init__(self, run: AnyRun, predictor: Predictor | None) -> None:
        self._run = run
        self.found, self._step = MixingEss(), 0
        self._tables = _tables(run, predictor, LIVE)
        self._pace, self._made = Throttle(_SHARE, most=_LONGEST_WAIT), 0

    def take(self, component: np.ndarray) -> None:
        """Measure other draws if it is due; ``component`` (chains, draws) is their first component."""
        run = self._run
        made = int(run.store.made.sum())
        if made == self._made or (not self._pace.due and not run.finished):
            return
        begun, self._made, self._step = time.thread_time(), made, run.steps
        values, work, in_order, order_work = self._tables
        if work <= LIVE.work:
            most = max(LIVE.draws, LIVE.least_draws * len(component))
            ordered = in_order.values(min(most, _ORDERED), LIVE.work / order_work) if order_work <= LIVE.work else None
            self.found = _measured(values.values(most, LIVE.work / work), ordered)
        self._pace.spent(time.thread_time() - begun)

    def rows(self) -> list[list[str]]:
        """Return rows (label, text, tone) of the table."""
        found = self.found
        sizes = {
            "ESS of the energy U": found.energy,
            "ESS of functions (minimum)": found.least,
            "ESS of functions (median)": found.median,
        }
        # Chains that agree in one order of the hidden units agree on functions; the reverse need not hold.
        rhats = {
            "R-hat of functions": (found.rhat, rhat_tone(found.rhat, self._run)),
            "R-hat of weights in one order": (found.canonical_rhat, ""),
        }
        at = stated(self._step, self._run.steps)
        return [
            *([f"{label}{at}", number(size, ",.0f"), ""] for label, size in sizes.items() if np.isfinite(size)),
            *([f"{label}{at}", f"{rhat:.2f}", tone] for label, (rhat, tone) in rhats.items() if not np.isnan(rhat)),
        ]


def stated(step: int, now: int) -> str:
    """Return the step of a metric as an addition to its label; "" for the current step."""
    return "" if step == now else f"{_AT}{step:,}"


def metric(label: str) -> str:
    """Return the metric of a label, without its step."""
    return label.split(_AT)[0]


def rhat_tone(rhat: float, run: AnyRun) -> str:
    """Judge an R-hat; chains of a sampler that does not converge to the target may agree on wrong values."""
    if run.store.common(run.alive) < JUDGED:
        return ""
    return "bad" if rhat > BAD_RHAT else "good" if rhat < GOOD_RHAT and run.sampler.traits.converges else ""


def measured_mixing(run: AnyRun, predictor: Predictor | None, weights: bool = True) -> MixingEss:
    """Return the metrics of the draws, of at most 20,000 evenly thinned; unknown if too expensive.

    Without ``weights``, those of weights in canonical order are left out.
    """
    values, work, ordered, order_work = _tables(run, predictor, FINISHED)
    least = min(FINISHED.least_draws, run.store.common(run.alive) * int(run.alive.sum()))
    draws, in_order = int(min(FINISHED.draws, FINISHED.work / work)), int(min(_ORDERED, FINISHED.work / order_work))
    if not draws or draws < least:
        return MixingEss()
    shown = weights and in_order and in_order >= least
    return _measured(values.values(draws), ordered.values(in_order) if shown else None)

"""Measure the mixing of the draws of a run so far, and the error of their variances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics
from bnnviz.engine.monitor.components import Component
from bnnviz.engine.monitor.identity import says_nothing
from bnnviz.engine.monitor.mixing import rhat_tone, stated
from bnnviz.engine.monitor.move_warnings import of_moves
from bnnviz.engine.protocol import AnyRun
from bnnviz.messages import Message
from bnnviz.numerals import number


class SteinEffort(NamedTuple):
    """Limits on the cost of Stein's identity."""

    work: float = 3e7
    draws: int = 1500
    least_draws: int = 200
    largest_work: float = 1e11
    growth: float = 1.25


EFFORT = SteinEffort()
_FEWEST_DRAWS, _FEW_DRAWS = 20, 400  # minimum draws to show and to judge a variance
_MOST_VARIANCES = 3  # rows of the table, one for each coordinate
_MOST_MOMENTS = 50  # dimensions
_NEAR = 0.1
_WEIGHED = 4000  # maximum weighted draws at events for the table
_GRADIENTS = 512  # at once
_INTERVAL = 2.4  # standard errors: 95% of Student's t, since the error is estimated from eight groups
_LEAST_ERROR = 1e-6  # minimum error of a variance, to avoid zero
_CLEAR, _SMALL, _LARGE = 5.0, 0.02, 0.5  # standard errors, and shares


class Variances:
    """Measure the variances of a run's draws without affecting them."""

    def __init__(self, run: AnyRun) -> None:
        self._run = run
        self.ess = self.rhat = self._tail = self.followed = float("nan")
        self._inflation: diagnostics.VarianceInflation | None = None
        self._clear = self._contradicted = False  # the inflation is significant; the known variances contradict it
        self.remark: Message | None = None  # that the draws are still too narrow, for no fault of the sampler
        self.messages: list[Message] = []  # on clearly wrong variances, and on bad moves
        self._made = -1
        self._moments: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._weighted: list[float] = []
        self._of_moves: list[Message] = []
        self._path: diagnostics.PathMoments | None = None
        self._count = self._tried = self._tried_at = 0

    def expire(self) -> None:
        """Measure again at the next occasion."""
        self._made, self.followed = -1, float("nan")

    def take(self, first: Component, followed: Component) -> None:
        """Measure other draws by their first component and the followed one."""
        made = int(self._run.store.made.sum())
        if made == self._made:
            return
        self._made = made
        self._of_moves = list(of_moves(self._run))
        self.ess, self.rhat = diagnostics.ess(first.values), diagnostics.rhat(first.values)
        self._tail = diagnostics.ess(first.values, "tail")
        if followed.canonical:
            # Switches between canonical forms would look like mixing.
            self.followed = float("nan")
        else:
            self.followed = self.ess if followed.key == first.key else diagnostics.ess(followed.values)
        self._measure()
        self._judge()

    def _measure(self) -> None:
        """Measure the variances, and after a quarter more draws than last time also Stein's identity."""
        run = self._run
        cov, self._count = run.target.cov(), run.store.common(run.alive) * int(run.alive.sum())
        if cov is not None and run.target.dim <= _MOST_MOMENTS and self._count >= _FEWEST_DRAWS:
            moments = diagnostics.moments_with_errors(run.draws.astype(float))
            self._moments = np.diag(moments.cov), np.diag(moments.cov_se), np.diag(cov)
            self._weighted = []
            every = max(1, self._count // _WEIGHED)
            weights = run.event_weights(every)  # that correct the bias of draws at events
            if weights is not None:
                rows, weights = run.draws[:, ::every].reshape(-1, run.target.dim).astype(float), weights.ravel()
                mean = np.average(rows, axis=0, weights=weights)
                self._weighted = np.average((rows - mean) ** 2, axis=0, weights=weights)[:_MOST_VARIANCES].tolist()
            # It would be redundant for draws spread evenly along the path.
            self._path = run.path_moments() if self._weighted else None
        if self._count >= max(_FEW_DRAWS, EFFORT.growth * self._tried):
            self._tried, self._tried_at = self._count, run.steps
            self._inflation = measured_variance_inflation(run)

    def _judge(self) -> None:
        """Compare the variances with the known ones, and otherwise judge them by Stein's identity."""
        off = None if self._moments is None or self._count < _FEW_DRAWS else most_off(*self._moments)
        self.remark, self.messages = None, [*self._of_moves]
        if off is not None:
            name = self._run.target.names()[off.coordinate]
            self.messages.insert(0, Message("live_variance", name=name, ratio=off.ratio))
        if self._inflation is None:
            return
        share, error = self._inflation.share, self._inflation.error
        self._clear = is_clear(share, error)
        # The identity may confuse too wide and too narrow if chains have covered only a part of a curved density. An
        # estimate of 1 within its error, as for draws of one mode of two, does not contradict known variances.
        self._contradicted = off is not None and abs(share) > _INTERVAL * error and (off.ratio > 1) != (share > 0)
        if self._clear and share > 0 and off is None:
            low, high = 100 * (share - _INTERVAL * error), 100 * (share + _INTERVAL * error)
            interval = {} if share > _LARGE else {"low": low, "high": high}
            self.messages.insert(
                0, Message("live_stein" if interval else "live_stein_large", share=100 * share, **interval)
            )
        if self._clear and share <= 0 and not self._contradicted:
            converges = self._run.sampler.traits.converges
            cause = "the chains have not converged" if converges else "the approximation is poor"
            self.remark = Message("live_narrow", percent=max(0.0, 100 * (1 + share)), cause=cause)

    def rows(self) -> list[list[str]]:
        """Return table rows (label, text, tone) for known variances and the variance inflation."""
        rows = [] if self._moments is None else self._known_rows()
        if self._inflation is None or self._contradicted:
            return rows
        ratio, error = 1 + self._inflation.share, self._inflation.error
        tone = "bad" if self._clear else "good" if abs(ratio - 1) + error < _NEAR else ""
        text = f"{ratio:.2f} ± {error:.2f}" if ratio > 0 else "far below 1"
        return [*rows, [f"Variances / true (Stein's identity){stated(self._tried_at, self._run.steps)}", text, tone]]

    def _known_rows(self) -> list[list[str]]:
        ratios, z = _judged(*self._moments)
        # A large but insignificant deviation is neither good nor bad.
        wrong = (np.abs(z) > 5) | ((np.abs(z) > 3) & ((ratios <= 0.7) | (ratios >= 1.4)))
        tones = np.where(wrong, "bad", np.where(np.abs(ratios - 1) < _NEAR, "good", ""))
        tones = np.where(np.isfinite(z) & (self._count >= _FEW_DRAWS), tones, "").tolist()
        if self._run.target.dim > _MOST_VARIANCES:
            worst = int(np.nanargmax(np.abs(z))) if np.isfinite(z).any() else 0
            return [["Variance / truth (worst)", f"{ratios[worst]:.2f}", tones[worst]]]
        names, by = self._run.target.names(), self._run.sampler.traits.weighed_by
        rows = variance_rows(zip(names, *self._moments, tones, strict=True))
        for name, variance in zip(names, self._weighted, strict=False):
            rows.append([f"Weighted variance of {name}, by {by}", f"{variance:.2f}", ""])
        if self._path is not None:
            for name, variance, error in zip(names, self._path.variance, self._path.variance_se, strict=True):
                rows.append([f"Path variance of {name}", with_error(variance, error), ""])
        return rows

    def mixing(self, label: str) -> list[list[str]]:
        """Return rows on the mixing of the first component, called ``label``."""
        if self._made < 0:
            return []
        seconds, gradients = self._run.spent_before
        spent = self._run.seconds - seconds, (self._run.gradients - gradients) / 1e6
        rates = [self.ess / cost if cost > 0 else np.nan for cost in spent]
        texts = [number(rate, ",.0f" if rate >= 100 else ".2g") for rate in rates]
        return [
            [f"R-hat ({label})", number(self.rhat, ".2f"), rhat_tone(self.rhat, self._run)],
            [f"Bulk ESS ({label})", number(self.ess, ",.0f"), ""],
            [f"Tail ESS ({label})", number(self._tail, ",.0f"), ""],
            ["ESS per second", texts[0], ""],
            ["ESS per million gradients", texts[1], ""],
        ]


class Off(NamedTuple):
    """A variance that clearly differs from the known one: its coordinate, and the ratio, also in errors."""

    coordinate: int
    ratio: float
    z: float


def most_off(variance: np.ndarray, error: np.ndarray, true: np.ndarray, errors: float = _CLEAR) -> Off | None:
    """Return the variance (dim,) that differs most clearly from the known ones, or None."""
    ratios, z = _judged(variance, error, true)
    if not np.isfinite(z).any():
        return None
    worst = int(np.nanargmax(np.abs(z)))
    found = Off(worst, float(ratios[worst]), float(z[worst]))
    return None if abs(found.z) < errors or abs(found.ratio - 1) < _SMALL else found


def _judged(variance: np.ndarray, error: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratios of the variances to the known ones, and their logs in standard errors."""
    ratio = variance / true
    with np.errstate(all="ignore"):
        z = np.log(np.maximum(ratio, 1e-12)) / (error / variance)
    # The error may be zero for few draws.
    return ratio, np.where(error > _LEAST_ERROR * variance, z, np.nan)


def is_clear(share: float, error: float, errors: float = _CLEAR) -> bool:
    """Return whether a relative excess of the variances is large and significant."""
    return abs(share) > max(errors * error, _SMALL)


def measured_variance_inflation(
    run: AnyRun, effort: SteinEffort = EFFORT, draws: Tensor | None = None, logs: np.ndarray | None = None
) -> diagnostics.VarianceInflation | None:
    """Return the relative excess of the variances by Stein's identity; None if unknown, or if it takes too long."""
    draws = run.store.view(run.alive) if draws is None else draws
    chains, count, dim = draws.shape
    each = 6 * max(run.target.examples, 1) * run.target.row_work
    if each * effort.least_draws > effort.largest_work or (logs is not None and not np.isfinite(logs).any()):
        return None
    rows = min(max(effort.work / each, effort.least_draws), effort.draws)
    every = max(1, int(-(-chains * count // rows)))
    x = draws[:, ::every]
    flat = x.reshape(-1, dim)
    still = logs is None and bool((x == x[:, :1]).all())
    if not x.numel() or still or says_nothing(run.target, flat):
        return None
    columns = zip(
        *(
            run.sampler.tempered_target(part, run.state) if logs is None else run.target.gradient(part)
            for part in torch.split(flat, _GRADIENTS)
        ),
        strict=True,
    )
    potential, gradient = (torch.cat(column).double().cpu().numpy() for column in columns)
    potential, gradient = potential.reshape(x.shape[:2]), gradient.reshape(x.shape)
    if logs is not None:
        # A draw with non-finite U has no weight and no gradient.
        found = np.isfinite(logs[:, ::every])
        potential, gradient = np.where(found, potential, 0.0), np.where(found[..., None], gradient, 0.0)
    return diagnostics.variance_inflation(draws.double().cpu().numpy(), potential, gradient, every, logs)


def with_error(value: float, error: float) -> str:
    """Format a value with its standard error."""
    return f"{value:.2f} ± {number(error, '.2f')}"


def variance_rows(columns: Iterable[tuple[str, float, float, float, str]]) -> list[list[str]]:
    """Return rows (label, text, tone) of variances and known ones, from name, variance, error, truth and tone."""
    return [
        [f"Variance of {name}; true {true:.3g}", with_error(variance, error), tone]
        for name, variance, error, true, tone in columns
    ]

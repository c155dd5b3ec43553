"""Choose the open settings of a network on a table (network, prior, noise, sampler), and end its run in time."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bnnviz import optional
from bnnviz.data import DataSet
from bnnviz.engine.automatic.plan import CHAINS, MINUTES, SamplerPlan, plan
from bnnviz.engine.evaluation.predictions import Predictor
from bnnviz.engine.monitor.mixing import measured_mixing
from bnnviz.engine.protocol import AnyRun
from bnnviz.engine.run.initialization import make_target
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message
from bnnviz.settings import declared
from bnnviz.specs.run import Spec
from bnnviz.targets import BNN

#: Defaults for open settings of a network on a table.
DEFAULTS: dict[str, Any] = {"noise": "learned", "prior": "learned", "linear_path": True}
_OF_PLAN = ("chains", "warmup", "draws")
#: R-hat and ESS of predictions beyond which more draws would not change the printed digits.
GOOD_RHAT, ENOUGH = 1.01, 1000
_FIRST, _LATER = 0.3, 1.5  # share of the time at the first look, and by how much each is later
_FEWEST = 10  # draws of each chain, without which predictions are not judged
# Shares of the time after which the search for a start and the warm-up end, so that there are draws at its end.
_SEARCH, _WARMUP = 0.3, 0.7
GAUSSIAN, HEAVY, SKEWED, COUNTS = "gaussian", "student_t", "log_normal", "negative_binomial"
_MOST_ROWS, _FEWEST_ROWS = 2000, 60
_PARTS = (0.6, 0.8)  # of the rows: to fit, to learn a scale; the rest is scored
_GAIN = 0.03  # nats per row, plus standard errors, by which another likelihood must be better
_ERRORS = {HEAVY: 2.0, SKEWED: 2.0, COUNTS: 1.0}  # whole numbers are evidence of counts
_NOISE = 0.03  # least share of the variance that boosting leaves: the rest of a closer fit is not the noise
_MOST_COUNT = 300  # median above which counts are nearly normal
_DF = 4.0  # degrees of freedom of the student_t likelihood
_LEAST = 1e-9


@dataclass(frozen=True)
class AutomaticRun:
    """A spec with a chosen sampler, and its plan."""

    spec: Spec
    plan: SamplerPlan
    minutes: float

    def attach(self, run: Run) -> None:
        """Record the choice in a run and limit its time (`Limit`)."""
        run.notes.append(Message("remark", text=self.plan.sentence))
        run.chosen, run.minutes = True, self.minutes
        Limit(run, self.plan.seconds)


def units(rows: int) -> int:
    """Return the number of hidden units for a table with ``rows`` rows."""
    return 20 if rows < 200 else 50


def automatic(
    spec: Spec,
    given: Collection[str],
    minutes: float | None = None,
    target: BNN | None = None,
) -> AutomaticRun:
    """Choose the open settings of a spec; by default for `MINUTES`."""
    minutes = MINUTES if minutes is None else minutes
    if not minutes > 0:
        raise BnnvizError(f"minutes = {minutes:g} must be above 0.", "minutes")
    if target is None:
        spec, target = _filled(spec, given)
    chains = spec.chains if "chains" in given else CHAINS
    found = plan(target, 60 * minutes, chains=chains, device=spec.device, seed=spec.seed)
    if (family := spec.target_settings.get("family", "auto")) != "auto":
        found = replace(found, sentence=f"{found.sentence} The likelihood is {family}.")
    kept = {name: getattr(spec, name) for name in _OF_PLAN if name in given}
    return AutomaticRun(found.applied(spec).replace(**kept), found, minutes)


def is_table(target: Any) -> bool:
    """Return whether a registered target is a network on a table."""
    return set(DEFAULTS) <= set(declared(target))


def _filled(spec: Spec, given: Collection[str]) -> tuple[Spec, BNN]:
    """Return the spec with a network that fits its rows, and its target."""
    chosen = dict(spec.target_settings) | {name: value for name, value in DEFAULTS.items() if name not in given}
    target = make_target(spec.replace(target_settings=chosen).checked())
    if not isinstance(target, BNN):
        raise BnnvizError(
            "A sampler can be selected automatically only for a network on data. Specify a sampler.", "sampler"
        )
    likely = {"family": suggest(target.data_set)} if spec.file is not None else {}
    defaults = {"hidden": str(units(len(target.x)))} | likely
    defaults = {name: value for name, value in defaults.items() if name not in given and chosen.get(name) != value}
    if defaults:
        chosen |= defaults
        target = make_target(spec.replace(target_settings=chosen).checked())
    return spec.replace(target_settings=chosen).checked(), target


class Limit:
    """End a run after some seconds of computing time in any phase, with the draws so far."""

    def __init__(self, run: AnyRun, seconds: float) -> None:
        self._run, self._seconds = run, seconds
        self._next = _FIRST * seconds
        run.minutes = run.minutes or seconds / 60
        run.ends_at = run.device_seconds + seconds
        run.on_work.append(self._check)

    @classmethod
    def resume(cls, run: AnyRun) -> None:
        """Limit a restored run to the rest of its time, if it had a limit."""
        if run.ends_at is not None and not run.finished:
            cls(run, max(run.ends_at - run.device_seconds, 0.0))

    def _check(self) -> None:
        run = self._run
        if run.finished or run.ends_at is None:
            return
        left = run.ends_at - run.device_seconds
        passed = self._seconds - left
        if left <= 0:
            self._end("the time was used up")
        elif run.phase == "start" and passed >= _SEARCH * self._seconds:
            run.notes.append(Message("search_cut", seconds=passed))
            run.end_search()
        elif run.phase in ("tuning", "warm-up") and passed >= _WARMUP * self._seconds:
            run.notes.append(Message("warmup_cut", steps=run.steps))
            run.end_warmup()
        elif passed >= self._next and run.phase == "sampling" and isinstance(run.target, BNN):
            self._next *= _LATER
            if run.store.common(run.alive) < _FEWEST:
                return
            begun = time.thread_time()
            found = measured_mixing(run, Predictor(run.target), weights=False)
            run.ends_at -= time.thread_time() - begun  # a look is part of the time
            if found.rhat <= GOOD_RHAT and found.least >= ENOUGH:
                self._end(f"the predictions have converged (R-hat {found.rhat:.3f}, ESS {found.least:,.0f} at least)")

    def _end(self, reason: str) -> None:
        if not self._run.store.common(self._run.alive):
            self._run.keep_states()
        made = self._run.store.common(self._run.alive)
        self._run.phase = "done"
        self._run.notes.append(Message("ended_early", draws=made, reason=reason))


def suggest(data: DataSet, weights: np.ndarray | None = None) -> str:
    """Return the name of a likelihood, ``auto`` without evidence for one; weighted rows are thinned by weight."""
    x, y = data.x_train, data.y_train
    if weights is not None:
        kept = np.random.default_rng(1).random(len(x)) * weights.max() < weights
        x, y = x[kept], y[kept]
    if data.task != "regression" or len(x) < _FEWEST_ROWS or not optional.has("sklearn"):
        return "auto"
    order = np.random.default_rng(0).permutation(len(x))[:_MOST_ROWS]
    fit, scale, test = np.split(order, [int(part * len(order)) for part in _PARTS])
    if np.mean(np.square(y - _predicted(x, y, fit))[test]) < _NOISE * y[test].var():
        return "auto"
    able = {GAUSSIAN: _gaussian, HEAVY: _heavy}
    if (y > 0).all():
        able[SKEWED] = _skewed
    if (y >= 0).all() and (y == np.round(y)).all() and np.median(y) <= _MOST_COUNT:
        able[COUNTS] = _counts
    found = {name: density(x, y, fit, scale, test) for name, density in able.items()}
    gain = {name: found[name] - found[GAUSSIAN] for name in _ERRORS if name in found}
    best = max(gain, key=lambda name: gain[name].mean())
    needed = _GAIN + _ERRORS[best] * gain[best].std() / np.sqrt(len(test))
    return best if gain[best].mean() > needed else "auto"


def _predicted(x: np.ndarray, y: np.ndarray, fit: np.ndarray, loss: str = "squared_error") -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingRegressor

    leaf = int(np.clip(len(fit) // 20, 3, 20))
    model = HistGradientBoostingRegressor(loss=loss, max_iter=50, min_samples_leaf=leaf, random_state=0)
    return model.fit(x[fit], y[fit]).predict(x)


def _gaussian(x: np.ndarray, y: np.ndarray, fit: np.ndarray, scale: np.ndarray, test: np.ndarray) -> np.ndarray:
    off = y - _predicted(x, y, fit)
    sd = max(off[scale].std(), _LEAST)
    return -0.5 * np.square(off[test] / sd) - np.log(sd * np.sqrt(2 * np.pi))


def _heavy(x: np.ndarray, y: np.ndarray, fit: np.ndarray, scale: np.ndarray, test: np.ndarray) -> np.ndarray:
    from scipy.stats import t

    off = y - _predicted(x, y, fit)
    size = max(t.fit(off[scale], f0=_DF, floc=0.0)[2], _LEAST)
    return t.logpdf(off[test], _DF, scale=size)


def _skewed(x: np.ndarray, y: np.ndarray, fit: np.ndarray, scale: np.ndarray, test: np.ndarray) -> np.ndarray:
    return _gaussian(x, np.log(y), fit, scale, test) - np.log(y[test])


def _counts(x: np.ndarray, y: np.ndarray, fit: np.ndarray, scale: np.ndarray, test: np.ndarray) -> np.ndarray:
    from scipy.stats import nbinom

    mean = np.maximum(_predicted(x, y, fit, "poisson"), _LEAST)
    excess = np.mean((np.square(y - mean) - mean)[scale]) / np.mean(np.square(mean[scale]))
    size = 1 / max(excess, 1e-4)  # nearly Poisson
    return nbinom.logpmf(y[test], size, size / (size + mean[test]))

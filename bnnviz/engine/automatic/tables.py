"""Choose the open settings of a network on a table (network, prior, noise, sampler), and end its run in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from bnnviz.engine.automatic.plan import CHAINS, MINUTES, SamplerPlan, plan
from bnnviz.engine.automatic.suggested_likelihoods import suggest
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


@dataclass(frozen=True)
class AutomaticRun:
    """A spec with a chosen sampler, and its plan."""

    spec: Spec
    plan: SamplerPlan
    minutes: float

    def attach(self, run: Run, clock: Callable[[], float] | None = None) -> None:
        """Record the choice in a run and limit its time (`Limit`)."""
        run.notes.append(Message("remark", text=self.plan.sentence))
        run.minutes = self.minutes
        Limit(run, self.plan.seconds, clock)


def units(rows: int) -> int:
    """Return the number of hidden units for a table with ``rows`` rows."""
    return 20 if rows < 200 else 50


def automatic(
    spec: Spec,
    given: Collection[str],
    minutes: float = MINUTES,
    target: BNN | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> AutomaticRun:
    """Choose the open settings of a spec."""
    if not minutes > 0:
        raise BnnvizError(f"minutes = {minutes:g} must be above 0.", "minutes")
    if target is None:
        spec, target = _filled(spec, given)
    chains = spec.chains if "chains" in given else CHAINS
    found = plan(target, 60 * minutes, chains=chains, device=spec.device, seed=spec.seed, clock=clock)
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


#: R-hat and ESS of predictions beyond which more draws would not change the printed digits.
GOOD_RHAT, ENOUGH = 1.01, 1000
_FIRST, _LATER = 0.3, 1.5  # share of the time at the first look, and by how much each is later
_FEWEST = 10  # draws of each chain, without which predictions are not judged
# Shares of the time after which the search for a start and the warm-up end, so that there are draws at its end.
_SEARCH, _WARMUP = 0.3, 0.7


class Limit:
    """End a run after some seconds in any phase, with the draws so far."""

    def __init__(self, run: AnyRun, seconds: float, clock: Callable[[], float] | None = None) -> None:
        self._run, self._clock = run, clock or (lambda: run.seconds)
        self._begun, self._seconds = self._clock(), seconds
        self._next = _FIRST * seconds
        run.on_work.append(self._check)

    def _check(self) -> None:
        run, passed = self._run, self._clock() - self._begun
        if run.finished:
            return
        if passed >= self._seconds:
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
            found = measured_mixing(run, Predictor(run.target))
            if found.rhat <= GOOD_RHAT and found.least >= ENOUGH:
                self._end(f"the predictions have converged (R-hat {found.rhat:.3f}, ESS {found.least:,.0f} at least)")

    def _end(self, reason: str) -> None:
        if not self._run.store.common(self._run.alive):
            self._run.keep_states()
        made = self._run.store.common(self._run.alive)
        self._run.phase = "done"
        self._run.notes.append(Message("ended_early", draws=made, reason=reason))

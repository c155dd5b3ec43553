"""Choose the open settings of a network on a table: the network, its prior and noise, and the sampler."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from bnnviz.engine.automatic.limit import Limit
from bnnviz.engine.automatic.plan import CHAINS, MINUTES, SamplerPlan, plan
from bnnviz.engine.automatic.suggested_likelihoods import suggest
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

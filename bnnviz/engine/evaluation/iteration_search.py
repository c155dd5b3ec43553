"""Choose the number of iterations of a population of proposals by the validation rows, in a pilot run.

Reference: Huang, Chouzenoux, Elvira and Pesquet 2023, section 4.1, who take a pilot of 70 iterations,
doi:10.1016/j.jfranklin.2023.08.044.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bnnviz import samplers, targets
from bnnviz.engine.drive import drive
from bnnviz.engine.evaluation.metrics import RESAMPLES, measure
from bnnviz.engine.evaluation.prior_search import BY
from bnnviz.engine.recording.warm_start import resolved
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.settings import declared
from bnnviz.specs.run import Spec

MOST = 70
_SLICE_S = 0.2


@dataclass(frozen=True)
class IterationSearch:
    """Result of a search for the number of iterations."""

    spec: Spec
    by: str
    values: tuple[float | None, ...]

    @property
    def iterations(self) -> int:
        """The chosen number."""
        known = {t: value for t, value in enumerate(self.values, 1) if value is not None}
        return (max if self.by == "accuracy" else min)(known, key=known.__getitem__)


def search_iterations(
    spec: Spec, *, most: int = MOST, by: str = "nll", progress: Callable[[float], Any] | None = None
) -> IterationSearch:
    """Search the number of iterations of a population with the best validation score, the first of equal ones.

    One run makes all iterations, without the test rows; the weighted draws of each iteration are scored.
    """
    each = _checked(spec, most, by)
    settings = {**spec.target_settings, "evaluate": "validation"}
    run = Run(resolved(spec.replace(target_settings=settings, draws=most * each, warmup=0).checked()))
    task = run.target.likelihood.task
    if by != "nll" and (by == "accuracy") != (task == "classification"):
        raise BnnvizError(f"A {task} has no {by}; search by nll.", "by")
    drive(run, _SLICE_S, lambda: progress and progress(run.progress))
    values = () if run.phase != "done" else tuple(_value(run, slice(t * each, (t + 1) * each), by) for t in range(most))
    if not any(value is not None for value in values):
        raise BnnvizError(f"The pilot failed: {run.error or 'no figure is finite.'}", "target")
    found = IterationSearch(spec, by, values)
    chosen = spec.replace(draws=each, warmup=each * (found.iterations - 1))
    return IterationSearch(chosen, by, values)


def _checked(spec: Spec, most: int, by: str) -> int:
    """Return the draws per proposal and iteration."""
    kind = samplers.REGISTRY.get(spec.sampler)
    of_each = declared(kind).get("draws_each") if kind.traits.weighted else None
    if of_each is None:
        raise BnnvizError(f"{spec.sampler} has no iterations of a population; choose a sampler that has.", "sampler")
    if "evaluate" not in declared(targets.REGISTRY.get(spec.target)):
        raise BnnvizError(f"The target {spec.target} has no setting evaluate: search on a network on data.", "target")
    if by not in BY:
        raise BnnvizError(f"The search cannot be by {by!r}; choose one of {', '.join(BY)}.", "by")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise BnnvizError(f"most = {most!r} is no number of iterations; give at least 1.", "most")
    return spec.settings.get("draws_each", of_each.default)


def _value(run: Run, part: slice, by: str) -> float | None:
    """Return the metric of the draws of an iteration on the validation rows."""
    draws, logs = run.draws[:, part], run.log_weights[:, part]
    if not math.isfinite(logs.max()):
        return None
    found = measure(run.target, draws, logs, 1 if by == "nll" else RESAMPLES)
    value = found["averaged"]["nll"] if by == "nll" else found["per_draw"][by]["mean"]
    return value if math.isfinite(value) else None

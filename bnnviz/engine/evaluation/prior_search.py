"""Choose the prior's standard deviation by the validation rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bnnviz import targets
from bnnviz.engine.drive import drive
from bnnviz.engine.evaluation.metrics import RESAMPLES, measure
from bnnviz.engine.recording.warm_start import resolved
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.settings import declared
from bnnviz.specs.run import Spec

LOW, HIGH = 0.1, 10.0
TRIES = 12
BY = ("nll", "accuracy", "mse")
_NEAR = 0.05  # log standard deviations closer than this count as equal
_SLICE_S = 0.2
_NEEDED = ("prior_sd", "evaluate")


@dataclass(frozen=True)
class PriorSearch:
    """Result of a search for the prior's standard deviation."""

    spec: Spec
    by: str
    tries: tuple[dict[str, Any], ...]
    low: float
    high: float

    @property
    def prior_sd(self) -> float:
        """The chosen standard deviation."""
        return self.spec.target_settings["prior_sd"]

    def record(self) -> dict[str, Any]:
        """Return the record of the search for a run, as plain JSON."""
        return {
            "prior_sd": self.prior_sd,
            "by": self.by,
            "low": self.low,
            "high": self.high,
            "rows": "validation",
            "tries": list(self.tries),
        }


def search_prior(
    spec: Spec,
    *,
    low: float = LOW,
    high: float = HIGH,
    tries: int = TRIES,
    by: str = "nll",
    progress: Callable[[int, float], Any] | None = None,
) -> PriorSearch:
    """Search the standard deviation of the prior with the best validation score.

    Each try runs the spec with another standard deviation and the same seed, without the test rows. The search is a
    golden section of its logarithm with parabolic steps (``scipy.optimize``, method ``bounded``); the best try is
    chosen.
    """
    from scipy.optimize import minimize_scalar

    _check(spec, low, high, tries, by)
    made: list[dict[str, Any]] = []

    def loss(log_sd: float) -> float:
        made.append(_try(spec, math.exp(log_sd), by, lambda share: progress and progress(len(made), share)))
        value = made[-1]["value"]
        return math.inf if value is None else -value if by == "accuracy" else value

    minimize_scalar(
        loss,
        bounds=(math.log(low), math.log(high)),
        method="bounded",
        options={"maxiter": tries, "xatol": _NEAR},
    )
    known = [one for one in made if one["value"] is not None]
    if not known:
        raise BnnvizError(f"All {len(made)} runs of the search failed; try other settings of the sampler.", "tries")
    best = (max if by == "accuracy" else min)(known, key=lambda one: one["value"])
    chosen = spec.replace(target_settings={**spec.target_settings, "prior_sd": best["prior_sd"]})
    return PriorSearch(chosen, by, tuple(made), low, high)


def _check(spec: Spec, low: float, high: float, tries: int, by: str) -> None:
    settings = declared(targets.REGISTRY.get(spec.target))
    missing = [name for name in _NEEDED if name not in settings]
    if missing:
        raise BnnvizError(
            f"The target {spec.target} has no setting {missing[0]}: search on a network on data.", "target"
        )
    if by not in BY:
        raise BnnvizError(f"The search cannot be by {by!r}; choose one of {', '.join(BY)}.", "by")
    if not 0 < low < high < math.inf:
        raise BnnvizError(f"The range from {low:g} to {high:g} is empty; give 0 < low < high.", "low")
    if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
        raise BnnvizError(f"tries = {tries!r} is no number of runs; give at least 1.", "tries")
    if spec.draws is None:
        raise BnnvizError("A search needs runs that end; set the number of draws.", "draws")


def _try(spec: Spec, prior_sd: float, by: str, progress: Callable[[float], Any]) -> dict[str, Any]:
    """Run the spec with one standard deviation, and score its draws on the validation rows."""
    settings = {**spec.target_settings, "prior_sd": prior_sd, "evaluate": "validation"}
    run = Run(resolved(spec.replace(target_settings=settings).checked()))
    task = run.target.likelihood.task
    if by != "nll" and (by == "accuracy") != (task == "classification"):
        raise BnnvizError(f"A {task} has no {by}; search by nll.", "by")
    drive(run, _SLICE_S, lambda: progress(run.progress))
    value = None
    if run.phase == "done":
        found = measure(run, resamples=1 if by == "nll" else RESAMPLES)
        value = found["averaged"]["nll"] if by == "nll" else found["per_draw"][by]["mean"]
        value = value if math.isfinite(value) else None
    return {"prior_sd": prior_sd, "value": value, "seconds": run.seconds}

"""Choose the options that help a run, as `bnnviz.messages.Remedy`."""

from __future__ import annotations

from typing import Any

from bnnviz import samplers
from bnnviz.engine.protocol import AnyRun
from bnnviz.messages import Remedy
from bnnviz.settings import Integer, declared
from bnnviz.targets import BNN

_TIMES = 4  # factor for draws or time: standard errors halve
_CALM = (0.95, 0.99)  # acceptance rates with short leapfrog steps
DOUBLE = Remedy("use double precision", {"dtype": "float64"})
RESCALE = Remedy("rescale or reparametrise the target")
NAME_BOUNDS = Remedy('declare positive or bounded parameters, as in `parameters={"sigma": bnnviz.positive()}`')


def has(run: AnyRun, name: str) -> bool:
    """Return whether the run's sampler has a setting."""
    return name in declared(type(run.sampler))


def rejects(run: AnyRun) -> bool:
    """Return whether the sampler rejects moves, so that no setting of it biases the draws."""
    return "acceptance_rate" in run.sampler.sample_stats()


def more(run: AnyRun) -> list[Remedy]:
    """Return remedies that increase the number of draws; without options for an unlimited run."""
    if out_of_time(run):
        return [Remedy("allow more time", {"minutes": float(f"{_TIMES * run.minutes:.2g}")})]
    return [Remedy("make more draws", {} if run.spec.draws is None else {"draws": _TIMES * run.spec.draws})]


def out_of_time(run: AnyRun) -> bool:
    """Return whether a time limit ends the run before it has all its draws."""
    return run.minutes is not None and (run.spec.draws is None or run.store.common(run.alive) < run.spec.draws)


def of_sampler(run: AnyRun, text: str, **settings: Any) -> Remedy:
    """Return other settings of the run's sampler."""
    # If a pilot chooses the sampler, settings need its name.
    named = {"sampler": run.spec.sampler} if run.chosen else {}
    return Remedy(text, named | {"settings": settings})


def raised(run: AnyRun, text: str, name: str, times: float = _TIMES) -> Remedy:
    """Return a setting of the run's sampler times a factor, within its bounds."""
    return of_sampler(run, text, **{name: _within(run, name, times * getattr(run.sampler, name))})


def _within(run: AnyRun, name: str, value: float) -> float:
    """Return the valid value of a setting nearest to the given one, with few digits."""
    parameter = declared(type(run.sampler))[name]
    low, high = parameter.bounds or (None, None)
    value = value if low is None else max(value, low)
    value = value if high is None else min(value, high)
    return int(value) if isinstance(parameter, Integer) else float(f"{value:.3g}")


def shorter_steps(run: AnyRun) -> list[Remedy]:
    """Return shorter steps of the sampler; [] if it has no such setting."""
    if getattr(run.sampler, "step_size", None) is not None:
        return [raised(run, "take shorter steps", "step_size", 1 / _TIMES)]
    if not has(run, "target_accept"):
        return []
    accept = next((each for each in _CALM if each > run.sampler.target_accept), _CALM[-1])
    return [of_sampler(run, "take shorter steps", target_accept=accept)]


def reference_sampler(text: str) -> Remedy:
    """Return the sampler that others are compared with."""
    return Remedy(text, {"sampler": max(samplers.REGISTRY, key=lambda cls: cls.traits.reference_rank).registered})


def easier_density(run: AnyRun) -> Remedy:
    """Return how to make a density easier to sample: a narrower prior of a network, else other parameters."""
    if not isinstance(run.target, BNN):
        return RESCALE
    prior_sd = float(f"{0.5 * run.target.prior_precision**-0.5:.3g}")
    if run.own_target:
        return Remedy(f"narrow the network's prior, as in `BNN(..., prior_sd={prior_sd})`")
    return Remedy("narrow the network's prior", {"target_settings": {"prior_sd": prior_sd}})


def deeper_trees(run: AnyRun) -> list[Remedy]:
    """Return trees four times as long; [] if they cannot be."""
    depth = _within(run, "max_treedepth", run.sampler.max_treedepth + 2)
    return [of_sampler(run, "allow deeper trees", max_treedepth=depth)] if depth > run.sampler.max_treedepth else []


def refreshed(run: AnyRun) -> list[Remedy]:
    """Return a higher refresh rate; [] for a sampler without one."""
    if not has(run, "refresh_rate"):
        return []
    text = "refresh velocities more often"
    return [raised(run, text, "refresh_rate") if run.sampler.refresh_rate else Remedy(text)]


def elsewhere(run: AnyRun) -> Remedy:
    """Return other initial positions."""
    if not has(run, "start") or run.sampler.start == "random":
        return Remedy("use other initial positions", {"seed": run.spec.seed + 1})
    return of_sampler(run, "use other initial positions", start="random")


def closer_to_mode(run: AnyRun) -> list[Remedy]:
    """Return what helps an optimiser that has not reached a mode."""
    scale = Remedy("standardise the inputs")
    if out_of_time(run):
        return more(run)
    steps = next((name for name in ("steps", "mode_steps") if has(run, name)), None)
    ways = [] if steps is None else [raised(run, "take more steps", steps)]
    ways += [raised(run, "lower the learning rate", "learning_rate", 0.1)] if has(run, "learning_rate") else []
    return [*ways, scale]


def unbiased(run: AnyRun) -> list[Remedy]:
    """Return what helps if variances are too large."""
    if has(run, "bound") and run.sampler.bound != "grid":
        return [of_sampler(run, "use the grid bound", bound="grid")]
    if rejects(run):
        return more(run)
    return shorter_steps(run) or [reference_sampler("compare with a sampler that rejects moves")]


def more_weighted(run: AnyRun) -> list[Remedy]:
    """Return how an importance sampler gets more draws."""
    each = [raised(run, "make more draws per iteration", "draws_each")] if has(run, "draws_each") else []
    return [*each, Remedy("run more iterations", more(run)[0].options)]

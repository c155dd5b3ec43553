"""Name the options that help a run, as Python takes them (`bnnviz.remedies`)."""

from __future__ import annotations

from typing import Any

from bnnviz import samplers
from bnnviz.engine.protocol import DrawSource
from bnnviz.remedies import option
from bnnviz.settings import Integer, declared

_TIMES = 4  # by which draws or time are raised: standard errors are half as large
_CALM = (0.95, 0.99)  # acceptance rates at which leapfrog steps are short


def more(run: DrawSource) -> str:
    """Return the option that gives more draws, after a blank; "" for a run that goes on until it is stopped."""
    if run.minutes is not None:
        return f" ({option(minutes=float(f'{_TIMES * run.minutes:.2g}'))})"
    return "" if run.spec.draws is None else f" ({option(draws=_TIMES * run.spec.draws)})"


def has(run: DrawSource, name: str) -> bool:
    """Return whether the run's sampler has a setting."""
    return name in declared(type(run.sampler))


def of_sampler(run: DrawSource, **settings: Any) -> str:
    """Return the option that gives the run's sampler other settings, after a blank."""
    # Where a pilot chooses the sampler, settings need its name.
    named = {} if run.minutes is None else {"sampler": run.spec.sampler}
    return f" ({option(**named, settings=settings)})"


def raised(run: DrawSource, name: str, times: float = _TIMES) -> str:
    """Return the option that multiplies a setting of the run's sampler, within its bounds, after a blank."""
    return of_sampler(run, **{name: _within(run, name, times * getattr(run.sampler, name))})


def _within(run: DrawSource, name: str, value: float) -> float:
    """Return the value of a setting that is nearest to the wanted one: whole where it has to be, else of few digits."""
    parameter = declared(type(run.sampler))[name]
    low, high = parameter.bounds or (None, None)
    value = value if low is None else max(value, low)
    value = value if high is None else min(value, high)
    return int(value) if isinstance(parameter, Integer) else float(f"{value:.3g}")


def shorter_step(run: DrawSource) -> str:
    """Return the option that shortens the sampler's steps, after a blank; "" where it has none of these settings."""
    if getattr(run.sampler, "step_size", None) is not None:
        return raised(run, "step_size", 1 / _TIMES)
    if not has(run, "wanted"):
        return ""
    return of_sampler(run, wanted=next((each for each in _CALM if each > run.sampler.wanted), _CALM[-1]))


def reference_sampler() -> str:
    """Return the option that takes the sampler that others are measured against, after a blank."""
    return f" ({option(sampler=max(samplers.REGISTRY, key=lambda cls: cls.traits.reference_rank).registered)})"


def narrower_prior(run: DrawSource) -> str:
    """Return the option that halves the scale of a network's prior, after a blank."""
    settings = {"prior_sd": float(f"{0.5 * run.target.prior_precision**-0.5:.3g}")}
    if run.own_target:
        return f" (`BNN(..., {option(**settings).strip('`')})`)"
    return f" ({option(target_settings=settings)})"


def deeper(run: DrawSource) -> str:
    """Say how trees come to be four times as long; "" where they cannot be."""
    depth = _within(run, "max_depth", run.sampler.max_depth + 2)
    return f"let trees be deeper{of_sampler(run, max_depth=depth)}, or " if depth > run.sampler.max_depth else ""


# --- ways, in words


def refreshed(run: DrawSource) -> str:
    """Say how velocities are refreshed more often, where that is a setting; "" elsewhere."""
    if not has(run, "refresh_rate"):
        return ""
    often = raised(run, "refresh_rate") if run.sampler.refresh_rate else ""
    return f", or refresh velocities more often{often}"


def finite(run: DrawSource) -> str:
    """Say what to do about values that are not finite."""
    shorter = shorter_step(run)
    return f"Take shorter steps{shorter}." if shorter else f"Take double precision ({option(dtype='float64')})."


def way_down(run: DrawSource) -> str:
    """Say what to do where a descent has not come to a mode."""
    if run.minutes is not None:
        return f"allow more time{more(run)}"
    names = [name for name in ("steps", "mode_steps") if has(run, name)]
    ways = [f"take more steps{raised(run, names[0])}"] if names else []
    ways += [f"lower the learning rate{raised(run, 'learning_rate', 0.1)}"] if has(run, "learning_rate") else []
    return ", ".join([*ways, "or scale the inputs"] if ways else ["scale the inputs"])


def rejects(run: DrawSource) -> bool:
    """Return whether the sampler rejects moves, so that no setting of it biases the draws."""
    return "acceptance_rate" in run.sampler.sample_stats()


def unbiased(run: DrawSource) -> str:
    """Say how draws become right whose variances are too large."""
    if has(run, "bound") and run.sampler.bound != "grid":
        return f"; take the grid bound{of_sampler(run, bound='grid')}"
    if rejects(run):
        return f", or the chains have not been everywhere yet: make more draws{more(run)}"
    shorter = shorter_step(run)
    return (
        f"; take a smaller step{shorter}"
        if shorter
        else f"; compare with a sampler that rejects moves{reference_sampler()}"
    )


def more_weighed(run: DrawSource) -> str:
    """Say how an importance sampler gets more draws."""
    each = raised(run, "draws_each") if has(run, "draws_each") else ""
    return f"make more draws an iteration{each}, or more iterations{more(run)}"


def otherwise(run: DrawSource) -> str:
    """Say what helps where the sampler's own sentence offers nothing."""
    if run.sampler.traits.weighted:
        return f"Begin elsewhere{of_sampler(run, start='random')}, or {more_weighed(run)}."
    return f"Widen the bound's margin{raised(run, 'margin')}."

"""Evaluate every sampler at its defaults on published posteriors: errors, ESS, and warnings.

A case is a posterior (`benchmarks.posteriors.catalogue`); a row is a sampler with its default settings, four chains and
a budget of CPU seconds on one thread. Results are classified by `benchmarks.posteriors.verdicts`. A row with a warning
has no goal; any other must be right.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks import budget
from benchmarks.posteriors.catalogue import POSTERIORS, Posterior
from benchmarks.posteriors.verdicts import LEAST_ESS, judge
from benchmarks.rows import Case, Goal, Report, Row
from bnnviz import samplers

INCLUDES = "initial positions, 200 moves of warm-up and sampling, eager"
_DTYPE = "float32"  # the default of a run
_FAMILIES = ("mcmc", "pdmp", "sgmcmc")


def chain_samplers() -> Iterator[type[samplers.Sampler]]:
    """Yield the samplers whose chains follow the target itself: MCMC, PDMPs and stochastic gradients."""
    for cls in samplers.REGISTRY:
        if cls.__module__.split(".")[-2] in _FAMILIES:
            yield cls


def measure(posterior: Posterior, sampler: str, seconds: float, **options: Any) -> Row:
    """Return the row of a sampler on a posterior."""
    found = budget.run(posterior.potential, sampler, seconds, dim=posterior.dim, dtype=_DTYPE, **options)
    warnings, cpu_seconds = found.warnings, found.cpu_seconds
    judged, warned = judge(found.draws, posterior.reference(), posterior.coordinates), bool(warnings)
    few = judged.verdict == "too few"
    goal = None if warned else Goal(">=", LEAST_ESS) if few else Goal("<=", judged.allowed)
    value, unit = (judged.ess, "ESS") if few else (abs(judged.bias), "sd")
    more = {"sampler": sampler, "chains": budget.CHAINS, "device": "cpu", "posterior": posterior.name, **vars(judged)}
    more |= {"warned": warned, "warnings": warnings, "cpu_seconds": cpu_seconds, "includes": INCLUDES}
    more |= {"ess_per_cpu_s": budget.per(judged.ess, cpu_seconds)}
    more |= {"grads_per_cpu_s": budget.per(found.summary.get("grad_evals", 0), cpu_seconds)}
    warned_note = f"warned: {warnings[0]}" if warnings else "not warned"
    error = "" if np.isnan(judged.bias) else f"{judged.verdict}: {judged.of} {judged.bias:+.3f} ± {judged.se:.3f}; "
    note = f"{error}{judged.draws} draws, ESS {judged.ess:.0f}, R-hat {judged.rhat:.3f}; {warned_note}"
    return Row(sampler, value, unit, goal, more | {"note": note})


def _case(name: str, seconds: float, report: Report) -> Iterator[Row]:
    """Evaluate every sampler on one posterior."""
    posterior = POSTERIORS[name]
    with budget.one_thread():
        for cls in chain_samplers():
            report(f"{cls.title} on {name}, for {seconds:g} CPU seconds.")
            yield measure(posterior, cls.registered, seconds)


CASES: dict[str, Case] = {name: partial(_case, name) for name in POSTERIORS}

"""Evaluate every sampler at its defaults on published posteriors: errors, ESS, and warnings.

A case is a posterior (`benchmarks.posteriors.catalogue`); a row is a sampler with its default settings, four chains and
a budget of CPU seconds on one thread. NUTS of numpyro is included, in the same precision. Results are classified by
`benchmarks.posteriors.verdicts`. A row with a warning has no goal; any other must be right.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import util
from typing import Any

import numpy as np

from benchmarks import budget, peers
from benchmarks.posteriors.catalogue import POSTERIORS, Posterior
from benchmarks.posteriors.verdicts import LEAST_ESS, judge
from benchmarks.rows import Case, Goal, Report, Row
from bnnviz import samplers

PEER = "numpyro_nuts"
OURS, THEIRS = (f"initial positions, {moves} moves of warm-up and sampling" for moves in (200, peers.WARMUP))
_DTYPE = "float32"  # the default of a run
_BAD_RHAT, _LOW_ESS = 1.05, 400  # thresholds of warnings for numpyro, as for our samplers
_FAMILIES = ("mcmc", "pdmp", "sgmcmc")


def chain_samplers() -> Iterator[type[samplers.Sampler]]:
    """Yield the samplers whose chains follow the target itself: MCMC, PDMPs and stochastic gradients."""
    for cls in samplers.REGISTRY:
        if cls.__module__.split(".")[-2] in _FAMILIES:
            yield cls


def measure(posterior: Posterior, sampler: str, seconds: float, **options: Any) -> Row:
    """Return the row of a sampler on a posterior."""
    found = budget.run(posterior.potential, sampler, seconds, dim=posterior.dim, dtype=_DTYPE, **options)
    gradients = found.summary.get("grad_evals", 0)
    return _row(posterior, sampler, found.draws, found.warnings, found.cpu_seconds, gradients, f"{OURS}, eager")


def _row(
    posterior: Posterior,
    name: str,
    draws: np.ndarray,
    warnings: list[str],
    cpu_seconds: float,
    gradients: float,
    includes: str,
) -> Row:
    judged, warned = judge(draws, posterior.reference(), posterior.coordinates), bool(warnings)
    few = judged.verdict == "too few"
    goal = None if warned else Goal(">=", LEAST_ESS) if few else Goal("<=", judged.allowed)
    value, unit = (judged.ess, "ESS") if few else (abs(judged.bias), "sd")
    more = {"sampler": name, "chains": budget.CHAINS, "device": "cpu", "posterior": posterior.name, **vars(judged)}
    more |= {"warned": warned, "warnings": warnings, "cpu_seconds": cpu_seconds, "includes": includes}
    more |= {"ess_per_cpu_s": budget.per(judged.ess, cpu_seconds)}
    more |= {"grads_per_cpu_s": budget.per(gradients, cpu_seconds)}
    warned_note = f"warned: {warnings[0]}" if warnings else "not warned"
    error = "" if np.isnan(judged.bias) else f"{judged.verdict}: {judged.of} {judged.bias:+.3f} ± {judged.se:.3f}; "
    note = f"{error}{judged.draws} draws, ESS {judged.ess:.0f}, R-hat {judged.rhat:.3f}; {warned_note}"
    return Row(name, value, unit, goal, more | {"note": note})


def _peer(posterior: Posterior, seconds: float, report: Report) -> Row:
    from benchmarks.posteriors.numpyro_models import flat_potential

    with peers.precision(_DTYPE):
        potential = flat_potential(posterior)
        found = peers.numpyro(potential, posterior.dim, seconds, budget.CHAINS, _DTYPE)
    if found.compiled:
        report(f"numpyro compiled {found.compiled} programs while the clock ran: its row is not comparable.")
    judged = judge(found.draws, posterior.reference(), posterior.coordinates)
    warnings = [f"{found.divergences} divergences."] if found.divergences else []
    warnings += [f"R-hat {judged.rhat:.2f}."] if judged.rhat > _BAD_RHAT else []
    warnings += [f"ESS {judged.ess:.0f}."] if judged.ess < _LOW_ESS else []
    includes = f"{THEIRS}; compilation excluded"
    return _row(posterior, PEER, found.draws, warnings, found.cpu_seconds, found.gradients, includes)


def _case(name: str, seconds: float, report: Report) -> Iterator[Row]:
    """Evaluate every sampler on one posterior."""
    posterior = POSTERIORS[name]
    with budget.one_thread():
        for cls in chain_samplers():
            report(f"{cls.title} on {name}, for {seconds:g} CPU seconds.")
            yield measure(posterior, cls.registered, seconds)
        if util.find_spec("numpyro") is None:
            report("numpyro is not installed, so there is no row of it: pip install '.[bench]'.")
            return
        report(f"NUTS of numpyro on {name}.")
        yield _peer(posterior, seconds, report)


CASES: dict[str, Case] = {name: partial(_case, name) for name in POSTERIORS}

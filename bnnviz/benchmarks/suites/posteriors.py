"""Judge every sampler at its defaults by published posteriors: errors, effective draws, and whether it warned.

A case is a posterior (`bnnviz.benchmarks.posteriors`); a row is a sampler with its default settings, four chains and so
many CPU seconds of one thread, the search for a start, tuning and warm-up included. numpyro's NUTS is in the same table
where it is installed, its compilation included. The rule of right and wrong is that of
`bnnviz.benchmarks.posteriors.verdicts`. A row that warned has no goal; any other has to be right.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import util
from typing import Any

import numpy as np

from bnnviz import optional
from bnnviz.benchmarks import budget
from bnnviz.benchmarks.chains import one_thread
from bnnviz.benchmarks.posteriors import POSTERIORS, Posterior
from bnnviz.benchmarks.posteriors.verdicts import LEAST_ESS, Judgement, judge
from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell
from bnnviz.engine.monitor.mixing import BAD_RHAT
from bnnviz.engine.monitor.run_warnings import ENOUGH

PEER = "numpyro_nuts"


def measure(posterior: Posterior, sampler: str, seconds: float, **options: Any) -> Row:
    """Return the row of a sampler on a posterior."""
    found = budget.run(posterior.potential, sampler, seconds, dim=posterior.dim, **options)
    return _row(posterior, sampler, found.draws, found.warnings, found.cpu_seconds, found.summary.get("grad_evals"))


def _row(
    posterior: Posterior, name: str, draws: np.ndarray, warnings: list[str], cpu_seconds: float, gradients: int | None
) -> Row:
    judged, warned = judge(draws, posterior.reference(), posterior.coordinates), bool(warnings)
    few = judged.verdict == "too few"
    goal = None if warned else Goal(">=", LEAST_ESS) if few else Goal("<=", judged.allowed)
    value, unit = (judged.ess, "ESS") if few else (abs(judged.bias), "sd")
    more = {"sampler": name, "posterior": posterior.name, "dim": posterior.dim, **vars(judged)}
    more |= {"warned": warned, "warnings": warnings, "cpu_seconds": cpu_seconds, "grad_evals": gradients}
    more |= {"ess_per_cpu_second": budget.per(judged.ess, cpu_seconds), "note": _note(judged, warnings)}
    return Row(name, value, unit, goal, more)


def _note(judged: Judgement, warnings: list[str]) -> str:
    said = f"warned: {warnings[0]}" if warnings else "not warned"
    if np.isnan(judged.bias):
        return f"{judged.draws} draws; {said}"
    return (
        f"{judged.verdict}: {judged.of} {judged.bias:+.3f} ± {judged.se:.3f}; {judged.draws} draws,"
        f" ESS {judged.ess:.0f}, R-hat {judged.rhat:.3f}; {said}"
    )


def _peer(posterior: Posterior, seconds: float) -> Row:
    from bnnviz.benchmarks.posteriors import numpyro_nuts

    found = numpyro_nuts.sample(numpyro_nuts.flat_potential(posterior), posterior.dim, seconds)
    row = _row(posterior, PEER, found.draws, [], found.cpu_seconds, found.gradients)
    # What its own summary prints, by the limits that our runs warn at.
    warnings = [f"{found.divergences} divergences."] if found.divergences else []
    warnings += [f"R-hat {row.more['rhat']:.2f}."] if row.more["rhat"] > BAD_RHAT else []
    warnings += [f"ESS {row.more['ess']:.0f}."] if row.more["ess"] < ENOUGH else []
    return _row(posterior, PEER, found.draws, warnings, found.cpu_seconds, found.gradients)


def _case(name: str, seconds: float, tell: Tell) -> Iterator[Row]:
    """Judge every sampler on one posterior."""
    posterior = POSTERIORS[name]
    optional.check("arviz_stats", "Effective draws need")
    with one_thread():
        for cls in budget.chain_samplers():
            tell(f"{cls.title} on {name}, for {seconds:g} CPU seconds.")
            yield measure(posterior, cls.registered, seconds)
        if util.find_spec("numpyro") is None:
            tell("numpyro is not installed, so it is not compared with: pip install 'bnnviz[bench]'.")
            return
        tell(f"numpyro's NUTS on {name}.")
        yield _peer(posterior, seconds)


_CASES: dict[str, Case] = {name: partial(_case, name) for name in POSTERIORS}
SUITE = Suite("posteriors", "Every sampler at its defaults on published posteriors.", _CASES)

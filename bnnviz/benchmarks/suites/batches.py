"""Measure what draws of a process cost with batches of rows: by gradients of one row, and by CPU seconds.

Logistic regression on 9,568 rows, whose moments are known by quadrature. Each plan runs for the same CPU seconds, the
search for the mode and the warm-up included; gradients are counted with the search and without it, as a longer run
makes it up. How far means and spreads are off stands beside every figure: batches under an envelope that is learnt are
right but for the rates above it, under the lines of `bnnviz.samplers.pdmp.bounds.linear_losses` without exception.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from bnnviz import diagnostics, optional, targets
from bnnviz.benchmarks import budget
from bnnviz.benchmarks.chains import one_thread
from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell

ROWS = 9568
SAMPLERS = ("bps", "zigzag")
MODE_STEPS = 300
ALL_ROWS = "all_rows"
_IN_BATCHES = {"control_variates": True, "mode_steps": MODE_STEPS}
#: Settings beside a dense metric, by the names of the plans.
PLANS: dict[str, dict[str, Any]] = {ALL_ROWS: {}} | {
    f"{bound}_{size}": _IN_BATCHES | {"bound": bound, "batch_size": size}
    for bound in ("exact", "grid")
    for size in (1, 10, 100)
}


def _case(sampler: str, seconds: float, tell: Tell) -> Iterator[Row]:
    """Measure a sampler with all rows and with batches."""
    optional.check("arviz_stats", "Effective draws need")
    target = targets.REGISTRY.get("logistic_regression")(rows=ROWS)
    target.cov()  # known from here on: no run pays for the quadrature
    whole: Row | None = None
    with one_thread():
        for plan, settings in PLANS.items():
            tell(f"{sampler}, {plan}, for {seconds:g} CPU seconds.")
            run = budget.run(target, sampler, seconds, settings={"metric": "dense", **settings})
            row = measured(plan, run, target, settings.get("mode_steps", 0) * budget.CHAINS * ROWS, whole)
            whole = row if plan == ALL_ROWS else whole
            yield row


def measured(plan: str, run: budget.BudgetRun, target: targets.Target, search: int, whole: Row | None) -> Row:
    """Return the row of a plan.

    Parameters
    ----------
    plan : str
    run : BudgetRun
    target : Target
        One that knows its moments.
    search : int
        Gradients of one row that the search for the mode takes.
    whole : Row or None
        That of all rows, which a plan with batches is to be better than.
    """
    if run.error or not len(run.draws) or run.draws.shape[1] < 4:
        return Row(plan, math.nan, "1/Mgrad", None, {"note": run.error or "too few draws"})
    draws = run.draws.astype(float)
    ess = float(np.nanmin(diagnostics.ess_each(draws)))
    gradients = run.summary["grad_evals"]
    sd = np.sqrt(np.diag(target.cov()))
    flat = draws.reshape(-1, draws.shape[2])
    off = float(np.abs((flat.mean(0) - target.mean()) / sd).max())
    wide = float(np.abs(flat.std(0) / sd - 1).max())
    each = budget.per(1e6 * ess, gradients - search)
    more = {"ess": ess, "per_million_gradients_with_search": budget.per(1e6 * ess, gradients)}
    more |= {"per_cpu_second": budget.per(ess, run.cpu_seconds), "mean_off": off, "sd_off": wide}
    more |= {"violations": run.summary["violation_share"], "acceptance": run.summary["acceptance"]}
    note = (
        f"{more['per_million_gradients_with_search']:.3g} with the search for the mode; {more['per_cpu_second']:.3g} a"
        f" CPU second; means {off:.2f} sd off ({1 / math.sqrt(ess):.2f} by chance), spreads {100 * wide:.0f} %"
        f" ({100 / math.sqrt(2 * ess):.0f}); {100 * more['violations']:.2g} % of the rates above the envelope"
    )
    goal = None if whole is None else Goal(">=", whole.value)
    return Row(plan, each, "1/Mgrad", goal, more | {"note": note})


_CASES: dict[str, Case] = {sampler: partial(_case, sampler) for sampler in SAMPLERS}
SUITE = Suite("batches", "What draws of a process cost with batches of 9,568 rows.", _CASES)

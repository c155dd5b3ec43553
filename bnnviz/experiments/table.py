r"""Combine measured and printed values of an experiment in one table, and compare them.

The difference is divided by its standard error,

$$z = (\bar x - p) / \sqrt{s^2 / n + s_p^2 / n_p + u^2 / 12},$$

with our mean and standard deviation over n runs, the printed value p and its standard deviation over $n_p$ runs, and
one unit u of the last printed digit. PMCnet prints values of a single run; $n_p = 1$ and $s_p = s$ replace its
unknown error. Values agree if $|z| \le 2$. A difference is untested if we have a single run, if two standard errors
are more than half of the printed value, or if the printed value is at the lower limit of its estimator, where it shows
only that the chain did not mix.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bnnviz.experiments import published
from bnnviz.experiments.published import Printed

if TYPE_CHECKING:
    from bnnviz.experiments.experiment import Experiment
    from bnnviz.experiments.record import Record

#: Labels of the measures in tables and figures.
LABELS: dict[str, str] = {
    "auc": "AUC",
    "auc_weighted": "AUC",
    "precision": "precision",
    "recall": "recall",
    "specificity": "specificity",
    "accuracy": "accuracy",
    "f1": "F1",
    "mse": "test MSE",
    "seconds": "seconds",
    "test_ms": "ms for a test row",
    "ess_per_million": "ESS / 10⁶ gradients",
    "ess_pc1": "ESS of PC1",
    "violation_share": "violations (share)",
    "rmse": "test RMSE",
    "nll": "test NLL",
    "widening_share": "variance off by (share)",
    "ece": "ECE",
    "ece_printed": "ECE",
    "entropy_test": "entropy, test",
    "entropy_foreign": "entropy, out of distribution",
    "auroc": "AUROC",
    "fpr95": "FPR95",
    "accuracy_attacked": "accuracy, attacked",
    "entropy_attacked": "entropy, attacked",
    "ess_function_median": "ESS of functions",
    "function_ess_per_million": "ESS of functions / 10⁶ gradients",
    "rhat_max": "largest R-hat",
    "band_near": "band near the data",
    "band_away": "band away from them",
    "func_hmc_covered": "FuncHMC covers both",
    "hmc_covered": "HMC covers both",
    "func_hmc_median": "FuncHMC, distance",
    "hmc_median": "HMC, distance",
    "first_distance": "distance at first",
    "error_train": "training error",
    "error_validation": "validation error",
    "roughness": "roughness",
    "halfway": "epochs to halfway",
}
AGREE, DIFFER, UNTESTED = "agree", "differ", "untested"
ERRORS = 2.0  # standard errors within which values agree
_WIDEST = 0.5  # maximum of two standard errors, relative to the printed value
#: Printed values up to these are at the lower limit of the paper's estimator.
FLOORS = {"ess_pc1": 3.0}


@dataclass(frozen=True)
class Result:
    """One line of the table: a measure of a case, ours and the paper's."""

    case: str
    measure: str
    ours: float | None = None
    error: float | None = None
    n: int = 0
    paper: float | None = None
    paper_error: float | None = None
    paper_n: int = 0

    @property
    def paired(self) -> bool:
        """Whether both values are known."""
        return self.ours is not None and self.paper is not None

    @property
    def total_error(self) -> float | None:
        """The standard error of the difference; None if ours is unknown."""
        return None if self.error is None else math.hypot(self.error, self.paper_error or 0.0)

    @property
    def z(self) -> float | None:
        """Ours minus the paper's, in standard errors; None if unknown."""
        return (self.ours - self.paper) / self.total_error if self.paired and self.total_error else None

    @property
    def verdict(self) -> str:
        """``"agree"``, ``"differ"`` or ``"untested"``; "" if one of the two values is missing."""
        if not self.paired:
            return ""
        wide = self.z is None or ERRORS * self.total_error > _WIDEST * abs(self.paper)
        if wide or self.paper <= FLOORS.get(self.measure, -math.inf):
            return UNTESTED
        return AGREE if abs(self.z) <= ERRORS else DIFFER


def results(experiment: Experiment, record: Record | None) -> list[Result]:
    """Return the lines of an experiment and its record: all measures of all its cases."""
    return results_of(experiment, [] if record is None else record.rows)


def results_of(experiment: Experiment, measured: Iterable[dict[str, Any]]) -> list[Result]:
    """Return the lines of an experiment and the rows of its cases."""
    rows = {row["case"]: row for row in measured}
    found = []
    for case in experiment.cases:
        row = rows.get(case.name, {})
        for measure in experiment.measures:
            ours = Result(case.name, measure, row.get(measure), row.get(f"{measure}_se"), row.get("runs", 0))
            found.append(_with_printed(ours, case.published.get(measure), experiment))
    return found


def first_edition(experiment: Experiment) -> list[Result]:
    """Return the lines of the first edition of an experiment's table; empty without such an edition."""
    name = f"first/{experiment.name}"
    cases = published.read(name, experiment.data) if published.exists(name) else {}
    return [
        _with_printed(Result(case, measure), printed, experiment)
        for case, values in cases.items()
        for measure, printed in values.items()
    ]


def _with_printed(ours: Result, printed: Printed | None, experiment: Experiment) -> Result:
    """Return a line with the printed value and its standard error."""
    if printed is None:
        return ours
    runs = published.RUNS.get(experiment.name.partition("-")[0], 1)
    sd = printed.sd or 0.0 if runs > 1 else (ours.error or 0.0) * math.sqrt(ours.n)
    error = math.hypot(sd / math.sqrt(runs), printed.unit / math.sqrt(12))
    return replace(ours, paper=printed.value, paper_error=error, paper_n=runs)


def counts(found: Iterable[Result]) -> dict[str, int]:
    """Return the numbers of values that agree, differ and are untested."""
    verdicts = Counter(result.verdict for result in found)
    return {verdict: verdicts[verdict] for verdict in (AGREE, DIFFER, UNTESTED)}


def summary(found: Sequence[Result]) -> str:
    """Summarise the comparison of measured with printed values in a line."""
    if not any(result.ours is not None for result in found):
        return "not measured"
    by_verdict = counts(found)
    if not any(by_verdict.values()):
        return "no printed values"
    return ", ".join(f"{count} {verdict}" for verdict, count in by_verdict.items() if count)

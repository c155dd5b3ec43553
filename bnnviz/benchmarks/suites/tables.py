"""Set default settings on a dozen tables beside other libraries: error, NLL and the coverage of 90 % intervals.

A case is a table, divided five times into 80 % training and 20 % test rows. Ours is the default of the estimators of
`bnnviz.sklearn`, in so many CPU seconds of one thread for each fit, the pilot included; beside it stand ridge or
logistic regression, an ensemble of perceptrons, a random forest and a Gaussian process of scikit-learn, each tuned as
`bnnviz.benchmarks.tables.peers` says. A row is the mean over the splits of a model's NLL, with its standard error.
Of classes coverage is that of the smallest sets with a probability of 90 %, the last class of which is in by chance.
The goals: our NLL is no larger than that of the better one of the linear model and the ensemble, and 90 % intervals
hold 85 to 95 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bnnviz.benchmarks.chains import one_thread
from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell
from bnnviz.benchmarks.tables import TABLES, ours, peers
from bnnviz.benchmarks.tables.catalogue import SPLITS

_MARGIN = 0.05  # of the coverage
_OURS = "bnnviz"
_JUDGES = ("linear", "ensemble")


def _case(name: str, seconds: float, tell: Tell, splits: int = SPLITS) -> Iterator[Row]:
    """Fit every model to the splits of one table."""
    table = TABLES[name]()
    models = list(peers.REGRESSORS if table.task == "regression" else peers.CLASSIFIERS)
    found: dict[str, list[dict[str, float]]] = {model: [] for model in [_OURS, *models]}
    chosen: list[str] = []
    with one_thread():
        for number in range(splits):
            fit, test = table.split(number)
            rows = table.x[fit], table.y[fit], table.x[test], table.y[test]
            tell(f"Split {number + 1} of {splits} of {name}: ours, for {seconds:g} CPU seconds.")
            figures, sentence = ours.predict(table.task, *rows, seconds)
            found[_OURS].append(figures)
            chosen.append(sentence)
            for model in models:
                tell(f"Split {number + 1} of {splits} of {name}: {model}.")
                found[model].append(peers.predict(model, table.task, *rows))
    yield from _rows(name, table.task, found, chosen)


def _rows(name: str, task: str, found: dict[str, list[dict[str, float]]], chosen: list[str]) -> Iterator[Row]:
    best = min(np.mean([one["nll"] for one in found[model]]) for model in _JUDGES)
    word = "RMSE" if task == "regression" else "accuracy"
    for model, each in found.items():
        values = {key: np.array([one[key] for one in each]) for key in each[0]}
        more = {"table": name, "task": task, "se": _error(values["nll"]), word.lower(): values["error"].mean()}
        more |= {f"{word.lower()}_se": _error(values["error"]), "coverage": values["coverage"].mean()}
        note = (
            f"± {more['se']:.3f}; {word} {values['error'].mean():.4g} ± {_error(values['error']):.2g};"
            f" coverage {values['coverage'].mean():.3f} ± {_error(values['coverage']):.3f}"
        )
        if model == _OURS:
            apart = values["nll"] - np.min([[one["nll"] for one in found[judge]] for judge in _JUDGES], axis=0)
            more |= {"chosen": chosen, "apart": apart.mean(), "apart_se": _error(apart)}
            yield Row(f"{model} NLL", values["nll"].mean(), "nats", Goal("<=", best), more | {"note": note})
            off = abs(values["coverage"].mean() - peers.COVERAGE)
            yield Row(f"{model} coverage off 90 %", off, "", Goal("<=", _MARGIN), {"table": name, "note": chosen[0]})
        else:
            yield Row(f"{model} NLL", values["nll"].mean(), "nats", None, more | {"note": note})


def _error(values: np.ndarray) -> float:
    """Return the standard error of a mean over splits; nan of one split."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


_CASES: dict[str, Case] = {name: partial(_case, name) for name in TABLES}
SUITE = Suite("tables", "Default settings on tables, beside other libraries.", _CASES)

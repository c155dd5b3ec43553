"""Fit default settings to a dozen tables, compared with scikit-learn: NLL, error and coverage of 90 % intervals.

A case is a table with five splits into 80 % training and 20 % test rows. Our model is the default estimator of
`bnnviz.sklearn` with a CPU budget per fit. The others are ridge or logistic regression and an ensemble of perceptrons.
All use one thread and standardised inputs; rows compare predictions and also list times. A model without a predictive
distribution gets a normal one with the standard deviation of held-out rows: by cross-validation for the linear model,
on each member's validation rows for the ensemble.

The goals: our NLL is at most that of the better of linear model and ensemble, and 90 % intervals cover 85 to 95 %. For
classes, coverage is that of the smallest sets with a probability of 90 %, whose last class is included at random.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn import datasets as bundled
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, cross_val_predict, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.budget import one_thread
from benchmarks.rows import Case, Goal, Report, Row
from bnnviz import data
from bnnviz.data.dataset import Task
from bnnviz.engine.evaluation.predictive_distribution import log_densities
from bnnviz.sklearn import BNNClassifier, BNNRegressor

COVERAGE = 0.9
SPLITS = 5
_LEVELS = (0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2)
_MARGIN = 0.05  # tolerance of the coverage
#: Work included in the CPU seconds of the others and of ours.
INCLUDES = (
    "tuning by cross-validation, fit and prediction",
    "choice of the sampler by a pilot, compilation in this process, warm-up, sampling and prediction",
)
_OURS = "bnnviz"
_MEMBERS = 5
# A penalty of one on squared weights is a normal prior, with sd one for classes.
_PERCEPTRON = {"hidden_layer_sizes": (50,), "solver": "lbfgs", "alpha": 1.0, "max_iter": 300}
_VALIDATION = 0.15
_DIGITS = 600  # rows used of the digits


# --- tables


class Table(NamedTuple):
    """Rows to predict: inputs (rows, inputs), and numbers or class numbers (rows,)."""

    task: Task
    x: np.ndarray
    y: np.ndarray

    def splits(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the indices of training and test rows of each split, with every class in both."""
        kind = StratifiedShuffleSplit if self.task == "classification" else ShuffleSplit
        return list(kind(n_splits=SPLITS, test_size=0.2, random_state=0).split(self.x, self.y))


def _shipped(name: str) -> Table:
    """Return all rows of a shipped data set."""
    found = data.load(name)
    parts = [(found.x_train, found.y_train), (found.x_test, found.y_test)]
    parts += [(found.x_val, found.y_val)] if found.x_val is not None and len(found.x_val) else []
    x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Table(found.task, x, y)


#: A function for each table, by name.
TABLES: dict[str, Callable[[], Table]] = {
    "boston": lambda: _shipped("boston"),
    "concrete": lambda: _shipped("concrete"),
    "energy": lambda: _shipped("energy"),
    "yacht": lambda: _shipped("yacht"),
    "diabetes": lambda: Table("regression", *bundled.load_diabetes(return_X_y=True)),
    "friedman1": lambda: Table("regression", *bundled.make_friedman1(400, 10, noise=1.0, random_state=0)),
    "friedman2": lambda: Table("regression", *bundled.make_friedman2(400, noise=50.0, random_state=0)),
    "linear": lambda: Table(
        "regression", *bundled.make_regression(300, 15, n_informative=5, noise=20.0, random_state=0)
    ),
    "breast_cancer": lambda: Table("classification", *bundled.load_breast_cancer(return_X_y=True)),
    "wine": lambda: Table("classification", *bundled.load_wine(return_X_y=True)),
    "iris": lambda: Table("classification", *bundled.load_iris(return_X_y=True)),
    "digits": lambda: Table("classification", *(part[:_DIGITS] for part in bundled.load_digits(return_X_y=True))),
    "ionosphere": lambda: _shipped("pmcnet_ionosphere"),
    "moons": lambda: Table("classification", *bundled.make_moons(400, noise=0.25, random_state=0)),
}


# --- models


class Numbers(NamedTuple):
    """Predictions of a model for the rows of a regression.

    Attributes
    ----------
    mean : ndarray, shape (rows,)
    log_density : ndarray, shape (rows,)
        At the observations.
    covered : ndarray of bool, shape (rows,)
        Whether the 90 % interval covers the observation.
    """

    mean: np.ndarray
    log_density: np.ndarray
    covered: np.ndarray


def _normal(mean: np.ndarray, sd: np.ndarray | float, y: np.ndarray) -> Numbers:
    half = norm.ppf(0.5 + COVERAGE / 2) * sd
    return Numbers(mean, norm.logpdf(y, mean, sd), np.abs(y - mean) <= half)


def _ridge(x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray) -> Numbers:
    model = RidgeCV(np.logspace(-3, 3, 13)).fit(x, y)
    left_out = y - cross_val_predict(model, x, y, cv=5)
    return _normal(model.predict(xt), left_out.std(), yt)


def _ensemble(x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray) -> Numbers:
    centre, scale = y.mean(), y.std()
    means, noises = [], []
    for seed in range(_MEMBERS):
        fit, left_out, target, observed = train_test_split(
            x, (y - centre) / scale, test_size=_VALIDATION, random_state=seed
        )
        model = MLPRegressor(random_state=seed, **_PERCEPTRON).fit(fit, target)
        means.append(centre + scale * model.predict(xt))
        noises.append(scale * np.sqrt(np.mean(np.square(observed - model.predict(left_out)))))
    means, noise = np.array(means), np.array(noises)[:, None]
    found = logsumexp(norm.logpdf(yt, means, noise), axis=0) - np.log(_MEMBERS)
    mean = means.mean(0)
    half = norm.ppf(0.5 + COVERAGE / 2) * np.sqrt(means.var(0) + np.mean(np.square(noise)))
    return Numbers(mean, found, np.abs(yt - mean) <= half)


def _logistic(x: np.ndarray, y: np.ndarray, xt: np.ndarray) -> np.ndarray:
    model = LogisticRegressionCV(Cs=8, cv=5, scoring="neg_log_loss", max_iter=2000, random_state=0)
    return model.fit(x, y).predict_proba(xt)


def _class_ensemble(x: np.ndarray, y: np.ndarray, xt: np.ndarray) -> np.ndarray:
    members = [MLPClassifier(random_state=seed, **_PERCEPTRON) for seed in range(_MEMBERS)]
    return np.mean([model.fit(x, y).predict_proba(xt) for model in members], axis=0)


#: The models of each task by name; the better one defines the goal.
REGRESSORS: dict[str, Callable[..., Numbers]] = {
    "linear": _ridge,
    "ensemble": _ensemble,
}
CLASSIFIERS: dict[str, Callable[..., np.ndarray]] = {
    "linear": _logistic,
    "ensemble": _class_ensemble,
}


def figures_of_numbers(found: Numbers, y: np.ndarray) -> dict[str, float]:
    """Return RMSE, NLL and coverage of predicted numbers."""
    return {
        "error": float(np.sqrt(np.mean(np.square(found.mean - y)))),
        "nll": float(-found.log_density.mean()),
        "coverage": float(found.covered.mean()),
    }


def figures_of_classes(probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return accuracy and NLL of predicted classes, and the coverage of 90 % sets.

    A set has the most probable classes, the last one included with the chance that makes its probability 90 %, so that
    calibrated sets cover 90 %.
    """
    own = np.clip(probabilities[np.arange(len(y)), y.astype(int)], 1e-12, 1.0)
    before = np.where(probabilities > own[:, None], probabilities, 0.0).sum(1)
    return {
        "error": float((probabilities.argmax(1) == y).mean()),
        "nll": float(-np.log(own).mean()),
        "coverage": float(np.clip((COVERAGE - before) / own, 0.0, 1.0).mean()),
    }


def predict_by(name: str, table: Table, fit: np.ndarray, test: np.ndarray) -> dict[str, float]:
    """Fit a named model of scikit-learn; return its metrics on the test rows."""
    scaler = StandardScaler().fit(table.x[fit])
    x, xt, y, yt = scaler.transform(table.x[fit]), scaler.transform(table.x[test]), table.y[fit], table.y[test]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # iterations may end before convergence
        if table.task == "regression":
            return figures_of_numbers(REGRESSORS[name](x, y, xt, yt), yt)
        return figures_of_classes(CLASSIFIERS[name](x, y, xt), yt)


def predict_by_default(table: Table, fit: np.ndarray, test: np.ndarray, seconds: float) -> tuple[dict[str, float], str]:
    """Fit our default within the CPU budget; return its metrics on the test rows, and the chosen sampler."""
    model = (BNNRegressor if table.task == "regression" else BNNClassifier)(minutes=seconds / 60, random_state=0)
    model._clock = time.process_time
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains may disagree, as the metrics show
        model.fit(table.x[fit], table.y[fit])
    xt, yt = table.x[test], table.y[test]
    chosen = model.plan_.sampler + ("" if np.isnan(model.rhat_) else f", R-hat of predictions {model.rhat_:.2f}")
    if table.task == "classification":
        return figures_of_classes(model.predict_proba(xt), yt), chosen
    found = model.predict_distribution(xt, _LEVELS)
    low, high = (found.quantiles[level] for level in _LEVELS)
    numbers = Numbers(found.mean, log_densities(model.posterior_, xt, yt), (yt >= low) & (yt <= high))
    return figures_of_numbers(numbers, yt), chosen


# --- rows


def _case(name: str, seconds: float, report: Report) -> Iterator[Row]:
    """Fit every model to the splits of one table."""
    table = TABLES[name]()
    models = list(REGRESSORS if table.task == "regression" else CLASSIFIERS)
    found: dict[str, list[dict[str, float]]] = {model: [] for model in [_OURS, *models]}
    chosen: list[str] = []
    with one_thread(), threadpool_limits(1):
        for number, (fit, test) in enumerate(table.splits(), start=1):
            for model in found:
                report(f"Split {number} of {SPLITS} of {name}: {model}.")
                begun = time.process_time()
                if model == _OURS:
                    figures, choice = predict_by_default(table, fit, test, seconds)
                    chosen.append(choice)
                else:
                    figures = predict_by(model, table, fit, test)
                found[model].append(figures | {"cpu_seconds": time.process_time() - begun})
    yield from rows(name, table.task, found, chosen)


def rows(name: str, task: str, found: dict[str, list[dict[str, float]]], chosen: list[str]) -> Iterator[Row]:
    """Yield the mean NLL of each model over the splits, and the deviation of our coverage."""
    nll = {model: np.array([one["nll"] for one in each]) for model, each in found.items()}
    peers = [model for model in found if model != _OURS]
    best = min(peers, key=lambda model: nll[model].mean())
    word = "rmse" if task == "regression" else "accuracy"
    for model, each in found.items():
        values = {key: np.array([one[key] for one in each]) for key in each[0]}
        more = {"table": name, "task": task, "device": "cpu", "se": _error(values["nll"])}
        more |= {word: values["error"].mean(), f"{word}_se": _error(values["error"])}
        more |= {"coverage": values["coverage"].mean(), "cpu_seconds": values["cpu_seconds"].mean()}
        more["includes"] = INCLUDES[model == _OURS]
        more["note"] = f"± {more['se']:.3f}; {word} {more[word]:.4g}; coverage {more['coverage']:.3f}"
        goal = None
        if model == _OURS:
            goal = Goal("<=", nll[best].mean())
            apart = values["nll"] - np.minimum(*(nll[peer] for peer in peers))
            more |= {"peer": best, "chosen": chosen, "apart": apart.mean(), "apart_se": _error(apart)}
        yield Row(f"{model} NLL", values["nll"].mean(), "nats", goal, more)
        if model == _OURS:
            off = abs(values["coverage"].mean() - COVERAGE)
            yield Row(f"{model} coverage off 90 %", off, "", Goal("<=", _MARGIN), {"table": name, "note": chosen[0]})


def _error(values: np.ndarray) -> float:
    """Return the standard error of a mean over splits; NaN for one split."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


CASES: dict[str, Case] = {name: partial(_case, name) for name in TABLES}

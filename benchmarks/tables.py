"""Fit default settings to fourteen tables, compared with other models: NLL, CRPS and coverage of 90% intervals.

A case is a table with five splits. Our model is the default estimator of `bnnviz.sklearn` with a CPU budget per fit.
The others are ridge or logistic regression, boosting (of quantiles for numbers), a Gaussian process, an ensemble of
five perceptrons and NGBoost. NGBoost is left out unless it is installed; its package excludes recent versions of
scikit-learn, so install it with ``pip install --no-deps ngboost lifelines autograd autograd-gamma formulaic
interface-meta``. All use one thread, standardised inputs and imputed missing cells; NGBoost gets the
family of the target (Poisson, log-normal), which our model has to select. A model without a predictive distribution
gets a normal one with the standard deviation of held-out rows.

CRPS is twice the mean pinball loss at 39 levels; for classes it is the Brier score. Densities of counts are the
probabilities of unit intervals. Quantile boosting defines no density. The goals: NLL and CRPS are at most one standard
error (of the difference over the splits) above the best, and 90% intervals cover 85 to 95%. For classes, coverage is
that of the smallest sets with a probability of 90%, whose last class is included at random.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm, spearmanr
from sklearn import datasets as bundled
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, cross_val_predict, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.budget import one_thread
from benchmarks.rows import Case, Goal, Report, Row
from bnnviz import data
from bnnviz.data.dataset import Task
from bnnviz.engine.evaluation.baselines import baselines
from bnnviz.engine.monitor.verdict import LEVELS as LEVELS_OF_VERDICT
from bnnviz.sklearn import BNNClassifier, BNNRegressor

COVERAGE = 0.9
SPLITS = 5
#: Fits of the case ``verdicts`` to each table; minutes are those of the command by default.
RUNS: dict[str, dict[str, Any]] = {
    "short": {"minutes": 0.01},
    "default": {},
    "SGHMC": {"sampler": "sghmc", "draws": 100, "warmup": 100},
}
LEVELS = np.linspace(0.025, 0.975, 39)
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
_BOOSTED = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
_LEAST = 1e-12


# --- tables

HeldOut = Literal["random", "gap", "beyond"]


class Table(NamedTuple):
    """Rows to predict: inputs (rows, inputs), and numbers or class numbers (rows,).

    With ``gap`` the middle third of an input is predicted, with ``beyond`` its outer sixths; each split uses another
    input. Otherwise 20% of the rows are predicted.
    """

    task: Task
    x: np.ndarray
    y: np.ndarray
    held_out: HeldOut = "random"
    family: str = "Normal"

    def splits(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the indices of training and test rows of each split, with every class in both."""
        if self.held_out == "random":
            kind = StratifiedShuffleSplit if self.task == "classification" else ShuffleSplit
            return list(kind(n_splits=SPLITS, test_size=0.2, random_state=0).split(self.x, self.y))
        rows = len(self.x)
        third, sixth = rows // 3, rows // 6
        test = slice(third, rows - third) if self.held_out == "gap" else np.r_[:sixth, rows - sixth : rows]
        columns = np.argsort([-len(np.unique(column)) for column in self.x.T], kind="stable")[:SPLITS]
        orders = [np.argsort(self.x[:, column], kind="stable") for column in columns]
        return [(np.delete(order, test), order[test]) for order in orders]


def _shipped(name: str, held_out: HeldOut = "random") -> Table:
    """Return all rows of a shipped data set."""
    found = data.load(name)
    parts = [(found.x_train, found.y_train), (found.x_test, found.y_test)]
    parts += [(found.x_val, found.y_val)] if found.x_val is not None and len(found.x_val) else []
    x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Table(found.task, x, y, held_out)


def _drawn(family: str) -> Table:
    """Return 400 rows whose target has the given family, with a mean that depends on three of five inputs."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 5))
    signal = 1.0 + np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2]
    draw = {
        "Poisson": lambda: rng.poisson(np.exp(signal)),
        "NegativeBinomial": lambda: rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(1.0 + signal))),
        "LogNormal": lambda: np.exp(signal + 0.5 * rng.standard_normal(400)),
    }
    return Table("regression", x, draw[family]().astype(float), family=family)


def _missing() -> Table:
    """Return the concrete table without 10% of its cells."""
    table = _shipped("concrete")
    gone = np.random.default_rng(0).random(table.x.shape) < 0.1
    return table._replace(x=np.where(gone, np.nan, table.x))


#: A function for each table, by name.
TABLES: dict[str, Callable[[], Table]] = {
    "concrete": lambda: _shipped("concrete"),
    "energy": lambda: _shipped("energy"),
    "yacht": lambda: _shipped("yacht"),
    "diabetes": lambda: Table("regression", *bundled.load_diabetes(return_X_y=True)),
    "friedman1": lambda: Table("regression", *bundled.make_friedman1(400, 10, noise=1.0, random_state=0)),
    "concrete_gap": lambda: _shipped("concrete", "gap"),
    "yacht_beyond": lambda: _shipped("yacht", "beyond"),
    "counts": lambda: _drawn("Poisson"),
    "overdispersed_counts": lambda: _drawn("NegativeBinomial"),
    "skewed": lambda: _drawn("LogNormal"),
    "missing": _missing,
    "breast_cancer": lambda: Table("classification", *bundled.load_breast_cancer(return_X_y=True)),
    "ionosphere": lambda: _shipped("pmcnet_ionosphere"),
    "moons": lambda: Table("classification", *bundled.make_moons(400, noise=0.25, random_state=0)),
}


# --- models


class Numbers(NamedTuple):
    """Predictions of a model for the rows of a regression.

    Attributes
    ----------
    mean : ndarray, shape (rows,)
    quantiles : ndarray, shape (levels, rows)
        At `LEVELS`.
    log_density : ndarray, shape (rows,)
        At the observations; NaN without a density.
    """

    mean: np.ndarray
    quantiles: np.ndarray
    log_density: np.ndarray


def _of_law(law: Any, y: np.ndarray, counts: bool) -> Numbers:
    """Return the predictions of a distribution of SciPy for each row."""
    if hasattr(law.dist, "pmf"):
        density = law.logpmf(y)
    elif counts:
        density = np.log(np.maximum(law.cdf(y + 0.5) - law.cdf(y - 0.5), _LEAST))
    else:
        density = law.logpdf(y)
    return Numbers(law.mean(), law.ppf(LEVELS[:, None]), density)


def _ridge(x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray, family: str) -> Numbers:
    model = RidgeCV(np.logspace(-3, 3, 13)).fit(x, y)
    left_out = y - cross_val_predict(model, x, y, cv=5)
    return _of_law(norm(model.predict(xt), left_out.std()), yt, _counted(family))


def _boosting(x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray, family: str) -> Numbers:
    models = [HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0) for level in _BOOSTED]
    found = np.sort([model.fit(x, y).predict(xt) for model in models], axis=0)
    quantiles = np.array([np.interp(LEVELS, _BOOSTED, row) for row in found.T]).T
    return Numbers(quantiles.mean(0), quantiles, np.full(len(yt), np.nan))


def _gaussian_process(x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray, family: str) -> Numbers:
    kernel = ConstantKernel() * RBF(np.ones(x.shape[1]), (0.05, 1e4)) + WhiteKernel(0.1, (1e-6, 10.0))
    mean, sd = GaussianProcessRegressor(kernel, normalize_y=True).fit(x, y).predict(xt, return_std=True)
    return _of_law(norm(mean, sd), yt, _counted(family))


def _ensemble(x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray, family: str) -> Numbers:
    centre, scale = y.mean(), y.std()
    found = []
    for seed in range(_MEMBERS):
        fit, left_out, target, observed = train_test_split(
            x, (y - centre) / scale, test_size=_VALIDATION, random_state=seed
        )
        model = MLPRegressor(random_state=seed, **_PERCEPTRON).fit(fit, target)
        noise = scale * np.sqrt(np.mean(np.square(observed - model.predict(left_out))))
        found.append(_of_law(norm(centre + scale * model.predict(xt), noise), yt, _counted(family)))
    mean, quantiles, log_density = (np.array(part) for part in zip(*found, strict=True))
    quantiles = np.quantile(quantiles.reshape(-1, len(yt)), LEVELS, axis=0)
    return Numbers(mean.mean(0), quantiles, np.log(np.exp(log_density).mean(0)))


def _ngboost(x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray, family: str) -> Numbers:
    from ngboost import NGBRegressor, distns

    family = {"NegativeBinomial": "Poisson"}.get(family, family)
    model = NGBRegressor(Dist=getattr(distns, family), verbose=False, random_state=0)
    law = model.fit(x, y).pred_dist(xt).dist
    return _of_law(law, yt, _counted(family))


def _counted(family: str) -> bool:
    return family in ("Poisson", "NegativeBinomial")


def _ngboost_classes(x: np.ndarray, y: np.ndarray, xt: np.ndarray) -> np.ndarray:
    from ngboost import NGBClassifier

    return NGBClassifier(verbose=False, random_state=0).fit(x, y.astype(int)).predict_proba(xt)


def _probabilities(*members: BaseEstimator) -> Callable[..., np.ndarray]:
    """Return a model that averages the class probabilities of its members."""
    return lambda x, y, xt: np.mean([clone(member).fit(x, y).predict_proba(xt) for member in members], axis=0)


#: The models of each task by name.
REGRESSORS: dict[str, Callable[..., Numbers]] = {
    "linear": _ridge,
    "boosting": _boosting,
    "gaussian process": _gaussian_process,
    "ensemble": _ensemble,
    "ngboost": _ngboost,
}
CLASSIFIERS: dict[str, Callable[..., np.ndarray]] = {
    "linear": _probabilities(LogisticRegressionCV(Cs=8, cv=5, scoring="neg_log_loss", max_iter=2000, random_state=0)),
    "boosting": _probabilities(HistGradientBoostingClassifier(random_state=0)),
    "gaussian process": _probabilities(GaussianProcessClassifier(ConstantKernel() * RBF(1.0, (0.05, 1e4)))),
    "ensemble": _probabilities(*(MLPClassifier(random_state=seed, **_PERCEPTRON) for seed in range(_MEMBERS))),
    "ngboost": _ngboost_classes,
}


if find_spec("ngboost") is None:
    del REGRESSORS["ngboost"], CLASSIFIERS["ngboost"]


def figures_of_numbers(found: Numbers, y: np.ndarray) -> dict[str, float]:
    """Return RMSE, NLL, CRPS and coverage of predicted numbers.

    An observation that equals several quantiles, like a count, is between them at random, so that calibrated intervals
    cover 90%.
    """
    off = y - found.quantiles
    below, above = (off > 0).sum(0), (off >= 0).sum(0)
    low, high = ((0.5 + side * COVERAGE / 2) * (len(LEVELS) + 1) for side in (-1, 1))
    shared = np.clip(np.minimum(above + 0.5, high) - np.maximum(below + 0.5, low), 0, None)
    inside = np.where(above > below, shared / np.maximum(above - below, 1), (low < below + 0.5) & (below + 0.5 < high))
    return {
        "error": float(np.sqrt(np.mean(np.square(found.mean - y)))),
        "nll": float(-found.log_density.mean()),
        "crps": float(2 * np.maximum(LEVELS[:, None] * off, (LEVELS[:, None] - 1) * off).mean()),
        "coverage": float(inside.mean()),
    }


def figures_of_classes(probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return accuracy, NLL and Brier score of predicted classes, and the coverage of 90% sets.

    A set has the most probable classes, the last one included with the chance that makes its probability 90%, so that
    calibrated sets cover 90%.
    """
    labels = y.astype(int)
    own = np.clip(probabilities[np.arange(len(y)), labels], _LEAST, 1.0)
    before = np.where(probabilities > own[:, None], probabilities, 0.0).sum(1)
    return {
        "error": float((probabilities.argmax(1) == y).mean()),
        "nll": float(-np.log(own).mean()),
        "crps": float(np.square(probabilities - np.eye(probabilities.shape[1])[labels]).sum(1).mean()),
        "coverage": float(np.clip((COVERAGE - before) / own, 0.0, 1.0).mean()),
    }


def predict_by(name: str, table: Table, fit: np.ndarray, test: np.ndarray) -> dict[str, float]:
    """Fit a named model; return its metrics on the test rows."""
    transformer = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()).fit(table.x[fit])
    x, xt, y, yt = (
        transformer.transform(table.x[fit]),
        transformer.transform(table.x[test]),
        table.y[fit],
        table.y[test],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # iterations may end before convergence
        if table.task == "regression":
            return figures_of_numbers(REGRESSORS[name](x, y, xt, yt, table.family), yt)
        return figures_of_classes(CLASSIFIERS[name](x, y, xt), yt)


def predict_by_default(table: Table, fit: np.ndarray, test: np.ndarray, seconds: float) -> tuple[dict[str, float], str]:
    """Fit our default within the CPU budget; return its metrics on the test rows, and the chosen sampler."""
    model = (BNNRegressor if table.task == "regression" else BNNClassifier)(minutes=seconds / 60, random_state=0)
    rows = pd.DataFrame(table.x, columns=[f"x{k}" for k in range(table.x.shape[1])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains may disagree, as the metrics show
        model.fit(rows.iloc[fit], table.y[fit])
    xt, yt = rows.iloc[test], table.y[test]
    chosen = model.plan_.sampler + ("" if np.isnan(model.rhat_) else f", R-hat of predictions {model.rhat_:.2f}")
    if table.task == "classification":
        return figures_of_classes(model.predict_proba(xt), yt), chosen
    found = model.predict_distribution(xt, tuple(LEVELS))
    quantiles = np.array([found.quantiles[level] for level in LEVELS])
    return figures_of_numbers(Numbers(found.mean, quantiles, model.log_prob(xt, yt)), yt), chosen


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
    """Yield the mean scores of each model over the splits, and the deviation of our coverage."""
    columns = {model: {key: np.array([one[key] for one in each]) for key in each[0]} for model, each in found.items()}
    more = {"table": name, "task": task, "device": "cpu"}
    for model, values in columns.items():
        of = more | {"includes": INCLUDES[model == _OURS]} | {f"{key}_of_splits": list(values[key]) for key in values}
        for score, unit in (("nll", "nats"), ("crps", "")):
            goal = _goal(score, columns) if model == _OURS else None
            note = f"± {_error(values[score]):.2g}; coverage {values['coverage'].mean():.3f}"
            note += f"; {values['cpu_seconds'].mean():.0f} CPU s"
            title = f"{model} {'Brier score' if score == 'crps' and task == 'classification' else score.upper()}"
            yield Row(title, values[score].mean(), unit, goal, of | {"note": note})
    off = abs(columns[_OURS]["coverage"].mean() - COVERAGE)
    note = "; ".join(chosen)
    yield Row(f"{_OURS} coverage off 90%", off, "", Goal("<=", _MARGIN), more | {"chosen": chosen, "note": note})


def _goal(score: str, columns: dict[str, dict[str, np.ndarray]]) -> Goal:
    """Return the score of the best other model plus one standard error of our difference to it."""
    means = {model: values[score].mean() for model, values in columns.items() if model != _OURS}
    best = min((model for model in means if not np.isnan(means[model])), key=means.__getitem__)
    return Goal("<=", means[best] + np.nan_to_num(_error(columns[_OURS][score] - columns[best][score])))


def _error(values: np.ndarray) -> float:
    """Return the standard error of a mean over splits; NaN for one split."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _verdicts(seconds: float, report: Report) -> Iterator[Row]:
    """Correlate the score of the verdict, on held-out rows, with the error on test rows, relative to a simple model."""
    found = []
    with one_thread(), threadpool_limits(1):
        for name, make in TABLES.items():
            table = make()
            fit, test = table.splits()[0]
            for label, given in RUNS.items():
                report(f"{name}, {label}.")
                judged = _judged(table, fit, test, given | {"minutes": given.get("minutes", seconds / 60)})
                found.append((name, label, *judged))
                report("{}; ratio {:.2f}, on test rows {:.2f}.".format(LEVELS_OF_VERDICT[judged[0]], *judged[1:]))
    levels, scores, errors = zip(*(each[2:] for each in found), strict=True)
    for metric, ranks, goal in (("score", scores, Goal(">=", 0.8)), ("level", levels, None)):
        correlation = float(spearmanr(ranks, errors).statistic)
        yield Row(f"rank correlation of the verdict's {metric} and error", correlation, "", goal, {"runs": found})


def _judged(table: Table, fit: np.ndarray, test: np.ndarray, given: dict[str, Any]) -> tuple[int, float, float]:
    """Return level and score of the verdict, and the error on test rows relative to that of the best simple model."""
    x, y = SimpleImputer(add_indicator=True).fit_transform(table.x), table.y
    classes = table.task == "classification"
    model = (BNNClassifier if classes else BNNRegressor)(validation_fraction=0.2, random_state=0, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x[fit], y[fit])
    rows = {"x_train": x[fit], "y_train": y[fit], "x_test": x[test], "y_test": y[test]}
    names = tuple(map(str, np.unique(y))) if classes else ()
    simple = baselines(data.DataSet(name="table", title="", doc="", task=table.task, class_names=names, **rows))
    if classes:
        ours = figures_of_classes(model.predict_proba(x[test]), y[test])["nll"]
    else:
        predicted = model.predict_distribution(x[test], tuple(LEVELS))
        quantiles = np.array([predicted.quantiles[level] for level in LEVELS])
        ours = figures_of_numbers(Numbers(predicted.mean, quantiles, np.zeros(len(test))), y[test])["crps"]
    best = min(float(each.scores.mean()) for each in simple.values())
    verdict = model.verdict_
    return LEVELS_OF_VERDICT.index(verdict.code), verdict.values["ratio"], ours / best


CASES: dict[str, Case] = {name: partial(_case, name) for name in TABLES} | {"verdicts": _verdicts}

"""Score simple models on the held-out rows of a table (the mean, a linear model, boosting), and compare a network."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from bnnviz import optional
from bnnviz.data import DataSet
from bnnviz.diagnostics import number_metrics
from bnnviz.diagnostics.predictive.metrics import Figures

MEAN, LINEAR, BOOSTING = "mean", "linear model", "boosting"
_MOST_ROWS, _MOST_INPUTS = 5000, 200  # maximum training rows, and inputs for boosting
_LEFT_OUT = 0.2  # fraction of the training rows to estimate a model's error
_FEWEST = 10
_PENALTIES = np.logspace(-3, 3, 7)
_LEAST = 1e-6


def compared(scores: np.ndarray | None, data: DataSet) -> dict[str, Any]:
    """Return the metrics of simple models (``baselines``), and the ratio to the best of them (``relative_score``).

    ``scores`` (rows,) are those of a network at the held-out rows. The ratio of the mean scores has the standard error
    of the paired differences between rows.
    """
    found = baselines(data)
    result: dict[str, Any] = {"baselines": {name: each.values for name, each in found.items()}}
    means = {name: mean for name, each in found.items() if (mean := float(each.scores.mean())) > 0}
    if scores is None or len(scores) < 2 or not means:
        return result
    best = min(means, key=means.__getitem__)
    ratio = float(scores.mean()) / means[best]
    error = float((scores - ratio * found[best].scores).std(ddof=1)) / (means[best] * np.sqrt(len(scores)))
    return result | {"relative_score": {"model": best, "ratio": ratio, "se": error}}


@lru_cache(maxsize=16)
def baselines(data: DataSet) -> dict[str, Figures]:
    """Return ``nll`` on the network's scale and ``crps`` in the target's unit, or ``accuracy``, per baseline model.

    Regressions are normal around a model's prediction with the sd of its errors on rows that were left out. Empty
    without enough rows or scikit-learn, and for several outputs.
    """
    (x, y), (x_test, y_test) = data.scaled("train"), data.scaled("test")
    if len(x) < _FEWEST or not len(x_test) or y.ndim > 1 or not optional.has("sklearn"):
        return {}
    order = np.random.default_rng(0).permutation(len(x))[:_MOST_ROWS]
    count = max(1, int(_LEFT_OUT * len(order)))
    parts = x[order[count:]], y[order[count:]], x[order[:count]], y[order[:count]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of iterations that end before convergence
        if data.task == "classification":
            return _classes(data.classes, *parts, x_test, y_test.astype(int))
        return _numbers(*parts, x_test, y_test, data.standardiser.y_scale)


def _numbers(
    x: np.ndarray,
    y: np.ndarray,
    x_left: np.ndarray,
    y_left: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    unit: float,
) -> dict[str, Figures]:
    from sklearn.dummy import DummyRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import RidgeCV

    models = {MEAN: DummyRegressor(), LINEAR: RidgeCV(_PENALTIES)}
    if x.shape[1] <= _MOST_INPUTS:
        models[BOOSTING] = HistGradientBoostingRegressor(min_samples_leaf=_leaf(len(x)), random_state=0)
    found = {}
    for name, model in models.items():
        model.fit(x, y)
        sd = max(float(np.sqrt(np.mean(np.square(y_left - model.predict(x_left))))), _LEAST)
        values, _, scores = number_metrics(model.predict(x_test)[None], np.array([sd]), y_test)
        kept = {"nll": values["nll"], "crps": unit * values["crps"], "rmse": unit * values["rmse"]}
        found[name] = Figures(kept, {}, unit * scores)
    return found


def _classes(
    classes: int,
    x: np.ndarray,
    y: np.ndarray,
    x_left: np.ndarray,
    y_left: np.ndarray,
    x_test: np.ndarray,
    labels: np.ndarray,
) -> dict[str, Figures]:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    x, y = np.concatenate([x, x_left]), np.concatenate([y, y_left])
    if len(np.unique(y)) < 2:
        return {}
    models = {MEAN: DummyClassifier(strategy="prior"), LINEAR: LogisticRegression(max_iter=300)}
    if x.shape[1] <= _MOST_INPUTS:
        trees = int(np.clip(150 // classes, 10, 50))  # of each class, so that many classes take no longer
        models[BOOSTING] = HistGradientBoostingClassifier(
            min_samples_leaf=_leaf(len(x)), max_iter=trees, early_stopping=False, random_state=0
        )
    found = {}
    for name, model in models.items():
        model.fit(x, y)
        probabilities = np.full((len(x_test), classes), _LEAST)
        probabilities[:, model.classes_.astype(int)] += model.predict_proba(x_test)
        probabilities /= probabilities.sum(1, keepdims=True)
        scores = -np.log(probabilities[np.arange(len(labels)), labels])
        right = float((probabilities.argmax(1) == labels).mean())
        found[name] = Figures({"nll": float(scores.mean()), "accuracy": right}, {}, scores)
    return found


def _leaf(rows: int) -> int:
    """Return the minimum rows of a leaf, so that few rows can be split."""
    return int(np.clip(rows // 20, 3, 20))

"""Predict a table by models of scikit-learn, each as its own documentation would have it.

Where a model has no law of an observation, it is normal with the sd that rows which were left out show: by
cross-validation for the linear model, out of the bag for the forest, on each member's validation rows for the ensemble.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from bnnviz.data.dataset import Task

COVERAGE = 0.9
_MEMBERS = 5
# A penalty of one on squared weights is a normal prior, of sd one where there are classes.
_PERCEPTRON = {"hidden_layer_sizes": (50,), "solver": "lbfgs", "alpha": 1.0, "max_iter": 300}
_GP_ROWS = 250  # a Gaussian process costs the cube of its rows
_VALIDATION = 0.15
_FORESTS = 200


class Numbers(NamedTuple):
    """Hold what a model says of rows of a regression.

    Attributes
    ----------
    mean : ndarray, shape (rows,)
    log_density : ndarray, shape (rows,)
        Of what was observed.
    covered : ndarray of bool, shape (rows,)
        Whether the 90 % interval holds it.
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


def _forest(x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray) -> Numbers:
    model = RandomForestRegressor(_FORESTS, oob_score=True, random_state=0).fit(x, y)
    return _normal(model.predict(xt), float(np.std(y - model.oob_prediction_)), yt)


def _process(x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray) -> Numbers:
    x, y = x[:_GP_ROWS], y[:_GP_ROWS]
    kernel = ConstantKernel(1.0) * RBF(np.full(x.shape[1], 3.0), (1e-1, 1e3)) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(x, y)
    return _normal(*model.predict(xt, return_std=True), yt)


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


def _class_forest(x: np.ndarray, y: np.ndarray, xt: np.ndarray) -> np.ndarray:
    return RandomForestClassifier(_FORESTS, random_state=0).fit(x, y).predict_proba(xt)


def _class_process(x: np.ndarray, y: np.ndarray, xt: np.ndarray) -> np.ndarray:
    kernel = ConstantKernel(1.0) * RBF(3.0)
    return GaussianProcessClassifier(kernel, random_state=0).fit(x[:_GP_ROWS], y[:_GP_ROWS]).predict_proba(xt)


def _class_ensemble(x: np.ndarray, y: np.ndarray, xt: np.ndarray) -> np.ndarray:
    members = [MLPClassifier(random_state=seed, **_PERCEPTRON) for seed in range(_MEMBERS)]
    return np.mean([model.fit(x, y).predict_proba(xt) for model in members], axis=0)


#: The models of each task by name; those that a goal is set by come first.
REGRESSORS: dict[str, Callable[..., Numbers]] = {
    "linear": _ridge,
    "ensemble": _ensemble,
    "forest": _forest,
    "process": _process,
}
CLASSIFIERS: dict[str, Callable[..., np.ndarray]] = {
    "linear": _logistic,
    "ensemble": _class_ensemble,
    "forest": _class_forest,
    "process": _class_process,
}


def figures_of_numbers(found: Numbers, y: np.ndarray) -> dict[str, float]:
    """Return the RMSE, the NLL and the coverage of predictions of numbers."""
    return {
        "error": float(np.sqrt(np.mean(np.square(found.mean - y)))),
        "nll": float(-found.log_density.mean()),
        "coverage": float(found.covered.mean()),
    }


def figures_of_classes(probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the accuracy and the NLL of predicted classes, and the coverage of 90 % sets.

    A set has the most probable classes, the last one with the chance that makes its probability 90 %: so the sets of
    right probabilities hold 90 %.
    """
    own = np.clip(probabilities[np.arange(len(y)), y.astype(int)], 1e-12, 1.0)
    before = np.where(probabilities > own[:, None], probabilities, 0.0).sum(1)
    return {
        "error": float((probabilities.argmax(1) == y).mean()),
        "nll": float(-np.log(own).mean()),
        "coverage": float(np.clip((COVERAGE - before) / own, 0.0, 1.0).mean()),
    }


def predict(name: str, task: Task, x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray) -> dict[str, float]:
    """Fit a model by its name to standardised training rows; return its figures on the test rows."""
    scaler = StandardScaler().fit(x)
    x, xt = scaler.transform(x), scaler.transform(xt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of iterations that end before they have converged
        if task == "regression":
            return figures_of_numbers(REGRESSORS[name](x, y, xt, yt), yt)
        return figures_of_classes(CLASSIFIERS[name](x, y, xt), yt)

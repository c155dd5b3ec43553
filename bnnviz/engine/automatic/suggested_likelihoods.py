"""Suggest the likelihood of a table's target: by its column, and by the density of held-out rows under boosting."""

from __future__ import annotations

import numpy as np

from bnnviz import optional
from bnnviz.data import DataSet

GAUSSIAN, HEAVY, SKEWED, COUNTS = "gaussian", "student_t", "log_normal", "negative_binomial"
_MOST_ROWS, _FEWEST_ROWS = 2000, 60
_PARTS = (0.6, 0.8)  # of the rows: to fit, to learn a scale; the rest is scored
_GAIN = 0.03  # nats per row, plus standard errors, by which another likelihood must be better
_ERRORS = {HEAVY: 2.0, SKEWED: 2.0, COUNTS: 1.0}  # whole numbers are evidence of counts
_NOISE = 0.03  # least share of the variance that boosting leaves: the rest of a closer fit is not the noise
_MOST_COUNT = 300  # median above which counts are nearly normal
_DF = 4.0  # degrees of freedom of the student_t likelihood
_LEAST = 1e-9


def suggest(data: DataSet, weights: np.ndarray | None = None) -> str:
    """Return the name of a likelihood; ``auto`` for classes, or without evidence for another one.

    Weighted rows are thinned: a row is used with a probability proportional to its weight.
    """
    x, y = data.x_train, data.y_train
    if weights is not None:
        kept = np.random.default_rng(1).random(len(x)) * weights.max() < weights
        x, y = x[kept], y[kept]
    if data.task != "regression" or len(x) < _FEWEST_ROWS or not optional.has("sklearn"):
        return "auto"
    order = np.random.default_rng(0).permutation(len(x))[:_MOST_ROWS]
    fit, scale, test = np.split(order, [int(part * len(order)) for part in _PARTS])
    if np.mean(np.square(y - _predicted(x, y, fit))[test]) < _NOISE * y[test].var():
        return "auto"
    able = {GAUSSIAN: _gaussian, HEAVY: _heavy}
    if (y > 0).all():
        able[SKEWED] = _skewed
    if (y >= 0).all() and (y == np.round(y)).all() and np.median(y) <= _MOST_COUNT:
        able[COUNTS] = _counts
    found = {name: density(x, y, fit, scale, test) for name, density in able.items()}
    gain = {name: found[name] - found[GAUSSIAN] for name in _ERRORS if name in found}
    best = max(gain, key=lambda name: gain[name].mean())
    needed = _GAIN + _ERRORS[best] * gain[best].std() / np.sqrt(len(test))
    return best if gain[best].mean() > needed else "auto"


def _predicted(x: np.ndarray, y: np.ndarray, fit: np.ndarray, loss: str = "squared_error") -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingRegressor

    leaf = int(np.clip(len(fit) // 20, 3, 20))
    model = HistGradientBoostingRegressor(loss=loss, max_iter=50, min_samples_leaf=leaf, random_state=0)
    return model.fit(x[fit], y[fit]).predict(x)


def _gaussian(x: np.ndarray, y: np.ndarray, fit: np.ndarray, scale: np.ndarray, test: np.ndarray) -> np.ndarray:
    off = y - _predicted(x, y, fit)
    sd = max(off[scale].std(), _LEAST)
    return -0.5 * np.square(off[test] / sd) - np.log(sd * np.sqrt(2 * np.pi))


def _heavy(x: np.ndarray, y: np.ndarray, fit: np.ndarray, scale: np.ndarray, test: np.ndarray) -> np.ndarray:
    from scipy.stats import t

    off = y - _predicted(x, y, fit)
    size = max(t.fit(off[scale], f0=_DF, floc=0.0)[2], _LEAST)
    return t.logpdf(off[test], _DF, scale=size)


def _skewed(x: np.ndarray, y: np.ndarray, fit: np.ndarray, scale: np.ndarray, test: np.ndarray) -> np.ndarray:
    return _gaussian(x, np.log(y), fit, scale, test) - np.log(y[test])


def _counts(x: np.ndarray, y: np.ndarray, fit: np.ndarray, scale: np.ndarray, test: np.ndarray) -> np.ndarray:
    from scipy.stats import nbinom

    mean = np.maximum(_predicted(x, y, fit, "poisson"), _LEAST)
    excess = np.mean((np.square(y - mean) - mean)[scale]) / np.mean(np.square(mean[scale]))
    size = 1 / max(excess, 1e-4)  # nearly Poisson
    return nbinom.logpmf(y[test], size, size / (size + mean[test]))

r"""Compute metrics of predicted classes and numbers.

With predictive probabilities :math:`p_{ik}`, observed classes :math:`y_i` and predictive distribution functions
:math:`F_i`,

.. math::
    \mathrm{NLL} = -\frac1n \sum_i \log p_{i y_i}, \quad
    \mathrm{Brier} = \frac1n \sum_i \sum_k (p_{ik} - 1[y_i = k])^2, \quad
    \mathrm{CRPS} = \frac1n \sum_i \int (F_i(z) - 1[z \ge y_i])^2 \,\mathrm{d}z

(Gneiting and Raftery 2007, https://doi.org/10.1198/016214506000001437; closed form for mixtures of normals: Grimit,
Gneiting, Berrocal and Johnson 2006, https://doi.org/10.1256/qj.05.235).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from bnnviz import optional
from bnnviz.diagnostics.packages import learn_metrics
from bnnviz.diagnostics.predictive.calibration import calibration_error

# Fewest components compared with all components of a mixture, for its mean distance from itself, and distances with
# more: with all, the score of a mixture with a few components far away cannot be negative.
_PARTNERS, _DISTANCES = 30, 20_000_000
_ROOT = np.sqrt(2 * np.pi)
# Metrics computed by scikit-learn.
_SKLEARN_BINARY = ("precision", "recall", "specificity", "f1", "auc")
_SKLEARN_MULTICLASS = ("precision", "recall", "f1", "f1_weighted", "auc", "auc_weighted")
_LEAST = 1e-300  # minimum probability, so that logarithms are finite


class Figures(NamedTuple):
    """Metrics by name, None if undefined, the reasons, by the same names, and the score of each row (CRPS or NLL)."""

    values: dict[str, float | None]
    unknown: dict[str, str]
    scores: np.ndarray


def class_metrics(probabilities: np.ndarray, observed: np.ndarray, positive: int = 1) -> Figures:
    """Compute metrics of predicted classes.

    Parameters
    ----------
    probabilities : ndarray, shape (rows, classes)
        Predicted class probabilities.
    observed : ndarray, shape (rows,)
        Class numbers, starting from 0.
    positive : int, default 1
        Positive class for precision, recall, specificity and F1 with two classes.

    Returns
    -------
    Figures
        ``accuracy``, ``precision``, ``recall``, ``f1``, ``auc``, ``nll`` (mean over rows of minus the log probability
        of the observed class), ``ece`` (15 bins) and ``brier`` (mean squared distance of the probability from 0 or 1;
        for more than two classes summed over classes). For two classes also ``specificity``. For more classes,
        precision, recall, F1 and AUC are one-vs-rest means over classes with rows, and ``f1_weighted`` and
        ``auc_weighted`` are weighted by the number of rows. Without scikit-learn, only accuracy, NLL, ECE and Brier
        score are computed.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    >>> diagnostics.class_metrics(chances, np.array([0, 0, 1, 0])).values["accuracy"]
    0.75
    """
    observed = np.asarray(observed).astype(int)
    predicted, classes = probabilities.argmax(1), probabilities.shape[1]
    present = np.unique(observed)
    observed_share = np.maximum(probabilities[np.arange(len(observed)), observed].astype(float), _LEAST)
    scores, exact = -np.log(observed_share), np.eye(classes)[observed]
    distance = ((probabilities - exact) ** 2).sum(1).mean()
    values: dict[str, float | None] = {
        "accuracy": float((predicted == observed).mean()),
        "nll": float(scores.mean()),
        "ece": calibration_error(probabilities, observed),
        "brier": float(distance / 2 if classes == 2 else distance),
    }
    if not optional.has("sklearn"):
        names = _SKLEARN_BINARY if classes == 2 else _SKLEARN_MULTICLASS
        return Figures(values | dict.fromkeys(names), dict.fromkeys(names, without_learn()), scores)
    more, unknown = _of_two(observed, predicted, positive) if classes == 2 else _of_many(observed, predicted, present)
    aucs, sentence = _aucs(probabilities, observed, present, positive)
    more["auc"] = float(np.mean(aucs)) if aucs else None
    if classes > 2:
        more["auc_weighted"] = float(np.average(aucs, weights=exact.sum(0)[present])) if aucs else None
    if sentence:
        unknown |= dict.fromkeys((name for name in more if name.startswith("auc")), sentence)
    return Figures(values | more, unknown, scores)


def without_learn() -> str:
    """Return a note on metrics that require scikit-learn."""
    return f"Precision, recall, F1 and AUC are missing: {optional.install('sklearn')}."


def _of_two(observed: np.ndarray, predicted: np.ndarray, positive: int) -> tuple[dict, dict[str, str]]:
    score = learn_metrics().precision_recall_fscore_support
    precision, recall, f1, _ = score(observed, predicted, labels=[positive, 1 - positive], zero_division=np.nan)
    found = {"precision": precision[0], "recall": recall[0], "specificity": recall[1], "f1": f1[0]}
    reasons = {
        "precision": f"No row was predicted to be of class {positive}, so precision is undefined.",
        "recall": f"No row is of class {positive}, so recall is undefined.",
        "specificity": f"All rows are of class {positive}, so specificity is undefined.",
        "f1": f"No row is or was predicted to be of class {positive}, so F1 is undefined.",
    }
    undefined = {name for name, value in found.items() if np.isnan(value)}
    values = {name: None if name in undefined else float(value) for name, value in found.items()}
    return values, {name: reasons[name] for name in undefined}


def _of_many(observed: np.ndarray, predicted: np.ndarray, present: np.ndarray) -> tuple[dict, dict[str, str]]:
    score = learn_metrics().precision_recall_fscore_support
    # A class that is never predicted has precision 0, as in scikit-learn.
    precision, recall, f1, rows = score(observed, predicted, labels=present, zero_division=0.0)
    means = {"precision": precision.mean(), "recall": recall.mean(), "f1": f1.mean()}
    values = means | {"f1_weighted": np.average(f1, weights=rows)}
    return {name: float(value) for name, value in values.items()}, {}


def _aucs(
    probabilities: np.ndarray, observed: np.ndarray, present: np.ndarray, positive: int
) -> tuple[list[float], str | None]:
    """Return the one-vs-rest area under the ROC curve of each class with rows, and the reason if undefined."""
    if len(present) < 2:
        return [], f"All rows are of class {present[0]}, so AUC is undefined."
    scored = [positive] if probabilities.shape[1] == 2 else present
    score = learn_metrics().roc_auc_score
    missing = sorted(set(range(probabilities.shape[1])) - set(present.tolist()))
    sentence = f"No row is of class {', '.join(map(str, missing))}; AUC is the mean of the others." if missing else None
    return [score(observed == k, probabilities[:, k]) for k in scored], sentence


def confusion(predicted: np.ndarray, observed: np.ndarray, classes: int) -> np.ndarray:
    """Compute the confusion matrix, with observed classes in rows and predicted classes in columns.

    Parameters
    ----------
    predicted, observed : ndarray, shape (rows,)
        Class numbers, starting from 0.
    classes : int

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> diagnostics.confusion(np.array([0, 1, 1]), np.array([0, 1, 0]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    cells = np.asarray(observed).astype(int) * classes + np.asarray(predicted).astype(int)
    return np.bincount(cells, minlength=classes**2).reshape(classes, classes)


def number_metrics(means: np.ndarray, sds: np.ndarray, observed: np.ndarray) -> Figures:
    """Compute metrics of predictive distributions that are mixtures of normals with equal weights.

    Parameters
    ----------
    means : ndarray, shape (draws, rows)
        Means of the normals.
    sds : ndarray, shape (draws,)
        Standard deviations of the normals.
    observed : ndarray, shape (rows,)

    Returns
    -------
    Figures
        ``mse`` and ``rmse`` of the mixture's mean, ``nll`` (mean over rows of minus the log density), ``coverage_50``
        and ``coverage_90`` (share of the rows inside the mixture's central interval) and ``crps``.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> found = diagnostics.number_metrics(np.zeros((10, 3)), np.ones((10, 3)), np.zeros(3))
    >>> found.values["rmse"]
    0.0
    """
    sd = sds[:, None]
    mse = float(np.mean((means.mean(0) - observed) ** 2))
    z = (observed - means) / sd
    log_density = np.logaddexp.reduce(-0.5 * z**2 - np.log(sd), axis=0) - np.log(len(means) * _ROOT)
    below, scores = scipy.special.ndtr(z).mean(0), _crps(means, sds, observed)
    values = {
        "mse": mse,
        "rmse": float(np.sqrt(mse)),
        "nll": float(-log_density.mean()),
        "coverage_50": float((np.abs(below - 0.5) <= 0.25).mean()),
        "coverage_90": float((np.abs(below - 0.5) <= 0.45).mean()),
        "crps": float(scores.mean()),
    }
    return Figures(values, {}, scores)


def _crps(means: np.ndarray, sds: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Return the continuous ranked probability score (rows,) of equal mixtures of normals."""
    toward = _mean_distance(observed - means, sds[:, None]).mean(0)
    count = min(len(means), max(_PARTNERS, _DISTANCES // max(means.size, 1)))
    partners = np.linspace(0, len(means) - 1, count).astype(int)
    between = [_mean_distance(means - means[k], np.sqrt(sds**2 + sds[k] ** 2)[:, None]).mean(0) for k in partners]
    return toward - np.mean(between, axis=0) / 2


def crps_of_draws(drawn: np.ndarray, observed: np.ndarray) -> np.ndarray:
    r"""Estimate the continuous ranked probability score (CRPS) of each row, of mixtures with equal weights, from draws.

    It is :math:`E|X - y| - E|X - X'| / 2` (Gneiting and Raftery 2007, equation 21). The estimate is unbiased.

    Parameters
    ----------
    drawn : ndarray, shape (parts, draws, rows, ...)
        At least two draws of each component of the mixture.
    observed : ndarray, shape (rows, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import diagnostics
    >>> diagnostics.crps_of_draws(np.array([[0.0, 2.0]])[..., None], np.array([1.0]))
    array([0.])
    """
    parts, draws = drawn.shape[:2]
    toward = np.abs(drawn - observed).mean((0, 1))
    within = _sum_of_distances(drawn, 1).sum(0)
    between = _sum_of_distances(drawn.reshape(parts * draws, *drawn.shape[2:]), 0) - within
    apart = (between / draws**2 + within / (draws * (draws - 1))) / parts**2
    return toward - apart / 2


def _sum_of_distances(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the sum of |x_i - x_j| over all i and j along an axis, by sorting."""
    ordered, count = np.moveaxis(np.sort(values, axis), axis, -1), values.shape[axis]
    return ordered @ (2.0 * (2 * np.arange(count) - count + 1))


def _mean_distance(shift: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Return the mean of |X| for X ~ N(shift, sd^2)."""
    z = shift / sd
    return shift * (2 * scipy.special.ndtr(z) - 1) + 2 * sd * np.exp(-0.5 * z**2) / _ROOT

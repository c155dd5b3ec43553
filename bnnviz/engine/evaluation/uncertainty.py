"""Measure the uncertainty of a network's predictions on its test rows and on out-of-distribution rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import data as datasets
from bnnviz import diagnostics, optional
from bnnviz.engine.evaluation.metrics import (
    NetworkDraws,
    class_names,
    network_draws,
    normalised,
    probabilities_at,
)
from bnnviz.engine.evaluation.predictions import evenly
from bnnviz.engine.protocol import AnyRun
from bnnviz.errors import BnnvizError
from bnnviz.targets import BNN

MOST_OUTSIDE = 2000
_NUMBERS = 4_000_000  # probabilities of all draws in memory at once
_ESS_ROWS = 50
_NOTHING = 1e-6  # of the largest weight
_BYTE = 255.0


class Predictive(NamedTuple):
    """The averaged prediction at rows, its entropy, the mean entropy of single draws, and the difference of both."""

    probabilities: np.ndarray
    entropy: np.ndarray
    expected: np.ndarray
    mutual: np.ndarray

    def accuracy(self, observed: np.ndarray) -> dict[str, float]:
        """Return the accuracy and its 95% interval (Wilson) for observed classes (rows,)."""
        right = self.probabilities.argmax(1) == observed
        low, high = diagnostics.share_interval(right.sum(), len(right))
        return {"accuracy": float(right.mean()), "accuracy_low": low, "accuracy_high": high}

    def entropies(self, seed: int) -> dict[str, float]:
        """Return the mean entropies over rows, with a bootstrap interval for that of the averaged prediction."""
        low, high = diagnostics.mean_interval(self.entropy, seed=seed)
        found = {name: float(getattr(self, name).mean()) for name in ("entropy", "expected", "mutual")}
        return found | {"entropy_low": low, "entropy_high": high}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the fields by their names in results."""
        named = self._asdict()
        return {"chances": named.pop("probabilities")} | named


def predictive(
    target: BNN,
    theta: Tensor,
    x: Tensor | list[Tensor],
    weights: np.ndarray | None = None,
    base: float = math.e,
) -> Predictive:
    """Return the averaged prediction of weights (draws, dim) at scaled inputs (rows, ...), by parts of the rows."""
    each = max(1, _NUMBERS // (len(theta) * max(target.outputs_per_row, 2)))
    shares = np.full(len(theta), 1 / len(theta)) if weights is None else np.asarray(weights) / np.sum(weights)
    parts, versions = [], x if isinstance(x, list) else [x]
    for begin in range(0, len(versions[0]), each):
        probabilities = probabilities_at(target, theta, [x[begin : begin + each] for x in versions])
        expected = diagnostics.expected_entropy(probabilities, base, weights)
        total = diagnostics.predictive_entropy(probabilities, base, weights)
        mutual = diagnostics.mutual_information(probabilities, base, weights)
        parts.append(Predictive(np.tensordot(shares, probabilities, 1), total, expected, mutual))
    return Predictive(*map(np.concatenate, zip(*parts, strict=True)))


def uncertainty(
    target_or_run: BNN | AnyRun,
    draws: Any = None,
    log_weights: Any = None,
    *,
    ood: Any = None,
    rows: Sequence[int] = (),
    base: float = math.e,
    bins: int = 10,
    most_outside: int = MOST_OUTSIDE,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure the uncertainty of the averaged prediction on test and out-of-distribution rows, and its calibration.

    Parameters
    ----------
    target_or_run : BNN, Run, Recording, str or Path
        A classification network, or a run or recording of one. Runs and recordings provide the draws and their weights
        by default.
    draws : array_like, shape (..., dim), optional
        Weights of the network. The effective sample size is computed if the shape is (chains, draws, dim).
    log_weights : array_like, shape (...), optional
        Log weights of the draws, up to a constant. The default is equal weights.
    ood : str, data set or array_like, optional
        Out-of-distribution rows: the name of a data set or a set itself, whose test rows are scaled like the training
        data, or inputs (rows, ...) on that scale, where bytes are pixels of images.
    rows : sequence of int
        Indices of test rows whose probabilities are returned with intervals.
    base : float, default e
        Base of the logarithm in entropies: e for nats, 2 for bits.
    bins : int, default 10
        Number of bins of the reliability diagram and of the calibration error.
    most_outside : int, default 2000
        Maximum number of out-of-distribution rows: drawn with equal shares of each class from an image set, otherwise
        evenly thinned.
    seed : int, default 0
        Seed of the resampling.

    Returns
    -------
    dict
        ``summary``, which is JSON: ``rows``, ``draws``, ``chains``, ``base``, ``class_names``; ``accuracy`` with
        Wilson's interval, ``nll``, ``brier``, ``ece`` and ``bins`` of the averaged prediction; ``test`` and ``ood``
        (None without), each with ``rows`` and the means of ``entropy`` (its interval by the bootstrap over rows),
        ``expected`` and ``mutual``; ``detection`` by predictive entropy with out-of-distribution rows as positives
        (None without); ``function_ess`` with ``median``, ``lowest`` (the smallest decile) and ``unknown``, the number
        of undefined ones among ``series``, the probabilities of each class at up to 50 test rows; ``unknown``: by
        metric, the reason why it is undefined. ``arrays``: ``test`` and ``ood``, each with ``chances`` (rows, classes),
        ``entropy``, ``expected`` and ``mutual`` (rows,); ``observed`` (rows,); ``reliability`` and ``intervals``
        (``rows``, ``observed`` and ``mean``, ``low`` and ``high`` (rows, classes), 95% of the draws), as dicts.

    Raises
    ------
    BnnvizError
        If the target is not a classification network, there are no draws, shapes are incompatible, or a row index does
        not exist.

    Examples
    --------
    >>> import bnnviz
    >>> import torch
    >>> x = torch.linspace(-2, 2, 40).reshape(20, 2)
    >>> network = bnnviz.BNN(torch.nn.Linear(2, 1), (x, (x[:, 0] > 0).int()), likelihood="bernoulli")
    >>> run = bnnviz.sample(network, "hmc", draws=20, warmup=20, chains=2, settings={"mode_steps": 20})
    >>> summary = bnnviz.uncertainty(run)["summary"]
    >>> 0 <= summary["test"]["entropy"] < 0.7
    True
    """
    given = network_draws(target_or_run, draws, log_weights)
    target, (theta, weights) = given.target, kept(given)
    x, y = class_rows(target)
    observed = y.cpu().numpy().astype(int)
    outside = None if ood is None else outside_rows(target, ood, most_outside, seed)
    inner = predictive(target, theta, x, weights, base)
    outer = None if outside is None else predictive(target, theta, outside, weights, base)
    reliability = diagnostics.reliability(inner.probabilities, observed, bins)
    scores = diagnostics.class_metrics(inner.probabilities, observed).values
    ess, unknown = _function_ess(given, x)
    detected = None
    if outer is not None and optional.has("sklearn"):
        detected = diagnostics.detection(inner.entropy, outer.entropy, seed=seed)._asdict()
    elif outer is not None:
        unknown["detection"] = f"It needs a ROC curve: {optional.install('sklearn')}."
    summary = {
        "rows": len(x),
        "draws": len(given.theta),
        "chains": given.chains,
        "base": base,
        "class_names": class_names(target),
        **inner.accuracy(observed),
        **{name: scores[name] for name in ("nll", "brier")},
        "ece": reliability.ece,
        "bins": bins,
        "test": {"rows": len(x), **inner.entropies(seed)},
        "ood": None if outer is None else {"rows": len(outside), **outer.entropies(seed)},
        "detection": detected,
        "function_ess": ess,
        "unknown": unknown,
    }
    arrays = {
        "test": inner.arrays(),
        "ood": None if outer is None else outer.arrays(),
        "observed": observed,
        "reliability": reliability._asdict(),
        "intervals": _intervals(target, theta, weights, x, observed, rows),
    }
    return {"summary": summary, "arrays": arrays}


def class_rows(target: BNN) -> tuple[Tensor, Tensor]:
    """Return the scaled inputs (rows, ...) and class indices (rows,) of the test rows."""
    if target.likelihood.task != "classification":
        raise BnnvizError("Entropies, reliability and attacks require a classification network.", "target")
    x, y = (target.x, target.y) if target.data_set is None else target.data_set.scaled("test")
    x = torch.as_tensor(x, dtype=target.dtype, device=target.device)
    return x, torch.as_tensor(y, dtype=target.y.dtype, device=target.device)


def kept(given: NetworkDraws) -> tuple[Tensor, np.ndarray | None]:
    """Return the draws with non-negligible weights and their normalised weights, or None for equal weights."""
    if given.log_weights is None:
        return given.theta, None
    weights = normalised(given.log_weights)
    places = np.flatnonzero(weights > _NOTHING * weights.max())
    return given.theta[torch.as_tensor(places, device=given.theta.device)], weights[places] / weights[places].sum()


def outside_rows(target: BNN, ood: Any, most: int = MOST_OUTSIDE, seed: int = 0) -> Tensor:
    """Return scaled out-of-distribution inputs (rows, ...)."""
    ood = datasets.load(ood) if isinstance(ood, str) else ood
    own = target.data_set
    if isinstance(ood, datasets.ImageSet):
        x = ood.chosen(test=most, seed=seed)
        x = (x.scaled_like(own) if isinstance(own, datasets.ImageSet) else x).scaled("test")[0]
    elif isinstance(ood, datasets.DataSet):
        x = ood.x_test[evenly(len(ood.x_test), most)]
        x = own.standardiser.x(x) if isinstance(own, datasets.DataSet) else x
    else:
        x = np.asarray(ood)
        x = x[evenly(len(x), most)]
        x = scaled_pixels(x, own) if x.dtype == np.uint8 and pixel_scale(own) is not None else x
    rows = torch.as_tensor(x, dtype=target.dtype, device=target.device)
    needed = own.shape if isinstance(own, datasets.ImageSet) else tuple(target.x.shape[1:])
    if tuple(rows.shape[1:]) != needed or not len(rows) or not torch.isfinite(rows).all():
        raise BnnvizError(
            f"Out-of-distribution rows have the shape {tuple(rows.shape)}, or a number that is not finite; give rows"
            f" of shape {needed}.",
            "ood",
        )
    return rows


def pixel_scale(data_set: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return mean and sd of the pixels, each (channels, 1, 1), as fractions of 255, or None without images."""
    if not isinstance(data_set, datasets.ImageSet):
        return None
    mean, sd = (np.asarray(numbers, np.float32)[:, None, None] for numbers in (data_set.mean, data_set.sd))
    return mean, sd


def scaled_pixels(x: np.ndarray, data_set: Any) -> np.ndarray:
    """Return bytes (rows, channels, height, width) on the network's scale."""
    mean, sd = pixel_scale(data_set)
    return (x / np.float32(_BYTE) - mean) / sd


def _function_ess(given: NetworkDraws, x: Tensor) -> tuple[dict[str, Any] | None, dict[str, str]]:
    """Return the effective sample size of the predicted functions, and the reasons for unknown values."""
    if given.log_weights is not None:
        return None, {"function_ess": "Draws with weights are no chain: see their weights' ESS (weights_ess)."}
    places = torch.as_tensor(evenly(len(x), _ESS_ROWS), device=x.device)
    probabilities = probabilities_at(given.target, given.theta, x[places])
    found = diagnostics.function_ess(probabilities.reshape(given.chains, -1, *probabilities.shape[1:]))
    known = found.unknown < found.each.size
    summary = {
        "median": found.median if known else None,
        "lowest": found.lowest if known else None,
        "unknown": found.unknown,
        "series": found.each.size,
    }
    message = "It needs four draws of a chain that differ on some row."
    if not optional.has("arviz_stats"):
        message = f"It is ArviZ's: {optional.install('arviz_stats')}."
    return summary, {} if known else {"function_ess": message}


def _intervals(
    target: BNN, theta: Tensor, weights: np.ndarray | None, x: Tensor, observed: np.ndarray, rows: Sequence[int]
) -> dict[str, np.ndarray]:
    numbers = row_numbers(rows, len(x))
    if not len(numbers):
        empty = np.empty((0, target.likelihood.classes(target.outputs_per_row)))
        return {"rows": numbers, "observed": observed[:0], "mean": empty, "low": empty, "high": empty}
    probabilities = probabilities_at(target, theta, x[torch.as_tensor(numbers, device=x.device)])
    found = diagnostics.class_intervals(probabilities, weights=weights)
    return {"rows": numbers, "observed": observed[numbers], **found._asdict()}


def row_numbers(rows: Sequence[int], count: int) -> np.ndarray:
    """Return row indices as an array."""
    numbers = np.asarray(rows if len(rows) else np.empty(0, int))
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or ((numbers < 0) | (numbers >= count)).any():
        raise BnnvizError(f"rows are numbers of test rows, integers from 0 to {count - 1}.", "rows")
    return numbers

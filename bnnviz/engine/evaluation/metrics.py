"""Evaluate the draws of a network on its test rows, separately and averaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics, optional
from bnnviz.data import DataSet
from bnnviz.diagnostics.packages import learn_metrics
from bnnviz.diagnostics.predictive.metrics import Figures
from bnnviz.engine.evaluation.observables import ObservationLaw, figures
from bnnviz.engine.evaluation.predictions import at_once, averaged, evenly, observed_rows
from bnnviz.engine.protocol import AnyRun
from bnnviz.errors import BnnvizError
from bnnviz.targets import BNN

RESAMPLES = 100
_RARE = 0.15  # fraction of the rows below which a class is rare


class NetworkDraws(NamedTuple):
    """A network and its draws (draws, dim), chain after chain, with log weights (draws,) or None."""

    target: BNN
    theta: Tensor
    log_weights: np.ndarray | None
    chains: int

    @property
    def shares(self) -> np.ndarray:
        """The weights (draws,) of sum 1."""
        count = len(self.theta)
        return np.full(count, 1 / count) if self.log_weights is None else normalised(self.log_weights)


def predict(target: BNN, theta: Tensor) -> Any:
    """Return class probabilities (draws, rows, classes), or the `ObservationLaw`, of weights at the test rows."""
    x, _ = target.held_out()
    if target.likelihood.task == "classification":
        return probabilities_at(target, theta, x)
    return ObservationLaw(target, theta, outputs_at(target, theta, [x]))


def probabilities_at(target: BNN, theta: Tensor, x: Tensor | list[Tensor]) -> np.ndarray:
    """Return the probabilities (draws, rows, classes) that weights (draws, dim) give at scaled inputs."""

    def probabilities(theta: Tensor, x: Tensor) -> np.ndarray:
        pieces = torch.split(theta.to(target.device, target.dtype), at_once(target, len(x)))
        return np.concatenate([probabilities_of(target, target.outputs(piece, x), piece) for piece in pieces])

    return by_version(probabilities, theta, x if isinstance(x, list) else [x])


def outputs_at(target: BNN, theta: Tensor, versions: list[Tensor]) -> Tensor:
    """Return the outputs (draws, rows, outputs) of weights (draws, dim) at scaled inputs, in double precision."""

    def outputs(theta: Tensor, x: Tensor) -> np.ndarray:
        pieces = torch.split(theta.to(target.device, target.dtype), at_once(target, len(x)))
        return torch.cat([target.outputs(piece, x).double().cpu() for piece in pieces]).numpy()

    with torch.no_grad():
        return torch.from_numpy(by_version(outputs, theta, versions))


def by_version(predict: Callable[[Tensor, Tensor], np.ndarray], theta: Tensor, versions: list[Tensor]) -> np.ndarray:
    """Return predictions (draws, rows, ...), where draw s has version s of the rows, modulo their number."""
    versions = versions[: len(theta)]
    parts = [predict(theta[k :: len(versions)], x) for k, x in enumerate(versions)]
    found = np.empty((len(theta), *parts[0].shape[1:]), parts[0].dtype)
    for k, part in enumerate(parts):
        found[k :: len(versions)] = part
    return found


def probabilities_of(target: BNN, outputs: Tensor, theta: Tensor) -> np.ndarray:
    """Return the probabilities (draws, rows, classes) for outputs (draws, rows, outputs)."""
    probabilities = target.likelihood_at(theta.to(outputs)).mean(outputs).double().cpu().numpy()
    return probabilities if probabilities.ndim == 3 else np.stack([1 - probabilities, probabilities], -1)


def drawn_classes(probabilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a class for each draw and row, (draws, rows), from probabilities (draws, rows, classes)."""
    uniform = rng.random((*probabilities.shape[:2], 1))
    return (probabilities.cumsum(-1)[..., :-1] < uniform).sum(-1)


def log_scale(target: BNN) -> float:
    """Return by how much a log density is larger on the network's scale than in the unit of the data."""
    scaled = isinstance(target.data_set, DataSet)
    return float(np.sum(np.log(target.data_set.standardiser.y_scale))) if scaled else 0.0


def class_names(target: BNN) -> list[str]:
    """Return the class names, or empty for a regression."""
    if target.likelihood.task != "classification":
        return []
    if target.data_set is not None:
        return list(target.data_set.class_names)
    return [str(k) for k in range(target.likelihood.classes(target.outputs_per_row))]


def chosen(draws: int, log_weights: np.ndarray | None, resamples: int, seed: int) -> np.ndarray:
    """Return the indices of at most ``resamples`` draws: evenly thinned, or resampled by their weights."""
    if log_weights is None:
        return evenly(draws, resamples)
    return np.random.default_rng(seed).choice(draws, resamples, p=normalised(log_weights))


def normalised(log_weights: np.ndarray) -> np.ndarray:
    """Return flat weights of sum 1 from log weights up to a constant."""
    flat = np.asarray(log_weights, dtype=float).ravel()
    if np.isnan(flat).any() or not np.isfinite(flat.max(initial=-np.inf)):
        raise BnnvizError("All importance weights of the draws are zero or invalid. Sample again.", "log_weights")
    return diagnostics.normalised(flat)


def measure(
    target_or_run: BNN | AnyRun,
    draws: Any = None,
    log_weights: Any = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """Compute metrics of the predictions of a network on its test rows.

    Parameters
    ----------
    target_or_run : BNN, Run, Recording, str or Path
        A network on data, or a run or recording of one. Runs and recordings provide the draws and their weights by
        default.
    draws : array_like, shape (..., dim), optional
        Weights of the network.
    log_weights : array_like, shape (...), optional
        Log weights of the draws, up to a constant. The default is equal weights.
    resamples : int, default 100
        Number of draws resampled by their weights for per-draw metrics (R of the PMCnet paper).
    seed : int, default 0
        Seed of the resampling.

    Returns
    -------
    dict
        ``per_draw``: ``mean`` and ``sd`` of each metric (divisor R - 1; None for one draw) over the predictions of
        single draws, as in the tables of the PMCnet paper. ``averaged``: metrics of the weighted mean of the
        predictions, the predictive distribution (its algorithm 2). ``class_metrics`` and ``number_metrics`` of
        `bnnviz.diagnostics` define the names. For a regression ``nll`` is on the network's scale, and coverage and CRPS
        of the averaged predictive use the resampled draws. CRPS is in closed form for homoscedastic normal noise, and
        otherwise estimated from simulated observations. ``confusion``: rows of each observed class (first axis) by
        predicted class, for the averaged predictive; ``confusion_per_draw``: its mean over single draws;
        ``confidence``: the mean over rows of the largest probability. ``unknown``: by metric, the reason why it is
        undefined or needs scikit-learn. ``row_scores``: an array of the CRPS (classes: NLL) of each row, None for a
        likelihood that is a function. Also ``rows``, ``draws``, ``resamples``, ``class_names`` and ``weights_ess``, the
        effective number of draws by the weights, None if they are equal.

    Raises
    ------
    BnnvizError
        If the target is not a network, there are no draws, or the shapes of weights and draws are incompatible.

    Examples
    --------
    >>> import bnnviz
    >>> network, few = {"data": "toy_c"}, {"steps": 100}
    >>> run = bnnviz.sample("network", "map", target_settings=network, settings=few, draws=1, chains=2)
    >>> 0 < bnnviz.measure(run)["averaged"]["rmse"] < 1
    True
    """
    target, theta, log_weights, _ = network_draws(target_or_run, draws, log_weights)
    picked = chosen(len(theta), log_weights, resamples, seed)
    weights = None if log_weights is None else normalised(log_weights)
    named = class_names(target)
    mean, nll = averaged(target, theta, weights)
    if target.likelihood.task == "outputs":
        why = "The likelihood defines a density only: of the scores only the NLL is known."
        unknown = dict.fromkeys(("rmse", "coverage_90", "crps"), why)
        found = {"per_draw": {}, "averaged": {}, "unknown": unknown, "row_scores": None}
    else:
        found = (_classes if target.likelihood.task == "classification" else _numbers)(target, theta[picked], mean)
    found["averaged"]["nll"] = nll
    return {
        "rows": len(target.held_out()[0]),
        "draws": len(theta),
        "resamples": len(picked),
        "weights_ess": None if weights is None else float(1 / np.square(weights).sum()),
        "class_names": named,
        **found,
    }


def network_draws(target_or_run: BNN | AnyRun, draws: Any = None, log_weights: Any = None) -> NetworkDraws:
    """Return the network and its draws, by default those of the run so far."""
    run, target = target_or_run, getattr(target_or_run, "target", target_or_run)
    if not isinstance(target, BNN):
        raise BnnvizError("Predictions and their metrics require draws of a network on data.", "target")
    if draws is None and run is target:
        raise BnnvizError("Give the draws of the network, or a run of it.", "draws")
    if draws is None:
        draws, log_weights = run.store.view(run.alive), run.correcting_log_weights
    shape = np.shape(draws)
    theta = torch.as_tensor(draws, dtype=target.dtype, device=target.device).reshape(-1, shape[-1])
    if not len(theta):
        raise BnnvizError("There are no draws to measure; sample some first.", "draws")
    chains = shape[0] if len(shape) > 2 else 1
    if log_weights is None:
        return NetworkDraws(target, theta, None, chains)
    flat = np.asarray(log_weights, dtype=float).ravel()
    if len(flat) != len(theta):
        raise BnnvizError(f"There are {len(theta)} draws and {len(flat)} weights; give one for each.", "log_weights")
    return NetworkDraws(target, theta, flat, chains)


def prior_draws(target: BNN, draws: int, seed: int) -> NetworkDraws:
    """Return a network with weights drawn from its prior."""
    if draws < 1:
        raise BnnvizError(f"draws = {draws} must be at least 1.", "draws")
    generator = torch.Generator().manual_seed(seed)
    theta = torch.randn(draws, target.dim, generator=generator, dtype=torch.float64) * target.prior_precision**-0.5
    return NetworkDraws(target, theta.to(target.device, target.dtype), None, 1)


def _classes(target: BNN, theta: Tensor, mean: np.ndarray) -> dict[str, Any]:
    observed, positive = observed_rows(target).astype(int), positive_class(target)
    probabilities = predict(target, theta)
    single = [diagnostics.class_metrics(each, observed, positive) for each in probabilities]
    predicted, count = probabilities.argmax(-1), mean.shape[1]
    matrices = [diagnostics.confusion(one, observed, count) for one in predicted]
    return _joined(single, diagnostics.class_metrics(mean, observed, positive)) | {
        "confidence": float(mean.max(1).mean()),
        "rare_classes": _rare(target, mean, observed),
        "confusion": diagnostics.confusion(mean.argmax(1), observed, count).tolist(),
        "confusion_per_draw": np.mean(matrices, axis=0).tolist(),
    }


def _rare(target: BNN, probabilities: np.ndarray, observed: np.ndarray) -> list[dict[str, Any]]:
    """Return rows, recall and average precision of the classes with few rows."""
    found = []
    for k, name in enumerate(class_names(target)):
        own = observed == k
        if 0 < own.mean() < _RARE:
            recall = float((probabilities[own].argmax(1) == k).mean())
            precision = None
            if optional.has("sklearn"):
                precision = float(learn_metrics().average_precision_score(own, probabilities[:, k]))
            found.append({"name": name, "rows": int(own.sum()), "recall": recall, "average_precision": precision})
    return found


def positive_class(target: BNN) -> int:
    """Return the index of the class that scores of two classes refer to."""
    return 1 if target.data_set is None else target.data_set.positive


def _numbers(target: BNN, theta: Tensor, mean: np.ndarray) -> dict[str, Any]:
    law = predict(target, theta)
    observed = observed_rows(target).reshape(law.means.shape[1:])
    single = [figures(law.part(np.array([k])), observed, together=False) for k in range(len(law.means))]
    together = figures(law, observed, together=True)
    mse = float(np.square(mean - observed.ravel()).mean())
    together.values.update(mse=mse, rmse=mse**0.5)
    return _joined(single, together)


def _joined(single: list[Figures], averaged: Figures) -> dict[str, Any]:
    """Return mean and sd of per-draw metrics next to those of the averaged prediction."""
    per_draw, unknown = {}, dict(averaged.unknown)
    for name in single[0].values:
        known = np.array([one.values[name] for one in single if one.values[name] is not None])
        if 0 < len(known) < len(single):
            unknown[f"per_draw.{name}"] = f"{name} is undefined for {len(single) - len(known)} of {len(single)} draws."
        elif not len(known):
            unknown.setdefault(name, next(one.unknown[name] for one in single))
        sd = None
        if len(known) > 1:
            sd = 0.0 if np.ptp(known) == 0 else float(known.std(ddof=1))  # exactly zero for equal values
        per_draw[name] = {"mean": float(known.mean()) if len(known) else None, "sd": sd}
    return {"per_draw": per_draw, "averaged": averaged.values, "unknown": unknown, "row_scores": averaged.scores}


def transforms(given: NetworkDraws, seed: int = 0) -> np.ndarray:
    """Return the predictive probability (rows,) of at most the observation, at each test row, one column after another.

    For counts it is drawn between the probabilities of less than and of at most the observation (Czado, Gneiting and
    Held 2009, https://doi.org/10.1111/j.1541-0420.2009.01191.x).
    """
    target = given.target
    if target.likelihood.task in ("classification", "outputs"):
        raise BnnvizError("Probability integral transforms require a regression.", "source")
    shares, law = given.shares, predict(target, given.theta)
    y = observed_rows(target).reshape(law.means.shape[1:])
    upper = np.tensordot(shares, law.cdf(y), 1)
    if law.discrete:
        lower = np.tensordot(shares, law.cdf(y - 1), 1)
        upper = lower + np.random.default_rng(seed).uniform(size=upper.shape) * (upper - lower)
    return np.clip(upper.ravel(), 0.0, 1.0)

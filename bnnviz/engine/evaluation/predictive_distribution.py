"""Predict new rows with the draws of a network: the law of an observation, and its reducible part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from bnnviz import optional
from bnnviz.data import DataSet
from bnnviz.data.tables.encoder import Imputed
from bnnviz.engine.evaluation.metrics import (
    NetworkDraws,
    class_names,
    drawn_classes,
    log_scale,
    outputs_at,
    probabilities_at,
)
from bnnviz.engine.evaluation.observables import ObservationLaw
from bnnviz.engine.evaluation.observables import quantiles as quantiles_of
from bnnviz.engine.evaluation.predictions import at_once, evenly
from bnnviz.engine.evaluation.uncertainty import predictive
from bnnviz.errors import BnnvizError, Suggesting
from bnnviz.targets import BNN

if TYPE_CHECKING:
    import pandas as pd


QUANTILES = (0.05, 0.5, 0.95)  # median and central 90% interval
_OF_OUTPUTS = (
    "The likelihood defines a density only, so the outputs are predicted; to predict observations, implement mean,"
    " variance, cdf and draw of bnnviz.targets.Likelihood."
)
_MOST_WORK, _LEAST_DRAWS = 12_000_000, 100  # default maximum of rows times draws, and the minimum number of draws
_MOST_DRAWS = 1000  # maximum draws of a quantile
_ITERATIONS, _PRECISE = 60, 1e-8  # of Newton's method, and the precision of a probability
_NUMBERS = 400_000  # predictions of all draws at once, which fit into a cache
_FAR_QUANTILE = 0.99
_MOST_NEIGHBOURS = 20_000  # maximum training rows of the nearest-neighbour search
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, repr=False)
class PredictiveDistribution(Suggesting):
    """Posterior predictive distribution of a network at given inputs.

    Attributes
    ----------
    task : {"regression", "classification", "outputs"}
        With ``outputs`` the likelihood is a function, and ``mean``, ``epistemic_sd`` and ``quantiles`` refer to the
        outputs. See ``note``.
    far : ndarray of bool, shape (rows,)
        Whether the distance to the nearest training row exceeds the 99% quantile of this distance among the training
        rows. The prior dominates the predictions at such rows.
    mean, sd : ndarray or None, shape (rows,) or (rows, columns)
        Mean and standard deviation of an observation, in the unit of the target.
    epistemic_sd, aleatoric_sd : ndarray or None, shape (rows,) or (rows, columns)
        Epistemic and aleatoric standard deviation. The sum of their squares is the square of `sd`.
    quantiles : dict of ndarray
        Quantiles of an observation, by probability.
    class_names : list of str
        Names of the classes.
    probabilities : ndarray or None, shape (rows, classes)
    entropy, mutual_information : ndarray or None, shape (rows,)
        Entropy of the predicted class in nats, and its epistemic part.
    notes : ndarray of str or None, shape (rows,)
        Missing or unknown inputs of each row of a table, or None for other data.

    Examples
    --------
    >>> import bnnviz
    >>> import numpy as np
    >>> one = {"mean": np.array([1.5]), "sd": np.array([0.5]), "far": np.array([False])}
    >>> found = bnnviz.PredictiveDistribution(task="regression", quantiles={}, class_names=[], **one)
    >>> float(found.to_frame()["sd"][0])
    0.5
    """

    task: str
    far: np.ndarray
    mean: np.ndarray | None = None
    sd: np.ndarray | None = None
    epistemic_sd: np.ndarray | None = None
    aleatoric_sd: np.ndarray | None = None
    quantiles: dict[float, np.ndarray]
    class_names: list[str]
    probabilities: np.ndarray | None = None
    entropy: np.ndarray | None = None
    mutual_information: np.ndarray | None = None
    note: str = ""
    notes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.far)

    def __repr__(self) -> str:
        return f"<PredictiveDistribution: {self.task}, rows {len(self)}, columns {', '.join(self.columns())}>"

    @property
    def classes(self) -> np.ndarray:
        """Name of the most probable class of each row.

        Raises
        ------
        BnnvizError
            For a regression.
        """
        if self.probabilities is None:
            raise BnnvizError("Regression has no classes. Use mean.", "task")
        return np.array(self.class_names)[self.probabilities.argmax(1)]

    def columns(self) -> dict[str, np.ndarray]:
        """Return all columns by name; ``lower_90`` and ``upper_90`` are the ends of the central 90% interval."""
        if self.probabilities is None:
            parts = {_quantile_name(level): values for level, values in self.quantiles.items()}
            parts |= {name: getattr(self, name) for name in ("mean", "sd", "epistemic_sd", "aleatoric_sd")}
            found = {}
            for name, values in parts.items():
                if values is not None and values.ndim == 2:
                    found |= {f"{name}[{k}]": values[:, k] for k in range(values.shape[1])}
                elif values is not None:
                    found[name] = values
            return found | self._last_columns()
        each = {f"p({name})": self.probabilities[:, i] for i, name in enumerate(self.class_names)}
        parts = {"entropy": self.entropy, "mutual_information": self.mutual_information}
        return {"class": self.classes} | each | parts | self._last_columns()

    def _last_columns(self) -> dict[str, np.ndarray]:
        return {"far": self.far} | ({} if self.notes is None else {"notes": self.notes})

    def to_frame(self) -> pd.DataFrame:
        """Return `columns` as a pandas frame."""
        return optional.require("pandas", "A frame needs").DataFrame(self.columns())


def _quantile_name(probability: float) -> str:
    """Return the median's name, or that of an end of a central interval."""
    if probability == 0.5:
        return "median"
    return f"{'lower' if probability < 0.5 else 'upper'}_{100 * abs(1 - 2 * probability):g}"


class Surroundings:
    """Detect rows that are far from a network's current training rows (`PredictiveDistribution.far`)."""

    def __init__(self, target: BNN) -> None:
        from scipy.spatial import cKDTree

        self._target, self._tree, self._reach = target, None, np.inf
        known = target.seen(target.x[evenly(len(target.x), _MOST_NEIGHBOURS)]).flatten(1).double().cpu().numpy()
        # Integers of an embedding are names, without distances.
        if len(known) < 3 or target.whole:
            return
        self._tree = cKDTree(known)
        among, _ = self._tree.query(known, k=2)
        self._reach = max(float(np.quantile(among[:, 1], _FAR_QUANTILE)), 1e-9)

    def far(self, rows: torch.Tensor) -> np.ndarray:
        """Return which rows, scaled like the target's, are further away than training rows are from each other."""
        if self._tree is None:
            return np.zeros(len(rows), dtype=bool)
        seen = self._target.seen(rows).flatten(1).double().cpu().numpy()
        # Beyond the bound, which is exclusive, the distance is infinite.
        apart, _ = self._tree.query(seen, distance_upper_bound=np.nextafter(self._reach, np.inf))
        return np.isinf(apart)


def predict(
    given: NetworkDraws,
    x: np.ndarray | Imputed,
    quantiles: Sequence[float] = QUANTILES,
    surroundings: Surroundings | None = None,
    draws: int | None = None,
) -> PredictiveDistribution:
    """Predict rows (rows, ...) in the units of the data with all draws, or as many as a few seconds allow."""
    quantiles = [float(level) for level in quantiles]
    if not all(0 < level < 1 for level in quantiles):
        raise BnnvizError(f"quantiles must be above 0 and below 1, not {quantiles}.", "quantiles")
    rows, theta, shares = _inputs(given.target, x), *_weighed(given)
    count = len(rows[0])
    kept = evenly(len(theta), max(_LEAST_DRAWS, _MOST_WORK // max(count, 1)) if draws is None else draws)
    theta, shares = theta[torch.as_tensor(kept, device=theta.device)], shares[kept] / shares[kept].sum()
    task = given.target.likelihood.task
    far = (surroundings or Surroundings(given.target)).far(rows[0])
    if task == "classification":
        found = predictive(given.target, theta, rows, shares)
        return PredictiveDistribution(
            task=task,
            far=far,
            quantiles={},
            class_names=class_names(given.target),
            probabilities=found.probabilities,
            entropy=found.entropy,
            mutual_information=found.mutual,
        )
    size = max(1, _NUMBERS // len(theta))
    parts = [
        _numbers(given.target, theta, shares, [x[begin : begin + size] for x in rows], quantiles)
        for begin in range(0, count, size)
    ]
    *moments, levels = zip(*parts, strict=True)
    mean, epistemic, aleatoric = map(np.concatenate, moments)
    of_noise = {"sd": np.hypot(epistemic, aleatoric), "aleatoric_sd": aleatoric}
    return PredictiveDistribution(
        task=task,
        far=far,
        mean=mean,
        epistemic_sd=epistemic,
        quantiles=dict(zip(quantiles, np.concatenate(levels, axis=1), strict=True)),
        class_names=[],
        **({"note": _OF_OUTPUTS} if task == "outputs" else of_noise),
    )


def _numbers(
    target: BNN, theta: torch.Tensor, shares: np.ndarray, rows: list[torch.Tensor], quantiles: Sequence[float]
) -> tuple[np.ndarray, ...]:
    """Return mean, epistemic and aleatoric sd (rows, ...) and quantiles (levels, rows, ...)."""
    if target.likelihood.task == "outputs":
        return _of_outputs(outputs_at(target, theta, rows).numpy(), shares, quantiles)
    law, kept = ObservationLaw(target, theta, outputs_at(target, theta, rows)), evenly(len(theta), _MOST_DRAWS)
    return *law.moments(shares), quantiles_of(law.part(kept), shares[kept] / shares[kept].sum(), quantiles)


def _of_outputs(f: np.ndarray, shares: np.ndarray, levels: Sequence[float]) -> tuple[np.ndarray, ...]:
    """Return mean, sd, nothing, and quantiles (levels, rows, ...) of outputs (draws, rows, outputs)."""
    f = f[..., 0] if f.shape[-1] == 1 else f
    mean = np.tensordot(shares, f, 1)
    sd = np.sqrt(np.maximum(np.tensordot(shares, np.square(f - mean), 1), 0.0))
    order = np.argsort(f, axis=0)
    reached = shares[order].cumsum(0)
    found = [
        np.take_along_axis(f, np.take_along_axis(order, (reached < level - 1e-12).sum(0, keepdims=True), 0), 0)[0]
        for level in levels
    ]
    return mean, sd, np.zeros_like(mean), np.stack(found) if found else np.empty((0, *mean.shape))


def predictive_draws(given: NetworkDraws, x: np.ndarray | Imputed, draws: int = 1000, seed: int = 0) -> np.ndarray:
    """Draw observations in the target's unit, or class indices, (draws, rows) or (draws, rows, columns), at rows."""
    if draws < 1:
        raise BnnvizError(f"draws = {draws} must be at least 1.", "draws")
    rng = np.random.default_rng(seed)
    rows, theta, shares = _inputs(given.target, x), *_weighed(given)
    # One per draw while there are enough: then only the noise is drawn.
    alike = bool(np.ptp(shares) == 0)
    chosen = rng.choice(len(theta), draws, replace=not alike or draws > len(theta), p=None if alike else shares)
    theta = theta[torch.as_tensor(chosen, device=theta.device)]
    if given.target.likelihood.task == "outputs":
        raise BnnvizError(f"{_OF_OUTPUTS} Draw outputs by bnnviz.BNN.outputs, or give such a likelihood.", "likelihood")
    if given.target.likelihood.task == "regression":
        return ObservationLaw(given.target, theta, outputs_at(given.target, theta, rows)).draw(rng)
    made = np.empty((draws, len(rows[0])), dtype=int)
    size = max(1, _NUMBERS // draws)
    for begin in range(0, made.shape[1], size):
        some = [x[begin : begin + size] for x in rows]
        made[:, begin : begin + size] = drawn_classes(probabilities_at(given.target, theta, some), rng)
    return made


def functions(given: NetworkDraws, x: np.ndarray | Imputed) -> np.ndarray:
    """Return means, class probabilities or outputs of each draw without noise, (chains, draws, rows, ...)."""
    target, theta, rows = given.target, given.theta, _inputs(given.target, x)
    if target.likelihood.task == "classification":
        found = probabilities_at(target, theta, rows)
    elif target.likelihood.task == "outputs":
        found = outputs_at(target, theta, rows).numpy()
    else:
        found = ObservationLaw(target, theta, outputs_at(target, theta, rows)).means
    return found.reshape(given.chains, -1, *found.shape[1:])


def log_densities(given: NetworkDraws, x: np.ndarray | Imputed, y: np.ndarray) -> np.ndarray:
    """Return the log density or log probability (rows,) of observations under the averaged predictive."""
    rows, theta, shares = _inputs(given.target, x), *_weighed(given)
    target, observed = given.target, np.asarray(y, dtype=float)
    scale = target.data_set.standardiser if isinstance(target.data_set, DataSet) else None
    classes = target.likelihood.task == "classification"
    scaled = observed if scale is None or classes else scale.y(observed)
    y_kept = torch.as_tensor(scaled, device=target.device).to(target.y.dtype)
    logs = torch.as_tensor(np.log(shares), device=target.device)
    sums = []
    with torch.no_grad():
        for version, x in enumerate(rows):
            chosen, weights = theta[version :: len(rows)], logs[version :: len(rows)]
            size = at_once(target, len(x))
            for part, share in zip(torch.split(chosen, size), torch.split(weights, size), strict=True):
                density = target.likelihood_at(part).log_density(target.outputs(part, x), y_kept)
                sums.append(torch.logsumexp(density.double() + share[:, None], 0).cpu())
    found = torch.logsumexp(torch.stack(sums), 0).numpy()
    return found - log_scale(target)


def _inputs(target: BNN, x: np.ndarray | Imputed) -> list[torch.Tensor]:
    """Return the versions of rows in the form of the target's inputs; one for rows without unknown cells."""
    if isinstance(x, Imputed):
        return [_inputs(target, version)[0] for version in x.versions]
    data, shape = target.data_set, tuple(target.x.shape[1:])
    x = np.asarray(x)
    x = x[:, None] if x.ndim == 1 and shape == (1,) else x
    if x.dtype.kind not in "biuf" or x.ndim != 1 + len(shape) or x.shape[1:] != shape:
        raise BnnvizError(
            f"The rows to predict have the shape {x.shape}; the network takes numbers of the shape (rows,"
            f" {', '.join(map(str, shape))}).",
            "x",
        )
    if not np.isfinite(x.astype(float)).all():
        raise BnnvizError("The rows to predict contain missing or infinite values. Remove or impute these rows.", "x")
    if target.whole and (x != np.round(x)).any():
        raise BnnvizError("The network requires integer inputs, but the rows to predict contain other numbers.", "x")
    if isinstance(data, DataSet):
        x = data.standardiser.x(x.astype(float))
    return [torch.as_tensor(x, device=target.device).to(target.x.dtype)]


def _weighed(given: NetworkDraws) -> tuple[torch.Tensor, np.ndarray]:
    """Return the draws with weight, and their shares of sum 1."""
    shares = given.shares
    kept = np.flatnonzero(shares > 0)
    return given.theta[torch.as_tensor(kept, device=given.theta.device)], shares[kept]


def conformalised(
    given: NetworkDraws, found: PredictiveDistribution, draws: int | None = None
) -> PredictiveDistribution:
    r"""Return a prediction with quantiles that are corrected by the held-out rows of the network's data.

    This is split conformal prediction. For a level :math:`\tau > 1/2` the predicted quantile :math:`q_\tau(x)` becomes
    :math:`q_\tau(x) + c \, s(x)` with the predictive sd s, where c is the :math:`\lceil (n + 1) \tau \rceil`-th
    smallest :math:`(y_i - q_\tau(x_i)) / s(x_i)` of the n held-out rows; levels below 1/2 are mirrored. The error of a
    new row is exchangeable with theirs, so its rank is uniform and the observation is below the corrected quantile with
    probability :math:`\tau` at least. Quantiles are corrected in this way by Romano, Patterson and Candès (2019,
    https://arxiv.org/abs/1905.03222), with s = 1.
    """
    data = given.target.data_set
    if found.task != "regression" or not isinstance(data, DataSet):
        raise BnnvizError("A conformal correction requires a regression on a table with held-out rows.", "conformal")
    levels, rows = sorted(found.quantiles), len(data.y_test)
    share = max((max(level, 1 - level) for level in levels if level != 0.5), default=0.0)
    if math.ceil((rows + 1) * share - _ROUNDING) > rows:
        raise BnnvizError(
            f"A conformal correction of the {max(levels):g} quantile requires at least"
            f" {math.ceil(share / (1 - share) - _ROUNDING)} held-out rows, but there are {rows}. Choose a narrower"
            " interval.",
            "conformal",
        )
    seen = predict(given, data.x_test, levels, draws=draws)
    moved = []
    for level in levels:
        side = np.sign(level - 0.5)
        errors = np.sort(side * (data.y_test - seen.quantiles[level]) / seen.sd, axis=0)
        rank = math.ceil((rows + 1) * max(level, 1 - level) - _ROUNDING)
        moved.append(found.quantiles[level] + side * errors[rank - 1] * found.sd)
    # The coverage of an interval given the held-out rows has a beta distribution.
    held = max(levels) - min(levels)
    margin = 2 * math.sqrt(held * (1 - held) / (rows + 2))
    note = (
        f"Quantiles are corrected by {rows} held-out rows: the coverage of {held:.0%} intervals varies by {margin:.0%}"
        " with the choice of these rows."
    )
    # Corrections of neighbouring levels may cross.
    return replace(found, quantiles=dict(zip(levels, np.sort(moved, axis=0), strict=True)), note=note)

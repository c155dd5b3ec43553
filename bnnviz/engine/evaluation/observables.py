"""Predict observations by draws of a network with any likelihood of numbers: moments, quantiles, draws and scores.

A law is a mixture over draws. Its variance is the mean of the draws' variances plus the variance of their means.
Numbers are in the target's unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz.diagnostics.predictive.metrics import Figures, crps_of_draws, number_metrics
from bnnviz.targets import BNN
from bnnviz.targets.likelihoods import Normal

_HALVINGS, _DOUBLINGS = 200, 60  # draws may differ by many powers of ten
_PRECISE = 1e-8  # of a probability
_REACH = 0.3  # standard deviations from a normal approximation to the ends of the first bracket of quantiles
_SCORED = 1000  # maximum draws of a mixture to estimate its CRPS
_MOST_SCORED = 400_000  # maximum simulated numbers for it


class ObservationLaw:
    """The laws of observations at rows, from outputs ``f`` (draws, rows, outputs) of draws ``theta`` (draws, dim)."""

    def __init__(self, target: BNN, theta: Tensor, f: Tensor) -> None:
        self._target, self._theta, self._f = target, theta, f.double().cpu()
        self._likelihood = target.likelihood_at(theta.double().cpu())
        self._scale = None if target.data_set is None else target.data_set.standardiser
        means, variances = (of(self._f).numpy() for of in (self._likelihood.mean, self._likelihood.variance))
        unit = 1.0 if self._scale is None else self._scale.y_scale
        self.means = means if self._scale is None else self._scale.y_back(means)
        self.sds = np.sqrt(variances) * unit
        self.discrete = self._likelihood.discrete
        self.normal = isinstance(self._likelihood, Normal) and self._likelihood.columns == 1

    def _kept(self, y: np.ndarray) -> np.ndarray:
        return y if self._scale is None else self._scale.y(y)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Return the probability (draws, rows, ...) of at most y."""
        return self._likelihood.cdf(self._f, self._kept(y))

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return the log density (draws, rows) of observations (rows, ...), on the network's scale."""
        return self._likelihood.log_density(self._f, torch.as_tensor(self._kept(y))).numpy()

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw an observation for each draw and row."""
        drawn = self._likelihood.draw(self._f, rng)
        return drawn if self._scale is None else self._scale.y_back(drawn)

    def moments(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean, epistemic and aleatoric sd (rows, ...) of the mixture with shares of sum 1."""
        mean = np.tensordot(shares, self.means, 1)
        epistemic = np.tensordot(shares, np.square(self.means - mean), 1)
        return mean, np.sqrt(np.maximum(epistemic, 0.0)), np.sqrt(np.tensordot(shares, np.square(self.sds), 1))

    def part(self, places: np.ndarray) -> ObservationLaw:
        """Return the law of some of the draws."""
        chosen = torch.as_tensor(places)
        return ObservationLaw(self._target, self._theta[chosen.to(self._theta.device)], self._f[chosen])


def quantiles(law: ObservationLaw, shares: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Return quantiles (levels, rows, ...) of the mixture of laws; for counts the smallest count that reaches it."""
    found = [_quantile(law, shares, level) for level in levels]
    return np.stack(found) if found else np.empty((0, *law.means.shape[1:]))


def _quantile(law: ObservationLaw, shares: np.ndarray, level: float) -> np.ndarray:
    """Find a quantile by Chandrupatla (1997, doi:10.1016/S0965-9978(96)00051-8), or by bisection for counts."""
    from scipy.special import ndtri

    def above(y: np.ndarray) -> np.ndarray:
        return np.tensordot(shares, law.cdf(y), 1) - level

    mean, *sds = law.moments(shares)
    sd = np.maximum(np.hypot(*sds), np.finfo(float).tiny)
    guess, step = mean + ndtri(level) * sd, _REACH * sd
    low, high = guess - step, guess + step
    for _ in range(_DOUBLINGS):
        at_low, at_high = above(low), above(high)
        left, right = at_low >= 0, at_high < 0
        if not (left | right).any():
            break
        step = 2 * step
        low, high = np.where(left, low - step, low), np.where(right, high + step, high)
    if law.discrete:
        low, high = np.floor(low), np.ceil(high)
        for _ in range(_HALVINGS):
            if (high - low <= 1).all():
                break
            middle = np.floor((low + high) / 2)
            reached = above(middle) >= 0
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high
    share: Any = 0.5
    for _ in range(_HALVINGS):
        middle = high + share * (low - high)
        at_middle = above(middle)
        same = (at_middle < 0) == (at_high < 0)
        third, at_third = np.where(same, high, low), np.where(same, at_high, at_low)
        low, at_low = np.where(same, low, high), np.where(same, at_low, at_high)
        high, at_high = middle, at_middle
        if (np.minimum(np.abs(at_low), np.abs(at_high)) < _PRECISE).all():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            xi, phi = (high - low) / (third - low), (at_high - at_low) / (at_third - at_low)
            curved = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            inverse = at_high / (at_low - at_high) * at_third / (at_low - at_third)
            inverse += (third - high) / (low - high) * at_high / (at_third - at_high) * at_low / (at_third - at_low)
        share = np.where(curved, np.clip(inverse, 1e-6, 1 - 1e-6), 0.5)
    return np.where(np.abs(at_low) < np.abs(at_high), low, high)


def figures(law: ObservationLaw, observed: np.ndarray, together: bool) -> Figures:
    """Return the metrics of predicted observations (rows,) or (rows, columns), for equally weighted draws."""
    mse = float(np.square(law.means.mean(0) - observed).mean())
    density = law.log_density(observed)
    nll = float(np.log(len(density)) - np.logaddexp.reduce(density, axis=0).mean())
    scores = _crps(law, observed)
    values: dict[str, float | None] = {"mse": mse, "rmse": mse**0.5, "nll": nll, "crps": float(scores.mean())}
    if together:
        upper = law.cdf(observed).mean(0)
        lower = law.cdf(observed - 1).mean(0) if law.discrete else upper
        equal = np.full(len(law.means), 1 / len(law.means))
        for name, tail in (("coverage_50", 0.25), ("coverage_90", 0.05)):
            # A count is within an interval if it is in neither tail.
            values[name] = float(((upper >= tail) & (lower <= 1 - tail)).mean())
            if law.discrete:
                low, high = quantiles(law, equal, (tail, 1 - tail))
                values[f"{name}_expected"] = float((law.cdf(high) - law.cdf(low - 1)).mean())
    return Figures(values, {}, scores)


def _crps(law: ObservationLaw, observed: np.ndarray) -> np.ndarray:
    """Return the CRPS of the mixture at each row, exactly or estimated from equally many observations per draw."""
    if law.normal:
        return number_metrics(law.means, law.sds[:, 0], observed).scores
    parts = len(law.means)
    # At least two of each, for a distance between them.
    each = max(2, min(_SCORED // parts, _MOST_SCORED // max(law.means.size, 1)))
    drawn = law.part(np.repeat(np.arange(parts), each)).draw(np.random.default_rng(0))
    return crps_of_draws(drawn.reshape(parts, each, *observed.shape), observed)

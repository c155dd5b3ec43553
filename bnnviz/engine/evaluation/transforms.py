"""Compute the probability integral transforms of a network's test rows under the predictive distribution."""

from __future__ import annotations

import numpy as np

from bnnviz.engine.evaluation.metrics import NetworkDraws, normalised, predict
from bnnviz.engine.evaluation.predictions import observed_rows
from bnnviz.errors import BnnvizError


def transforms(given: NetworkDraws, seed: int = 0) -> np.ndarray:
    """Return the predictive probability (rows,) of at most the observation, at each test row, one column after another.

    For counts it is drawn between the probabilities of less than and of at most the observation (Czado, Gneiting and
    Held 2009, https://doi.org/10.1111/j.1541-0420.2009.01191.x).
    """
    target = given.target
    if target.likelihood.task in ("classification", "outputs"):
        raise BnnvizError("Only numbers have a probability integral transform; give a run of a regression.", "source")
    shares = (
        np.full(len(given.theta), 1 / len(given.theta)) if given.log_weights is None else normalised(given.log_weights)
    )
    found, observed = predict(target, given.theta), observed_rows(target)
    y = observed.reshape(found.law.means.shape[1:])
    upper = np.tensordot(shares, found.law.cdf(y), 1)
    if found.law.discrete:
        lower = np.tensordot(shares, found.law.cdf(y - 1), 1)
        upper = lower + np.random.default_rng(seed).uniform(size=upper.shape) * (upper - lower)
    return np.clip(upper.ravel(), 0.0, 1.0)

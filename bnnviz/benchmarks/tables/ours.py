"""Predict a table by default settings: a network whose sampler a pilot chooses, in so many CPU seconds."""

from __future__ import annotations

import time
import warnings

import numpy as np

from bnnviz.benchmarks.tables import peers
from bnnviz.data.dataset import Task
from bnnviz.engine.evaluation.predictive_distribution import log_densities
from bnnviz.sklearn import BNNClassifier, BNNRegressor

_LEVELS = (0.5 - peers.COVERAGE / 2, 0.5 + peers.COVERAGE / 2)


def predict(
    task: Task, x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray, seconds: float
) -> tuple[dict[str, float], str]:
    """Fit to training rows; return the figures on the test rows, and what was chosen."""
    made = (BNNRegressor if task == "regression" else BNNClassifier)(minutes=seconds / 60, random_state=0)
    made._clock = time.process_time
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chains that disagree: the figures show what that does
        made.fit(x, y)
    mixed = "" if np.isnan(made.rhat_) else f", R-hat of predictions {made.rhat_:.2f}"
    chosen = f"{made.plan_.sampler}{mixed}"
    if task == "classification":
        return peers.figures_of_classes(made.predict_proba(xt), yt), chosen
    found = made.predict_distribution(xt, _LEVELS)
    low, high = (found.quantiles[level] for level in _LEVELS)
    held = (yt >= low) & (yt <= high)
    return peers.figures_of_numbers(peers.Numbers(found.mean, log_densities(made.posterior_, xt, yt), held), yt), chosen

"""Bayesian neural networks as estimators of scikit-learn: `BNNRegressor` and `BNNClassifier`."""

from __future__ import annotations

from bnnviz.sklearn.estimators import BNNClassifier, BNNRegressor

__all__ = ["BNNClassifier", "BNNRegressor"]

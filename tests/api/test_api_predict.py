"""Predictions by draws of the prior."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bnnviz


def test_the_prior_predictive_of_a_linear_model_is_the_known_normal_law() -> None:
    x = np.linspace(-1, 1, 12)[:, None]
    module = torch.nn.Linear(1, 1)
    target = bnnviz.BNN(module, (x, x[:, 0]), noise_sd=0.3, prior_sd=0.5, prior={"weight": 2.0})
    rows = np.array([[0.0], [1.0], [-3.0]])
    found = target.prior_predictive(rows, draws=10_000, seed=1)
    epistemic = np.sqrt(0.5**2 + (2.0 * rows[:, 0]) ** 2)
    np.testing.assert_allclose(found.epistemic_sd, epistemic, rtol=0.03)
    np.testing.assert_allclose(found.sd, np.hypot(epistemic, 0.3), rtol=0.03)
    assert (np.abs(found.mean) < 5 * epistemic / np.sqrt(10_000)).all()
    with pytest.raises(bnnviz.BnnvizError):
        target.prior_predictive([[1.0, 2.0]])
    with pytest.raises(bnnviz.BnnvizError):
        target.prior_predictive(rows, draws=0)

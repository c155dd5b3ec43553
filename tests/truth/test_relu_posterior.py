"""A network of three ReLU units under processes: its predictions against two references that share no code with us.

Both were computed once for the rows below, noise sd 0.5, prior N(0, 1) of each of the ten weights:

- importance sampling from the prior, 10 million draws in NumPy, weights exp(-squares / 2 sd^2), of which 103,654 are
  worth as many independent draws; errors by a jackknife over 16 groups.
- NUTS of numpyro 0.22, 48 chains of 500 and 1,000 draws, errors from the chains' own means. It agrees with the former:
  the largest of the 12 differences is 1.7 of its standard errors.

The figures are means of f and of f^2 at five inputs, of U, and of f(3) > 2. Chains begin at draws of the posterior
(resampled from the prior by the same weights), so that they are in equilibrium from the first step.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import bnnviz
from tests.truth.chains import LEVEL, run_chains
from tests.truth.test_samplers import make

X = np.array([-2.0, -1.5, -0.8, -0.3, 0.2, 0.9, 1.4, 2.1])
Y = np.array([0.9, 0.7, 0.2, -0.1, 0.1, 0.8, 1.5, 1.7])
AT = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
NOISE_SD = 0.5
IMPORTANCE = (
    np.array(
        [0.91477, 0.36844, 0.32218, 0.86593, 2.3559, 1.39334, 0.19677, 0.18532, 0.81295, 6.12626, 6.44935, 0.68471]
    ),
    np.array(
        [0.00201, 0.00084, 0.00079, 0.00049, 0.00195, 0.00667, 0.00055, 0.00044, 0.0009, 0.00912, 0.00566, 0.00139]
    ),
)
NUTS = (
    np.array(
        [0.91459, 0.36771, 0.31948, 0.86468, 2.36226, 1.39245, 0.19615, 0.18388, 0.81051, 6.15486, 6.4293, 0.68556]
    ),
    np.array([0.00436, 0.00128, 0.00151, 0.0012, 0.00361, 0.0093, 0.00109, 0.0012, 0.00211, 0.01683, 0.01763, 0.00228]),
)
CHAINS, DRAWS = 600, 12


def posterior(noise_sd: float = NOISE_SD) -> bnnviz.BNN:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1))
    return bnnviz.BNN(module, (X[:, None], Y), noise_sd=noise_sd)


def outputs(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return f (..., inputs) of weights (..., 10) in the order of the module's parameters."""
    hidden = np.maximum(x[:, None] * theta[..., None, :3] + theta[..., None, 3:6], 0)
    return (hidden * theta[..., None, 6:9]).sum(-1) + theta[..., 9:]


def figures(theta: np.ndarray) -> np.ndarray:
    f = outputs(theta, AT)
    u = np.square(outputs(theta, X) - Y).sum(-1) / (2 * NOISE_SD**2) + np.square(theta).sum(-1) / 2
    return np.concatenate([f, f**2, u[..., None], f[..., 4:] > 2], -1)


def starts(chains: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    theta = rng.standard_normal((400_000, 10))
    weights = np.exp(-np.square(outputs(theta, X) - Y).sum(1) / (2 * NOISE_SD**2))
    return theta[rng.choice(len(theta), chains, p=weights / weights.sum())]


def largest(draws: np.ndarray) -> tuple[float, float]:
    """Return the largest of the 12 standardised errors against importance sampling, and its probability."""
    found = figures(draws).mean(1)
    error = np.sqrt(found.var(0, ddof=1) / len(found) + IMPORTANCE[1] ** 2)
    z = np.abs((found.mean(0) - IMPORTANCE[0]) / error).max()
    return float(z), float(min(1.0, 2 * stats.norm.sf(z) * len(error)))


def chains_of(sampler: str, noise_sd: float = NOISE_SD) -> np.ndarray:
    target = posterior(noise_sd)
    mode = starts(1)[0] if sampler == "boomerang" else None
    return run_chains(target, make(sampler, {"spacing": 1.0}), starts(CHAINS), DRAWS, mode=mode)


def test_the_two_references_agree() -> None:
    """Within 3.5 of their errors together, which 12 figures exceed once in 180."""
    z = (IMPORTANCE[0] - NUTS[0]) / np.hypot(IMPORTANCE[1], NUTS[1])
    assert np.abs(z).max() < 3.5


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["zigzag", "bps", "sigma_bps", "boomerang"])
def test_a_relu_network_is_sampled_right(sampler: str) -> None:
    z, p = largest(chains_of(sampler))
    assert p > LEVEL, z


@pytest.mark.slow
def test_another_posterior_is_distinguished() -> None:
    z, p = largest(chains_of("bps", noise_sd=0.75))
    assert p < LEVEL, z

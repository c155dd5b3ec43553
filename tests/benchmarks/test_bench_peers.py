"""Samplers of other libraries: each gives draws of the density that it is given, where it is installed."""

import numpy as np
import pytest

from bnnviz import diagnostics
from bnnviz.benchmarks.suites.mixing import PEERS


@pytest.mark.slow
@pytest.mark.parametrize("peer", PEERS)
def test_draws_are_those_of_the_density(peer: str) -> None:
    module, sample = PEERS[peer]
    pytest.importorskip(module)
    jnp = pytest.importorskip("jax.numpy")
    mean, sd = np.array([1.0, -2.0, 0.5], dtype="float32"), np.array([1.0, 0.5, 2.0], dtype="float32")
    found = sample(lambda x: 0.5 * jnp.square((x - mean) / sd).sum(), 3, 6.0, 4)
    assert found.draws.shape[0] == 4 and found.draws.shape[2] == 3 and found.cpu_seconds > 0
    draws = found.draws.astype(float)
    size = diagnostics.ess_each(draws)
    assert (size > 40).all()
    off = (draws.mean((0, 1)) - mean) / sd * np.sqrt(size)
    assert np.abs(off).max() < 4
    # The relative standard error of a standard deviation is about 1 / sqrt(2 n).
    assert np.abs(draws.std((0, 1)) / sd - 1).max() < 4 / np.sqrt(2 * size.min())

"""Sample the posteriors with numpyro's NUTS, where it is installed: on the same coordinates, in double precision."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bnnviz.benchmarks.posteriors.catalogue import Posterior

_CHUNK = 250  # draws of a compiled call
WARMUP = 500


class NumpyroRun(NamedTuple):
    """Draws (chains, draws, dim), how many of them diverged, the gradients and the CPU seconds that all of it took."""

    draws: np.ndarray
    divergences: int
    gradients: int
    cpu_seconds: float


def flat_potential(posterior: Posterior) -> Callable[[Any], Any]:
    """Return U of one state (dim,) of our coordinates, made by numpyro from its own model of the posterior."""
    import jax
    from numpyro.infer.util import initialize_model

    from bnnviz.benchmarks.posteriors import numpyro_models

    jax.config.update("jax_enable_x64", True)
    model = getattr(numpyro_models, posterior.model)
    start = initialize_model(jax.random.key(0), model, model_args=(posterior.data(),))
    shapes = {name: value.shape for name, value in start.param_info.z.items()}

    def potential(x: Any) -> Any:
        sites, at = {}, 0
        for name, size in posterior.sites:
            sites[name] = x[at : at + size].reshape(shapes[name])
            at += size
        return start.potential_fn(sites)

    return potential


def sample(
    potential: Callable[[Any], Any],
    dim: int,
    seconds: float,
    chains: int = 4,
    seed: int = 0,
    most: int = 10**9,
    dtype: str = "float64",
) -> NumpyroRun:
    """Sample with numpyro's own defaults for so many CPU seconds, compilation and warm-up included.

    Parameters
    ----------
    potential : callable
        U of one state (dim,), in JAX.
    dim : int
        Dimension of a state.
    seconds : float
        CPU seconds; the last 250 draws are finished.
    chains, seed : int
        Chains, which begin anywhere in (-2, 2) as in Stan.
    dtype : {"float32", "float64"}
    """
    import jax
    from numpyro.infer import MCMC, NUTS

    begun = time.process_time()
    key, start_key = jax.random.split(jax.random.key(seed))
    start = jax.random.uniform(start_key, (chains, dim), dtype, minval=-2.0, maxval=2.0)
    mcmc = MCMC(
        NUTS(potential_fn=potential),
        num_warmup=WARMUP,
        num_samples=_CHUNK,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    fields = ("diverging", "num_steps")
    mcmc.warmup(key, init_params=start, extra_fields=fields, collect_warmup=True)
    gradients, diverged, parts = int(mcmc.get_extra_fields()["num_steps"].sum()), 0, []
    while not parts or time.process_time() - begun < seconds:
        mcmc.run(mcmc.post_warmup_state.rng_key, extra_fields=fields)
        parts.append(np.asarray(mcmc.get_samples(group_by_chain=True)))
        diverged += int(mcmc.get_extra_fields()["diverging"].sum())
        gradients += int(mcmc.get_extra_fields()["num_steps"].sum())
        mcmc.post_warmup_state = mcmc.last_state
    return NumpyroRun(np.concatenate(parts, 1), diverged, gradients, time.process_time() - begun)

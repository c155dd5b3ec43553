"""Run samplers of other libraries: numpyro, blackjax and pdmp-jax.

Every peer works on one thread, in the precision of our run, and its programs are compiled before the clock starts, as
ours are. JAX traces programs anew for each sampler, so compiled programs are kept in a folder for as long as the
process lives. `PeerRun.compiled` counts the programs that had to be compiled while the clock ran: it has to be 0.
"""

from __future__ import annotations

import atexit
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

# JAX reads it once, when its first program is run. Threads would cost CPU time and bring nothing at these sizes.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

WARMUP = 500
_CHUNK = 250  # draws of a compiled call
_EVENTS = 20_000  # of all chains in a compiled call of pdmp-jax

#: U of one state (dim,), in JAX.
Potential = Callable[[Any], Any]


class PeerRun(NamedTuple):
    """What a peer made of its CPU seconds; ``draws`` has the shape (chains, draws, dim)."""

    draws: np.ndarray
    gradients: float
    divergences: int
    cpu_seconds: float
    compiled: int = 0


@cache
def _missed_programs() -> list[float]:
    """Keep compiled programs until the process ends, and count those that are not found among them."""
    import jax

    programs = tempfile.TemporaryDirectory(prefix="bnnviz-jax-")
    atexit.register(programs.cleanup)
    jax.config.update("jax_compilation_cache_dir", programs.name)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    missed: list[float] = []

    def listen(event: str, **_: Any) -> None:
        if event == "/jax/compilation_cache/cache_misses":
            missed.append(time.monotonic())

    jax.monitoring.register_event_listener(listen)
    return missed


def compiled_before(sample: Callable[[float], PeerRun], seconds: float) -> PeerRun:
    """Return what ``sample`` gives for so many seconds, after a short call that has compiled its programs."""
    missed = _missed_programs()
    sample(0.0)
    before = len(missed)
    return sample(seconds)._replace(compiled=len(missed) - before)


@contextmanager
def precision(dtype: str) -> Iterator[None]:
    """Let JAX compute in ``float32`` or ``float64``."""
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", dtype == "float64")
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def numpyro(potential: Potential, dim: int, seconds: float, chains: int, dtype: str) -> PeerRun:
    """Run NUTS of numpyro at its defaults, warm-up included; the last 250 draws are finished."""
    import jax
    from numpyro.infer import MCMC, NUTS

    fields = ("diverging", "num_steps")
    mcmc = MCMC(
        NUTS(potential_fn=potential),
        num_warmup=WARMUP,
        num_samples=_CHUNK,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )

    def sample(seconds: float) -> PeerRun:
        begun = time.process_time()
        mcmc.post_warmup_state = None
        mcmc.warmup(
            jax.random.key(0),
            init_params=_initial(chains, dim, dtype),
            extra_fields=fields,
            collect_warmup=True,
        )
        gradients, diverged, parts = int(mcmc.get_extra_fields()["num_steps"].sum()), 0, []
        while not parts or time.process_time() - begun < seconds:
            mcmc.run(mcmc.post_warmup_state.rng_key, extra_fields=fields)
            parts.append(np.asarray(mcmc.get_samples(group_by_chain=True)))
            found = mcmc.get_extra_fields()
            diverged += int(found["diverging"].sum())
            gradients += int(found["num_steps"].sum())
            mcmc.post_warmup_state = mcmc.last_state
        return PeerRun(np.concatenate(parts, 1), gradients, diverged, time.process_time() - begun)

    with precision(dtype):
        return compiled_before(sample, seconds)


def blackjax(potential: Potential, dim: int, seconds: float, chains: int, dtype: str) -> PeerRun:
    """Run NUTS of blackjax after its window adaptation, which is included."""
    import blackjax
    import jax

    def log_density(x: Any) -> Any:
        return -potential(x)

    adaptation, kernel = blackjax.window_adaptation(blackjax.nuts, log_density), blackjax.nuts.build_kernel()

    def warm(key: Any, x: Any) -> Any:
        (state, settings), info = adaptation.run(key, x, WARMUP)
        return state, settings, info.info.num_integration_steps.sum()

    def chain(key: Any, state: Any, settings: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            state, info = kernel(key, state, log_density, **settings)
            return state, (state.position, info.num_integration_steps, info.is_divergent)

        return jax.lax.scan(step, state, jax.random.split(key, _CHUNK))

    warmed, some = jax.jit(jax.vmap(warm)), jax.jit(jax.vmap(chain))

    def sample(seconds: float) -> PeerRun:
        begun, key = time.process_time(), jax.random.key(0)
        state, settings, steps = warmed(jax.random.split(key, chains), _initial(chains, dim, dtype))
        gradients, diverged, parts = int(steps.sum()), 0, []
        while not parts or time.process_time() - begun < seconds:
            key, now = jax.random.split(key)
            state, (positions, steps, diverging) = some(jax.random.split(now, chains), state, settings)
            parts.append(np.asarray(positions))
            gradients += int(steps.sum())
            diverged += int(diverging.sum())
        return PeerRun(np.concatenate(parts, 1), gradients, diverged, time.process_time() - begun)

    with precision(dtype):
        return compiled_before(sample, seconds)


def _initial(chains: int, dim: int, dtype: str) -> Any:
    """Return initial positions (chains, dim), uniform in (-2, 2) as those of Stan and numpyro."""
    import jax

    return jax.random.uniform(jax.random.key(1), (chains, dim), dtype, minval=-2.0, maxval=2.0)


def pdmp_jax(
    kind: str, mean: np.ndarray, precision_matrix: np.ndarray, seconds: float, chains: int, dtype: str
) -> PeerRun:
    """Run a sampler of pdmp-jax on a Gaussian, with a grid of ten points whose horizon it adapts.

    Parameters
    ----------
    kind : {"bps", "zigzag", "boomerang"}
    mean, precision_matrix : ndarray
    seconds : float
        Of the clock; the time returned is the median of calls, each a path from the mean with its draws.
    chains : int
    dtype : {"float32", "float64"}

    Returns
    -------
    PeerRun
        Of one call: ``draws`` are as many as events and even in time, ``gradients`` is NaN.
    """
    import jax
    import jax.numpy as jnp
    import pdmp_jax as library

    events = max(_EVENTS // chains, 200)
    with precision(dtype):
        m, p = jnp.asarray(mean, dtype), jnp.asarray(precision_matrix, dtype)
        made = {"bps": library.BouncyParticle, "zigzag": library.ZigZag, "boomerang": library.Boomerang}[kind]
        options = {} if kind == "zigzag" else {"refresh_rate": 1.0}
        sampler = made(len(m), lambda x: p @ (x - m), **options)

        def path(seed: Any) -> Any:
            v = jax.random.normal(jax.random.key(seed), m.shape, dtype)
            v = jnp.sign(v) if kind == "zigzag" else v
            skeleton = sampler.sample_skeleton(events, m, v, seed, verbose=False)
            return sampler.sample_from_skeleton(events, skeleton)

        paths, seeds = jax.jit(jax.vmap(path)), itertools.count()

        def sample(seconds: float) -> PeerRun:
            used, end = [], time.perf_counter() + seconds
            while not used or time.perf_counter() < end:
                here = np.array([next(seeds) for _ in range(chains)])
                begun = time.process_time()
                draws = np.asarray(paths(here))
                used.append(time.process_time() - begun)
            return PeerRun(draws, float("nan"), 0, float(np.median(used)))

        return compiled_before(sample, seconds)

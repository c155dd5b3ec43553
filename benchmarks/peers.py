"""Run samplers of other libraries: numpyro and pdmp-jax.

Every peer uses one thread, in the precision of our run. Its programs are traced and compiled before the clock starts,
like ours. `PeerRun.compiled` counts compilations during the measurement, which must be 0.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

# JAX reads this once, before its first program. Threads would cost CPU time without benefit at these sizes.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

WARMUP = 500
_CHUNK = 250  # draws per compiled call
_EVENTS = 20_000  # events of all chains per compiled call of pdmp-jax

#: U of one state (dim,), in JAX.
Potential = Callable[[Any], Any]


class PeerRun(NamedTuple):
    """Result of a peer; ``draws`` has the shape (chains, draws, dim)."""

    draws: np.ndarray
    gradients: float
    divergences: int
    cpu_seconds: float
    compiled: int = 0


@cache
def _compilations() -> list[str]:
    """Return a list to which JAX adds each event of a compilation: tracing, lowering, compiling."""
    import jax

    events: list[str] = []

    def listen(event: str, seconds: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return events


def compiled_before(sample: Callable[[float], PeerRun], seconds: float) -> PeerRun:
    """Return the result of ``sample(seconds)``, after a short call that compiles its programs."""
    events = _compilations()
    sample(0.0)
    before = len(events)
    return sample(seconds)._replace(compiled=len(events) - before)


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
    """Run NUTS of numpyro at its defaults, including warm-up; the last 250 draws are completed.

    The kernel is called in a compiled loop: ``MCMC.run`` retraces its program for every 250 draws, which takes longer
    than the draws.
    """
    import jax
    from numpyro.infer import NUTS

    kernel = NUTS(potential_fn=potential)

    def start(key: Any, x: Any) -> Any:
        return kernel.init(key, WARMUP, x)

    def chain(state: Any) -> Any:
        def step(state: Any, _: None) -> Any:
            state = kernel.sample(state, (), {})
            return state, (state.z, state.num_steps, state.diverging)

        return jax.lax.scan(step, state, None, length=_CHUNK)

    started, some = jax.jit(jax.vmap(start)), jax.jit(jax.vmap(chain))

    def warm(keys: Any, x: Any) -> Any:
        state, gradients = started(keys, x), 0
        for _ in range(WARMUP // _CHUNK):
            state, (_, steps, _) = some(state)
            gradients += int(steps.sum())
        return state, gradients

    with precision(dtype):
        return compiled_before(lambda seconds: _sampled(warm, some, seconds, chains, dim, dtype), seconds)


def _sampled(
    warm: Callable[..., Any], some: Callable[..., Any], seconds: float, chains: int, dim: int, dtype: str
) -> PeerRun:
    """Warm up, then draw until the CPU seconds are used; initial positions are as in Stan, in (-2, 2)."""
    import jax

    begun = time.process_time()
    x = jax.random.uniform(jax.random.key(1), (chains, dim), dtype, minval=-2.0, maxval=2.0)
    state, gradients = warm(jax.random.split(jax.random.key(0), chains), x)
    diverged, parts = 0, []
    while not parts or time.process_time() - begun < seconds:
        state, (positions, steps, diverging) = some(state)
        parts.append(np.asarray(positions))
        gradients += int(steps.sum())
        diverged += int(diverging.sum())
    return PeerRun(np.concatenate(parts, 1), gradients, diverged, time.process_time() - begun)


def pdmp_jax(
    kind: str, mean: np.ndarray, precision_matrix: np.ndarray, seconds: float, chains: int, dtype: str
) -> PeerRun:
    """Run a sampler of pdmp-jax on a Gaussian, with a grid of ten points and an adapted horizon."""
    import jax
    import jax.numpy as jnp

    events = max(_EVENTS // chains, 200)
    with precision(dtype):
        import pdmp_jax as library  # local, since its constants have the precision active at import

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

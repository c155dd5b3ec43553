"""Sample the posterior of a network with other libraries, where they are installed: numpyro, blackjax, pdmp-jax."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bnnviz.benchmarks.posteriors import numpyro_nuts

_WARMUP, _DRAWS = 500, 250  # of blackjax: moves of its window adaptation, and draws of a compiled call
_EVENTS, _KEPT = 2000, 400  # of pdmp-jax: events of a compiled call, and draws that the first one gives
_BURN_IN = 0.2  # share of the draws of pdmp-jax, which has no warm-up

Potential = Callable[[Any], Any]


class PeerDraws(NamedTuple):
    """Draws (chains, draws, dim), and the gradients and CPU seconds that they took; nan where nobody counts them."""

    draws: np.ndarray
    gradients: float
    cpu_seconds: float


def numpyro(potential: Potential, dim: int, seconds: float, chains: int) -> PeerDraws:
    """Run numpyro's NUTS at its defaults."""
    found = numpyro_nuts.sample(potential, dim, seconds, chains, dtype="float32")
    return PeerDraws(found.draws, found.gradients, found.cpu_seconds)


def blackjax(potential: Potential, dim: int, seconds: float, chains: int) -> PeerDraws:
    """Run blackjax's NUTS after its window adaptation."""
    import blackjax
    import jax

    def log_density(x: Any) -> Any:
        return -potential(x)

    begun, key = time.process_time(), jax.random.key(0)
    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
    warmed = jax.jit(jax.vmap(lambda key, x: adaptation.run(key, x, _WARMUP)))
    (state, settings), info = warmed(jax.random.split(key, chains), _starts(jax, chains, dim))
    gradients, kernel = int(info.info.num_integration_steps.sum()), blackjax.nuts.build_kernel()

    def chain(key: Any, state: Any, settings: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            state, info = kernel(key, state, log_density, **settings)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(step, state, jax.random.split(key, _DRAWS))

    some, parts = jax.jit(jax.vmap(chain)), []
    while not parts or time.process_time() - begun < seconds:
        key, here = jax.random.split(key)
        state, (positions, steps) = some(jax.random.split(here, chains), state, settings)
        parts.append(np.asarray(positions))
        gradients += int(steps.sum())
    return PeerDraws(np.concatenate(parts, 1), gradients, time.process_time() - begun)


def pdmp_jax(kind: str, potential: Potential, dim: int, seconds: float, chains: int) -> PeerDraws:
    """Run a sampler of pdmp-jax at its defaults, one chain after the other; draws are even in time.

    Parameters
    ----------
    kind : {"bps", "zigzag", "boomerang"}
    potential, dim, seconds, chains
        As of `numpyro`.
    """
    import jax
    import jax.numpy as jnp
    import pdmp_jax as library

    begun, gradient = time.process_time(), jax.grad(potential)
    made = {"bps": library.BouncyParticle, "zigzag": library.ZigZag, "boomerang": library.Boomerang}
    sampler, starts = made[kind](dim, gradient), _starts(jax, chains, dim)
    skeleton = jax.jit(lambda seed, x, v: sampler.sample_skeleton(_EVENTS, x, v, seed, verbose=False))
    at = jax.jit(jax.vmap(lambda x, v, t: sampler.integrator(x, v, t)[0]))
    kept = []
    for chain in range(chains):
        v = jax.random.normal(jax.random.key(chain), (dim,))
        paths = _paths(skeleton, starts[chain], jnp.sign(v) if kind == "zigzag" else v, chain)
        until = begun + seconds * (chain + 1) / chains
        kept.append(_even_draws(paths, at, lambda until=until: time.process_time() < until))
    count = min(map(len, kept))
    draws = np.stack([part[:count] for part in kept])[:, int(_BURN_IN * count) :]
    return PeerDraws(draws, float("nan"), time.process_time() - begun)


def _paths(skeleton: Any, x: Any, v: Any, chain: int) -> Iterator[Any]:
    """Walk the path of a chain, some events at a time."""
    for seed in itertools.count(chain * 1_000_000):
        path = skeleton(seed, x, v)
        yield path
        x, v = path.x[-1], path.v[-1]


def _even_draws(paths: Iterator[Any], at: Any, goes_on: Callable[[], bool]) -> np.ndarray:
    """Return points (draws, dim) of a path that are even in time."""
    parts, first, spacing = [], 0.0, 0.0
    for path in paths:
        times = np.asarray(path.t - path.t[0], dtype=float)
        spacing = spacing or times[-1] / _KEPT
        wanted = np.arange(first, times[-1], spacing)
        before = np.clip(np.searchsorted(times, wanted, side="right") - 1, 0, len(times) - 1)
        parts.append(np.asarray(at(path.x[before], path.v[before], (wanted - times[before]).astype(path.t.dtype))))
        first += len(wanted) * spacing - times[-1]
        if not goes_on():
            break
    return np.concatenate(parts)


def _starts(jax: Any, chains: int, dim: int) -> Any:
    """Return where chains begin, (chains, dim): anywhere in (-2, 2), as numpyro's do."""
    return jax.random.uniform(jax.random.key(1), (chains, dim), minval=-2.0, maxval=2.0)

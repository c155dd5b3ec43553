"""Run other libraries' samplers on the same target, where they are installed (the extra ``bench``)."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bnnviz import diagnostics
from bnnviz.benchmarks.suite import Tell
from bnnviz.targets import Target

_EVENTS = 20_000  # of one compiled call
_DRAWS = 4000  # of one compiled call
_MOVES = 2000  # of one compiled call
_INNER = 10  # moves that blackjax's SGHMC takes at once


class Peer(NamedTuple):
    """What a peer reached for each CPU second, after compilation, with one chain in single precision.

    Attributes
    ----------
    name : str
        The peer's name.
    sampler : str
        Our name of the sampler that it stands beside; "" for one that we have not.
    events, ess : float
        Events, and effective draws of the first coordinate; nan where there are none.
    """

    name: str
    sampler: str
    events: float
    ess: float


def measure(target: Target, seconds: float, tell: Tell) -> Iterator[Peer]:
    """Measure the peers that are installed on a target that is a Gaussian, for so many seconds each.

    Parameters
    ----------
    target : Target
        Targets that are not Gaussian are left out: the peers need a gradient of their own.
    seconds : float
        How long to measure each.
    tell : callable
        Told what is being done, and what is not installed.
    """
    quadratic = target.quadratic()
    if quadratic is None:
        return
    centre, precision = (part.double().cpu().numpy() for part in quadratic)
    for name, module, peer in (("pdmp-jax", "pdmp_jax", _pdmp_jax), ("blackjax", "blackjax", _blackjax)):
        try:
            importlib.import_module(module)
        except ImportError:
            tell(f"{name} is not installed, so it is not compared with: pip install 'bnnviz[bench]'.")
            continue
        tell(f"{name}, one chain.")
        yield from peer(centre, precision, seconds)


def _pdmp_jax(centre: np.ndarray, precision: np.ndarray, seconds: float) -> Iterator[Peer]:
    """Run its BPS, Zig-Zag and Boomerang with a grid of ten points whose horizon it adapts."""
    import jax
    import jax.numpy as jnp
    import pdmp_jax

    m, p = jnp.asarray(centre), jnp.asarray(precision)
    gradient = lambda x: p @ (x - m)  # noqa: E731
    x, v = m, jax.random.normal(jax.random.key(0), m.shape)
    kinds = (
        ("bps", pdmp_jax.BouncyParticle(len(m), gradient, refresh_rate=1.0), v),
        ("zigzag", pdmp_jax.ZigZag(len(m), gradient), jnp.sign(v)),
        ("boomerang", pdmp_jax.Boomerang(len(m), gradient, refresh_rate=1.0), v),
    )
    for ours, sampler, begin in kinds:
        skeleton = jax.jit(lambda seed, s=sampler, b=begin: s.sample_skeleton(_EVENTS, x, b, seed, verbose=False))
        cpu, out = _timed(lambda seed, f=skeleton: jax.block_until_ready(f(seed)), seconds)
        draws = np.asarray(sampler.sample_from_skeleton(_DRAWS, out))
        yield Peer("pdmp-jax", ours, _EVENTS / cpu, diagnostics.ess(draws[None, :, 0].astype(float)) / cpu)


def _blackjax(centre: np.ndarray, precision: np.ndarray, seconds: float) -> Iterator[Peer]:
    """Run NUTS, its step size and masses found by its own window adaptation."""
    import blackjax
    import jax
    import jax.numpy as jnp

    m, p = jnp.asarray(centre), jnp.asarray(precision)

    def log_density(x: Any) -> Any:
        return -0.5 * (x - m) @ (p @ (x - m))

    adapted, _ = blackjax.window_adaptation(blackjax.nuts, log_density).run(jax.random.key(0), m, 500)
    kernel = blackjax.nuts(log_density, **adapted.parameters)

    @jax.jit
    def chain(seed: int) -> Any:
        keys = jax.random.split(jax.random.key(seed), _DRAWS)
        return jax.lax.scan(lambda state, key: (kernel.step(key, state)[0],) * 2, adapted.state, keys)[1].position

    cpu, draws = _timed(lambda seed: jax.block_until_ready(chain(seed)), seconds)
    yield Peer("blackjax NUTS", "", float("nan"), diagnostics.ess(np.asarray(draws)[None, :, 0].astype(float)) / cpu)


def _timed(call: Callable[[int], Any], seconds: float) -> tuple[float, Any]:
    """Return the median CPU seconds of a compiled call, and what the last one returned."""
    result = call(0)
    used, end, seed = [], time.perf_counter() + seconds, 0
    while not used or time.perf_counter() < end:
        seed += 1
        before = time.process_time()
        result = call(seed)
        used.append(time.process_time() - before)
    return float(np.median(used)), result


def moves(
    sampler: str,
    points: np.ndarray,
    batch: int,
    hidden: int,
    step_size: float,
    chains: Iterable[int],
    seconds: float,
    tell: Tell,
) -> Iterator[tuple[int, float]]:
    """Measure blackjax's stochastic-gradient samplers, where it is installed.

    Parameters
    ----------
    sampler : {"sgld", "sghmc"}
    points : ndarray, shape (rows, 2)
        The data of a network of one hidden layer of tanh units, its noise and prior N(0, 1).
    batch, hidden : int
        Rows in a batch, and units.
    step_size : float
    chains : iterable of int
        Numbers of chains.
    seconds : float
        How long to measure each.
    tell : callable
        Told what is being done, and that it is not installed.

    Yields
    ------
    chains : int
    rate : float
        Moves of all chains for each CPU second, after compilation.
    """
    try:
        import blackjax
        import jax
    except ImportError:
        tell("blackjax is not installed, so it is not compared with: pip install 'bnnviz[bench]'.")
        return
    jnp, (x, y) = jax.numpy, jax.numpy.asarray(points, dtype="float32").T

    def log_prior(w: Any) -> Any:
        return -0.5 * (w @ w)

    def log_likelihood(w: Any, row: Any) -> Any:
        first, bias, second = w[: 3 * hidden].reshape(3, hidden)
        return -0.5 * (row[1] - jnp.tanh(first * row[0] + bias) @ second - w[-1]) ** 2

    estimator = blackjax.sgmcmc.gradients.grad_estimator(log_prior, log_likelihood, len(points))
    inner = _INNER if sampler == "sghmc" else 1
    kernel = blackjax.sghmc(estimator, _INNER) if sampler == "sghmc" else blackjax.sgld(estimator)

    def move(w: Any, key: Any) -> tuple[Any, None]:
        chosen, noise = jax.random.split(key)
        index = jax.random.choice(chosen, len(points), (batch,), replace=False)
        return kernel.step(noise, w, (x[index], y[index]), step_size / 2), None

    def chain(key: Any) -> Any:
        start, rest = jax.random.split(key)
        w = jax.random.normal(start, (3 * hidden + 1,)) / hidden**0.5
        return jax.lax.scan(move, w, jax.random.split(rest, _MOVES))[0]

    many = jax.jit(jax.vmap(chain))
    for number in chains:
        tell(f"blackjax's {sampler}, {number} chains.")
        cpu, _ = _timed(
            lambda seed, n=number: jax.block_until_ready(many(jax.random.split(jax.random.key(seed), n))), seconds
        )
        yield number, number * _MOVES * inner / cpu

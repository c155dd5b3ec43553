"""Compare NUTS with numpyro's on three densities: effective draws of the worst coordinate for each CPU second.

The densities are a Gaussian whose coordinates are spread from 0.1 to 10, a logistic regression in 25 dimensions and
a network 1-50-1. Both run with their defaults after 500 moves of warm-up, four chains in single precision on one
thread; warm-up, tuning and the search for a start are counted. The programs of both are compiled before the clock runs
and kept, as a second run finds them; what ours took is a row. Beside each is R-hat: of weights that disagree between
chains the effective draws are a guess, and those of the network's predictions tell more.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import util
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics, optional, targets
from bnnviz.api.run import start
from bnnviz.benchmarks import budget
from bnnviz.benchmarks.chains import one_thread
from bnnviz.benchmarks.networks.mixing import measure
from bnnviz.benchmarks.posteriors import numpyro_nuts
from bnnviz.benchmarks.suite import Case, Goal, Row, Suite, Tell

DIM, ROWS = 25, 500  # of the regression
GOALS = {"compiled": Goal(">=", 1.0), "eager": Goal(">=", 0.5)}
MOST = 100_000  # draws of a chain, which it does not reach


class Density(NamedTuple):
    """A density as we sample it, and as numpyro does.

    Attributes
    ----------
    ours : tuple
        Target and further arguments of `bnnviz.start`.
    theirs : callable
        Makes U of one state (dim,), in JAX.
    dim : int
    network : Target or None
        Whose predictions are measured too, in double precision.
    """

    ours: tuple[Any, dict[str, Any]]
    theirs: Callable[[], Callable[[Any], Any]]
    dim: int
    network: targets.BNN | None = None


def _gaussian() -> Density:
    scales = np.logspace(-1, 1, 50)
    precision = torch.as_tensor(scales**-2.0, dtype=torch.float32)

    def potential(x: Tensor) -> Tensor:
        return 0.5 * (precision.to(x.dtype) * x * x).sum(-1)

    def theirs() -> Callable[[Any], Any]:
        weights = np.asarray(scales**-2.0, "float32")
        return lambda x: 0.5 * (weights * x * x).sum()

    return Density((potential, {"dim": len(scales)}), theirs, len(scales))


def _regression() -> Density:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((ROWS, DIM)).astype("float32")
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-x @ rng.standard_normal(DIM)))).astype("float32")
    rows, labels = torch.as_tensor(x), torch.as_tensor(y)

    def potential(w: Tensor) -> Tensor:
        logits = w @ rows.to(w.dtype).T
        fit = torch.nn.functional.softplus(logits) - labels.to(w.dtype) * logits
        return fit.sum(-1) + 0.5 * (w * w).sum(-1)

    def theirs() -> Callable[[Any], Any]:
        from jax.nn import softplus

        return lambda w: (softplus(x @ w) - y * (x @ w)).sum() + 0.5 * (w * w).sum()

    return Density((potential, {"dim": DIM}), theirs, DIM)


def _network() -> Density:
    settings = {"data": "toy_c", "hidden": "50"}
    target = targets.REGISTRY.get("network")(**settings).to("cpu", torch.float64)

    def theirs() -> Callable[[Any], Any]:
        from bnnviz.benchmarks.networks.jax_network import network_potential

        return network_potential(target)

    return Density(("network", {"target_settings": settings}), theirs, target.dim, target)


DENSITIES = {"gaussian": _gaussian, "logistic": _regression, "network": _network}


class Found(NamedTuple):
    """What a sampler made of its CPU seconds.

    Attributes
    ----------
    ess, rhat : float
        Of the worst coordinate.
    prediction_ess, prediction_rhat : float
        Of the worst prediction of a network; nan of others.
    draws : int
        Of a chain.
    gradients, cpu_seconds : float
    """

    ess: float
    rhat: float
    prediction_ess: float
    prediction_rhat: float
    draws: int
    gradients: float
    cpu_seconds: float


def judge(density: Density, draws: np.ndarray, gradients: float, cpu_seconds: float) -> Found:
    """Return what draws (chains, draws, dim) are worth; 0 effective draws of fewer than four."""
    count = draws.shape[1] if draws.ndim == 3 else 0
    if count < 4:
        return Found(0.0, np.nan, 0.0, np.nan, count, gradients, cpu_seconds)
    table = draws.astype(float)
    rhat = max(diagnostics.rhat(table[..., i]) for i in range(table.shape[2]))
    ess = float(np.nanmin(diagnostics.ess_each(table)))
    of_predictions = (np.nan, np.nan)
    if density.network is not None:
        measured = measure(density.network, draws)
        of_predictions = measured.prediction_least, measured.rhat
    return Found(ess, rhat, *of_predictions, count, gradients, cpu_seconds)


def _ours(density: Density, kernel: str, seconds: float) -> Found:
    target, options = density.ours
    warmup = numpyro_nuts.WARMUP  # as long for both
    run = budget.run(target, "nuts", seconds, dtype="float32", kernel=kernel, draws=MOST, warmup=warmup, **options)
    return judge(density, run.draws, run.summary.get("grad_evals", 0), run.cpu_seconds)


def _compiled_before(density: Density) -> float:
    """Have the step compiled and kept; return the seconds that it took."""
    target, options = density.ours
    begun = time.monotonic()
    run = start(target, "nuts", draws=1, warmup=10, chains=budget.CHAINS, dtype="float32", kernel="compiled", **options)
    try:
        run.run_to_end()
    finally:
        run.stop()
    return time.monotonic() - begun


def _theirs(density: Density, seconds: float) -> Found:
    """Return what numpyro makes of so many CPU seconds with programs that a first run has left, as ours are kept."""
    import jax

    potential = density.theirs()
    with tempfile.TemporaryDirectory(prefix="bnnviz-") as programs:
        jax.config.update("jax_compilation_cache_dir", programs)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        numpyro_nuts.sample(potential, density.dim, 0.0, dtype="float32")
        found = numpyro_nuts.sample(potential, density.dim, seconds, dtype="float32")
    return judge(density, found.draws, found.gradients, found.cpu_seconds)


def _rows(name: str, found: Found, peer: Found | None) -> Iterator[Row]:
    for kind in ("", "prediction_"):
        ess, rhat = getattr(found, f"{kind}ess"), getattr(found, f"{kind}rhat")
        rate = budget.per(ess, found.cpu_seconds)
        if kind and np.isnan(ess):
            continue
        said = f"{found.draws} draws of a chain, ESS {ess:.0f}, R-hat {rhat:.3f}, {found.gradients:,.0f} gradients"
        more: dict[str, Any] = {**found._asdict(), "note": said}
        if peer is None:
            yield Row(f"{name}_{kind}rate", rate, "ESS/CPU s", None, more)
            continue
        theirs = budget.per(getattr(peer, f"{kind}ess"), peer.cpu_seconds)
        more |= {"peer": "numpyro", "peer_rate": theirs, "note": f"{rate:.3g} against {theirs:.3g} a CPU s; {said}"}
        yield Row(f"{name}_{kind}by_numpyro", budget.per(rate, theirs), "", GOALS[name], more)


def _case(name: str, seconds: float, tell: Tell) -> Iterator[Row]:
    density = DENSITIES[name]()
    optional.check("arviz_stats", "Effective draws need")
    with one_thread():
        peer = None
        if util.find_spec("numpyro") is None:
            tell("numpyro is not installed, so it is not compared with: pip install 'bnnviz[bench]'.")
        else:
            tell(f"numpyro's NUTS on {name}, for {seconds:g} CPU seconds.")
            peer = _theirs(density, seconds)
            yield from _rows("numpyro", peer, None)
        tell(f"The step of NUTS on {name} is compiled.")
        yield Row("compiling", _compiled_before(density), "s")
        for kernel in GOALS:
            tell(f"NUTS on {name}, {kernel}, for {seconds:g} CPU seconds.")
            yield from _rows(kernel, _ours(density, kernel, seconds), peer)


_CASES: dict[str, Case] = {name: partial(_case, name) for name in DENSITIES}
SUITE = Suite("nuts", "NUTS beside numpyro's: effective draws for each CPU second.", _CASES)

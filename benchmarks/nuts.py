"""Compare NUTS with numpyro: ESS per CPU second of the worst coordinate.

The densities are a Gaussian with scales from 0.1 to 10, a logistic regression in 25 dimensions and a network 1-50-1.
All samplers have four chains in single precision on one thread, 500 warm-up moves, and otherwise their defaults. If
chains disagree about weights, their ESS means little: the note contains R-hat, and networks also have rows for their
predictions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import util
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks import budget, peers
from benchmarks.rows import Case, Goal, Report, Row
from bnnviz import diagnostics, targets
from bnnviz.api.run import start
from bnnviz.engine.evaluation.predictions import Predictor

GOALS = {"compiled": Goal(">=", 1.0), "eager": Goal(">=", 0.5)}
INCLUDES = "initial positions, warm-up and sampling; compilation excluded"
DTYPE = "float32"
_DIM, _ROWS = 25, 500  # of the regression
_MOST = 100_000  # maximum draws per chain, so that none is dropped
_INPUTS, _PREDICTED = 40, 20_000  # for a network's predictions: inputs, and maximum draws


class Density(NamedTuple):
    """A density in both forms: target and options of `bnnviz.start`, and a function that makes U of one state in JAX.

    ``network`` is a target whose predictions are compared, in double precision.
    """

    ours: tuple[Any, dict[str, Any]]
    theirs: Callable[[], peers.Potential]
    dim: int
    network: targets.BNN | None = None


def _gaussian() -> Density:
    precision = np.logspace(-1, 1, 50) ** -2.0

    def potential(x: Tensor) -> Tensor:
        return 0.5 * (torch.as_tensor(precision, dtype=x.dtype) * x * x).sum(-1)

    def theirs() -> peers.Potential:
        weights = np.asarray(precision, DTYPE)
        return lambda x: 0.5 * (weights * x * x).sum()

    return Density((potential, {"dim": len(precision)}), theirs, len(precision))


def _logistic() -> Density:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((_ROWS, _DIM)).astype(DTYPE)
    y = (rng.random(_ROWS) < 1 / (1 + np.exp(-x @ rng.standard_normal(_DIM)))).astype(DTYPE)
    rows, labels = torch.as_tensor(x), torch.as_tensor(y)

    def potential(w: Tensor) -> Tensor:
        logits = w @ rows.to(w.dtype).T
        fit = torch.nn.functional.softplus(logits) - labels.to(w.dtype) * logits
        return fit.sum(-1) + 0.5 * (w * w).sum(-1)

    def theirs() -> peers.Potential:
        from jax.nn import softplus

        return lambda w: (softplus(x @ w) - y * (x @ w)).sum() + 0.5 * (w * w).sum()

    return Density((potential, {"dim": _DIM}), theirs, _DIM)


def _network() -> Density:
    settings = {"data": "toy_c", "hidden": "50"}
    target = targets.REGISTRY.get("network")(**settings).to("cpu", torch.float64)

    def theirs() -> peers.Potential:
        import jax.numpy as jnp

        x, y = (np.asarray(rows.numpy(), DTYPE) for rows in (target.x, target.y))

        def potential(theta: Any) -> Any:
            units = x
            for layer in target.layers:
                weight = theta[layer.weight : layer.weight + layer.inputs * layer.outputs]
                units = units @ weight.reshape(layer.outputs, layer.inputs).T
                units = units + theta[layer.bias : layer.bias + layer.outputs]
                units = jnp.tanh(units) if layer.activation == "tanh" else units
            fit = ((units[:, 0] - y) ** 2).sum() / (2 * target.likelihood.scales[0] ** 2)
            return fit + 0.5 * target.prior_precision * (theta**2).sum()

        return potential

    return Density(("network", {"target_settings": settings}), theirs, target.dim, target)


DENSITIES = {"gaussian": _gaussian, "logistic": _logistic, "network": _network}


class Worth(NamedTuple):
    """Smallest ESS and largest R-hat of several quantities."""

    ess: float
    rhat: float

    @classmethod
    def of(cls, table: np.ndarray) -> Worth:
        """Return them for a table (chains, draws, quantities); the ESS is 0 for fewer than four draws."""
        if table.ndim < 3 or table.shape[1] < 4:
            return cls(0.0, np.nan)
        table = table.astype(float)
        rhat = max(diagnostics.rhat(table[..., i]) for i in range(table.shape[2]))
        return cls(float(np.nanmin(diagnostics.ess_each(table))), rhat)


def worths(density: Density, draws: np.ndarray) -> dict[str, Worth]:
    """Return ESS and R-hat of draws (chains, draws, dim), for coordinates and for predictions of a network."""
    found = {"": Worth.of(draws)}
    if density.network is not None and not np.isnan(found[""].rhat):
        some = draws[:, :: -(-draws.shape[0] * draws.shape[1] // _PREDICTED) or 1]
        theta = torch.as_tensor(some, dtype=torch.float64).flatten(0, 1)
        predicted = Predictor(density.network).functions(theta, _INPUTS).astype(float)
        found["prediction_"] = Worth.of(predicted.reshape(*some.shape[:2], -1))
    elif density.network is not None:
        found["prediction_"] = found[""]
    return found


def _compile(density: Density) -> float:
    """Compile our step, which is cached on disk; return the wall-clock seconds."""
    target, options = density.ours
    begun = time.monotonic()
    run = start(target, "nuts", draws=1, warmup=10, chains=budget.CHAINS, dtype=DTYPE, kernel="compiled", **options)
    try:
        run.run_to_end()
    finally:
        run.stop()
    return time.monotonic() - begun


def _rows(
    name: str, density: Density, draws: np.ndarray, gradients: float, cpu_s: float, rivals: dict[str, dict[str, float]]
) -> Iterator[Row]:
    """Yield the rate of each kind of quantity, and its ratio to that of each peer."""
    for kind, worth in worths(density, draws).items():
        rate, count = budget.per(worth.ess, cpu_s), draws.shape[1] if draws.ndim == 3 else 0
        more: dict[str, Any] = {"sampler": "nuts", "chains": budget.CHAINS, "device": "cpu", "dtype": DTYPE}
        more |= {"ess_per_cpu_s": rate, "grads_per_cpu_s": budget.per(gradients, cpu_s), "cpu_seconds": cpu_s}
        more |= {"draws": count, "ess": worth.ess, "rhat": worth.rhat, "includes": INCLUDES}
        note = f"{count} draws of a chain, ESS {worth.ess:.0f}, R-hat {worth.rhat:.3f}"
        yield Row(f"{name}_{kind}rate", rate, "ESS/CPU s", None, more | {"note": note})
        for peer, rates in rivals.items():
            ratio = budget.per(rate, rates[kind])
            compared = {"peer": peer, "ratio": ratio, "note": f"{rate:.3g} against {rates[kind]:.3g} ESS/CPU s"}
            yield Row(f"{name}_{kind}by_{peer}", ratio, "", GOALS[name], more | compared)


def _case(name: str, seconds: float, report: Report) -> Iterator[Row]:
    density, rivals = DENSITIES[name](), {}
    with budget.one_thread():
        if util.find_spec("numpyro") is None:
            report("numpyro is not installed, so there are no rows of it: pip install '.[bench]'.")
        else:
            report(f"NUTS of numpyro on {name}, for {seconds:g} CPU seconds.")
            found = peers.numpyro(density.theirs(), density.dim, seconds, budget.CHAINS, DTYPE)
            if found.compiled:
                report(f"numpyro compiled {found.compiled} programs while the clock ran: its rows are not comparable.")
            rows = list(_rows("numpyro", density, found.draws, found.gradients, found.cpu_seconds, {}))
            kinds = ["", "prediction_"][: len(rows)]
            rivals["numpyro"] = {kind: row.value for kind, row in zip(kinds, rows, strict=True)}
            yield from rows
        report(f"Compiling NUTS on {name}.")
        yield Row("compiling", _compile(density), "s", more={"includes": "the first compilation of our step"})
        for kernel in GOALS:
            report(f"NUTS on {name}, {kernel}, for {seconds:g} CPU seconds.")
            target, options = density.ours
            options = {"kernel": kernel, "dtype": DTYPE, "draws": _MOST, "warmup": peers.WARMUP, **options}
            run = budget.run(target, "nuts", seconds, **options)
            yield from _rows(kernel, density, run.draws, run.summary.get("grad_evals", 0), run.cpu_seconds, rivals)


CASES: dict[str, Case] = {name: partial(_case, name) for name in DENSITIES}

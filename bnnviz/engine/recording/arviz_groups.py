"""Compute the other groups of ArviZ: log densities, and for a network predictions of its training rows.

``log_likelihood`` and ``posterior_predictive`` are in the units of the data, for the training rows, so that ``loo`` and
``compare`` are consistent between models of the same data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from bnnviz import optional
from bnnviz.engine.evaluation.metrics import NetworkDraws, drawn_classes, log_scale, network_draws, probabilities_of
from bnnviz.engine.evaluation.observables import ObservationLaw
from bnnviz.engine.evaluation.predictions import at_once, training_rows
from bnnviz.engine.protocol import AnyRun
from bnnviz.targets import BNN, Target

if TYPE_CHECKING:
    import xarray


_ROWS = "row"
_MOST_WORK = 1e10  # maximum multiply-adds for the log densities of all draws
# Maximum numbers in a group that is made by default.
_MOST_NUMBERS = 20_000_000
_CHUNK = 256


def log_densities(target: Target, draws: np.ndarray) -> np.ndarray | None:
    """Return log densities (chains, draws) of draws (chains, draws, dim), up to a constant; None if that takes long."""
    flat = torch.as_tensor(draws.reshape(-1, draws.shape[-1]), dtype=target.dtype, device=target.device)
    if float(len(flat)) * max(target.examples, 1) * target.row_work > _MOST_WORK:
        return None
    with torch.no_grad():
        found = [-target.defined_potential(part).double().cpu() for part in torch.split(flat, _CHUNK)]
    return torch.cat(found).numpy().reshape(draws.shape[:2]) if found else np.empty(draws.shape[:2])


def size(given: NetworkDraws) -> int:
    """Return the number of numbers in the largest group of a network."""
    return len(given.theta) * max(len(given.target.y), 1) * max(given.target.likelihood.columns, 1)


def of_network(given: NetworkDraws, seed: int) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, list[str]]]:
    """Return groups of a network's draws by name, and the names of the dimensions of their variables."""
    target, theta = given.target, given.theta
    likelihood, shape = target.likelihood, (given.chains, -1)
    rng = np.random.default_rng(seed)
    densities, drawn = [], []
    for part in torch.split(theta, at_once(target, len(target.x))):
        with torch.no_grad():
            f = target.outputs(part, target.x)
            densities.append(target.likelihood_at(part).log_density(f, target.y).double().cpu().numpy())
        if likelihood.task == "regression":
            drawn.append(ObservationLaw(target, part, f).draw(rng))
        elif likelihood.task == "classification":
            drawn.append(drawn_classes(probabilities_of(target, f, part), rng))
    density = np.concatenate(densities)
    if likelihood.task == "regression":
        density = density - log_scale(target)
    x, y = training_rows(target)
    groups = {
        "log_likelihood": {"y": density.reshape(*shape, density.shape[1])},
        "observed_data": {"y": np.asarray(y)},
        "constant_data": {"inputs": np.asarray(x)},
    }
    if drawn:
        predicted = np.concatenate(drawn)
        groups["posterior_predictive"] = {"y": predicted.reshape(*shape, *predicted.shape[1:])}
    inputs = ["input", *(f"input_{k}" for k in range(2, np.ndim(x)))] if np.ndim(x) > 1 else []
    columns = ["output"] if likelihood.columns > 1 else []
    return groups, {"y": [_ROWS, *columns], "inputs": [_ROWS, *inputs]}


def completed(made: xarray.DataTree, run: AnyRun, predictions: bool | None) -> xarray.DataTree:
    """Return a tree of a run's draws with named parameters, and for a network with its groups."""
    arviz_base = optional.require("arviz_base", "Data trees need")
    target, draws = run.target, run.draws
    named = named_draws(target, draws)
    if named:
        made["unconstrained_posterior"] = made["posterior"].copy()
        made["posterior"] = arviz_base.from_dict({"posterior": named})["posterior"]
    if not (isinstance(target, BNN) and draws.shape[1]):
        return made
    given = network_draws(run)
    if predictions or (predictions is None and size(given) <= _MOST_NUMBERS):
        groups, dims = of_network(given, run.begun.seed)
        for name, group in arviz_base.from_dict(groups, dims=dims).children.items():
            made[name] = group
    return made


def named_draws(target: Target, draws: np.ndarray) -> dict[str, np.ndarray]:
    """Return draws (chains, draws, dim) as parameters (chains, draws, *shape) by name; empty for unnamed parameters."""
    # Constrained parameters are computed in float64, so that fewer of them round to a bound.
    flat = torch.from_numpy(draws.reshape(-1, draws.shape[-1]))
    values = target.named_values(flat if isinstance(target, BNN) else flat.double())
    return {name: value.cpu().numpy().reshape(*draws.shape[:2], *value.shape[1:]) for name, value in values.items()}

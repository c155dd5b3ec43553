"""Measure how draws of a network mix, beside a long run of NUTS: weights, U, predictions, and how far off they are."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from bnnviz import diagnostics, files, paths, targets
from bnnviz.benchmarks import budget
from bnnviz.engine.evaluation.predictions import Predictor
from bnnviz.version import VERSION

TARGET = "network"
REFERENCE, REFERENCE_SEED = "nuts", 2**31 - 2
INPUTS = 40
_COLUMNS, _MOST, _STEIN_ROWS, _CHUNK = 100, 20_000, 4000, 256


class Mixing(NamedTuple):
    """What draws of a network are worth.

    Attributes
    ----------
    weight_least, weight_median, energy, prediction_least, prediction_median : float
        Bulk effective sample sizes: of up to 100 weights, of U, and of the predictions at up to 40 inputs.
    rhat : float
        The worst of the predictions.
    stein, stein_se : float
        By what share variances are too large, by Stein's identity, and its standard error.
    mean, sd : ndarray, shape (1 + inputs,)
        Of U and of the predictions.
    """

    weight_least: float
    weight_median: float
    energy: float
    prediction_least: float
    prediction_median: float
    rhat: float
    stein: float
    stein_se: float
    mean: np.ndarray
    sd: np.ndarray


#: The effective sample sizes of `Mixing` that a table shows.
SIZES = Mixing._fields[:5]


@dataclass(frozen=True)
class NetworkPosterior:
    """A posterior of a network that samplers are compared on.

    Parameters
    ----------
    name : str
    settings : dict
        Of the target ``network``.
    """

    name: str
    settings: dict[str, Any]

    def target(self) -> targets.Target:
        """Return the target, in double precision on the CPU."""
        return targets.REGISTRY.get(TARGET)(**self.settings).to("cpu", torch.float64)

    @property
    def shape(self) -> str:
        """Units of each layer, such as 13-50-1."""
        target = self.target()
        return "-".join(map(str, [target.layers[0].inputs, *(layer.outputs for layer in target.layers)]))


NETWORKS = {
    network.name: network
    for network in (
        NetworkPosterior("toy_c", {"data": "toy_c", "hidden": "25-10", "prior_sd": 2.0}),
        NetworkPosterior("boston", {"data": "boston", "hidden": "50"}),
        NetworkPosterior("energy", {"data": "energy", "hidden": "50"}),
        NetworkPosterior("moons", {"data": "moons", "hidden": "10"}),
        NetworkPosterior("ionosphere", {"data": "ionosphere", "hidden": "50"}),
    )
}


def measure(target: targets.Target, draws: np.ndarray) -> Mixing | None:
    """Return what draws (chains, draws, dim) are worth, of 20,000 evenly spread ones if there are more; None of few."""
    if not len(draws) or draws.shape[1] < 4:
        return None
    draws = draws[:, :: -(-draws.shape[0] * draws.shape[1] // _MOST)]
    chains, count, dim = draws.shape
    theta = torch.as_tensor(draws, dtype=torch.float64).flatten(0, 1)
    energy = torch.cat([target.potential(part) for part in torch.split(theta, _CHUNK)]).numpy()
    table = np.column_stack([energy, Predictor(target).functions(theta, INPUTS).astype(float)])
    table = table.reshape(chains, count, -1)
    columns = np.unique(np.linspace(0, dim - 1, min(dim, _COLUMNS)).astype(int))
    weights = diagnostics.ess_each(draws[:, :, columns].astype(float))
    sizes = diagnostics.ess_each(table)
    rhat = max(diagnostics.rhat(table[..., i]) for i in range(1, table.shape[2]))
    share, error = _stein(target, draws)
    flat = table.reshape(-1, table.shape[2])
    return Mixing(
        *(np.nanmin(weights), np.nanmedian(weights), sizes[0], np.nanmin(sizes[1:]), np.nanmedian(sizes[1:])),
        *(rhat, share, error, flat.mean(0), flat.std(0)),
    )


def _stein(target: targets.Target, draws: np.ndarray) -> tuple[float, float]:
    chains, count, dim = draws.shape
    every = max(1, -(-chains * count // _STEIN_ROWS))
    some = torch.as_tensor(draws[:, ::every], dtype=torch.float64)
    parts = [target.gradient(part) for part in torch.split(some.flatten(0, 1), _CHUNK)]
    potential, gradient = (torch.cat(column).numpy() for column in zip(*parts, strict=True))
    found = diagnostics.variance_inflation(
        draws.astype(float), potential.reshape(some.shape[:2]), gradient.reshape(some.shape), every
    )
    return (float("nan"), float("nan")) if found is None else (found.share, found.error)


class Distance(NamedTuple):
    """How far draws are from the reference.

    Attributes
    ----------
    mean : float
        Root mean square over the inputs of the differences of mean predictions, in the reference's standard deviations.
    chance : float
        What `mean` would be about from Monte Carlo error alone.
    sd : float
        The same of the standard deviations, as shares.
    """

    mean: float
    chance: float
    sd: float


def distance(found: Mixing, reference: Mixing) -> Distance:
    """Return how far the predictions of draws are from those of the reference."""
    off = (found.mean[1:] - reference.mean[1:]) / reference.sd[1:]
    wide = found.sd[1:] / reference.sd[1:] - 1
    chance = np.sqrt(1 / found.prediction_median + 1 / reference.prediction_median)
    return Distance(float(np.sqrt((off**2).mean())), float(chance), float(np.sqrt((wide**2).mean())))


def reference(network: NetworkPosterior, seconds: float) -> Mixing | None:
    """Return what a run of NUTS of so many CPU seconds says, or one that was kept under `bnnviz.paths.references`."""
    facts = {"version": VERSION, "settings": network.settings, "seconds": seconds, "sampler": REFERENCE}
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
    place = paths.references() / f"mixing-{key}.npz"
    if place.exists():
        with np.load(place, allow_pickle=False) as saved:
            scalars = saved["scalars"].tolist()
            return Mixing(*scalars, saved["mean"], saved["sd"])
    run = budget.run(TARGET, REFERENCE, seconds, REFERENCE_SEED, target_settings=network.settings)
    found = measure(network.target(), run.draws)
    if found is not None:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with files.replacing(place) as new, new.open("wb") as file:
            np.savez(file, scalars=np.array(found[:-2]), mean=found.mean, sd=found.sd)
    return found

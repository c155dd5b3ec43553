"""Define likelihoods of a network's outputs: by name, as an object with settings, or by a function."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from bnnviz.errors import BnnvizError, none_of
from bnnviz.targets.likelihoods.base import Likelihood
from bnnviz.targets.likelihoods.classes import Bernoulli, Categorical, Ordinal
from bnnviz.targets.likelihoods.counts import NegativeBinomial, Poisson
from bnnviz.targets.likelihoods.own import OwnLikelihood
from bnnviz.targets.likelihoods.real_numbers import Heteroscedastic, LogNormal, Normal, StudentT
from bnnviz.targets.likelihoods.weighted import Weighted  # noqa: F401

__all__ = [
    "Bernoulli",
    "Categorical",
    "Heteroscedastic",
    "Likelihood",
    "LogNormal",
    "NegativeBinomial",
    "Normal",
    "Ordinal",
    "OwnLikelihood",
    "Poisson",
    "StudentT",
]

_NAMED: dict[str, type[Likelihood]] = {
    "gaussian": Normal,
    "student_t": StudentT,
    "heteroscedastic": Heteroscedastic,
    "log_normal": LogNormal,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "ordinal": Ordinal,
}
NAMES = tuple(_NAMED)
WITH_NOISE = ("gaussian", "student_t", "log_normal")  # whose size can be learned


def default_noise(given: Any, noise_sd: Any) -> str:
    """Return "learned" for a named likelihood with noise if its size is not given, else "fixed"."""
    return "learned" if isinstance(given, str) and given in WITH_NOISE and noise_sd is None else "fixed"


def scales_of(columns: Tensor) -> list[float]:
    """Return the standard deviation of each column of observations (rows, columns); 1 for constant columns."""
    spread = columns.double().std(0, correction=0) if len(columns) else columns.new_zeros(columns.shape[1]).double()
    return [float(f"{value:.3g}") if value > 0 else 1.0 for value in spread.tolist()]


def make(given: Any, noise_sd: float | Sequence[float], learned: bool, columns: int = 1) -> Likelihood:
    """Return the likelihood for a name or function; one that predicts no observations gets the task "outputs"."""
    named = isinstance(given, str) and given in NAMES
    if learned and not (named and given in WITH_NOISE):
        what = given if named else getattr(given, "name", "callable")
        raise BnnvizError(f"A {what} likelihood has no noise to learn; leave out noise='learned'.", "noise")
    if isinstance(given, Likelihood):
        if given.task != "outputs" and not given.predicts:
            given = copy.copy(given)
            given.task = "outputs"
        return given
    if callable(given) and not isinstance(given, str):
        return OwnLikelihood(given)
    if not named:
        raise none_of("likelihood", given, NAMES, ", or give a function of outputs and observations")
    if given not in WITH_NOISE:
        return _NAMED[given]()
    sds = list(noise_sd) if isinstance(noise_sd, Sequence) else [noise_sd] * columns
    if len(sds) != columns:
        raise BnnvizError(
            f"noise_sd has {len(sds)} numbers, but the observations have {columns} columns; give one for each, or one"
            " for all.",
            "noise_sd",
        )
    if given == "gaussian":
        return Normal(sds, learned)
    return _NAMED[given](scale=sds[0], learned=learned)

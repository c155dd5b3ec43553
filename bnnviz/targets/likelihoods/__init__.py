"""Define likelihoods of a network's outputs: by name, as an object with settings, or by a function."""

from __future__ import annotations

import copy
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

NAMED: dict[str, type[Likelihood]] = {
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
NAMES = tuple(NAMED)
WITH_NOISE = ("gaussian", "student_t", "log_normal")  # whose size can be learned
NOISES = ("fixed", "learned")


def make(given: Any, columns: Tensor, noise_sd: Any, noise: str | None) -> Likelihood:
    """Return the likelihood of observations (rows, columns) for a name, an object or a function.

    One that predicts no observations gets the task "outputs". The default size of the noise is learned.
    """
    has_noise = isinstance(given, str) and given in WITH_NOISE
    noise = ("learned" if has_noise and noise_sd is None else "fixed") if noise is None else noise
    if noise not in NOISES:
        number = isinstance(noise, int | float) and not isinstance(noise, bool)
        remedy = f"write noise_sd={noise!r}" if number else f"choose one of {', '.join(NOISES)}"
        raise BnnvizError(f"noise cannot be {noise!r}; {remedy}.", "noise")
    if has_noise:
        found = _with_noise(given, columns, noise_sd, noise == "learned")
    elif noise == "learned":
        what = given if isinstance(given, str) else getattr(given, "name", "callable")
        raise BnnvizError(f"A {what} likelihood has no noise to learn; leave out noise='learned'.", "noise")
    elif isinstance(given, str) and given in NAMES:
        found = NAMED[given]()
    elif isinstance(given, Likelihood):
        found = copy.copy(given)
        found.task = given.task if given.predicts else "outputs"
    elif callable(given) and not isinstance(given, str):
        found = OwnLikelihood(given)
    else:
        raise none_of("likelihood", given, NAMES, ", or give a function of outputs and observations")
    return found.fitted(columns)


def _with_noise(name: str, columns: Tensor, given: Any, learned: bool) -> Likelihood:
    """Return a likelihood with given scales, or those of the columns if they are learned."""
    if given is None and learned and len(columns):
        spread = columns.double().std(0, correction=0)
        given = [float(f"{value:.3g}") if value > 0 else 1.0 for value in spread.tolist()]
    given = 1.0 if given is None else given.tolist() if hasattr(given, "tolist") else given
    sds = list(given) if isinstance(given, list | tuple) else [given] * columns.shape[1]
    if len(sds) != columns.shape[1]:
        raise BnnvizError(
            f"noise_sd has {len(sds)} numbers, but the observations have {columns.shape[1]} columns; give one for each,"
            " or one for all.",
            "noise_sd",
        )
    return Normal(sds, learned) if name == "gaussian" else NAMED[name](scale=sds[0], learned=learned)

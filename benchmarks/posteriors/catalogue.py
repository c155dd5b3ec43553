"""List published posteriors: densities, data and reference values."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.posteriors import densities
from bnnviz import data as datasets

FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True)
class ReferenceMoments:
    """Means and standard deviations of the unconstrained coordinates (dim,), with their standard errors.

    ``how`` is their source: quadrature, with zero errors, or importance sampling.
    """

    mean: np.ndarray
    mean_se: np.ndarray
    sd: np.ndarray
    sd_se: np.ndarray
    how: str


@dataclass(frozen=True)
class Posterior:
    """A published posterior, on unconstrained coordinates.

    Parameters
    ----------
    density : callable
        U (chains,) of data and states (chains, dim).
    parameters : callable
        Returns the parameters with published values, (rows, parameters), from coordinates (rows, dim).
    """

    name: str
    title: str
    density: Callable[[densities.Data, Tensor], Tensor] = field(repr=False)
    coordinates: tuple[str, ...]
    make_data: Callable[[], dict[str, np.ndarray]] = field(repr=False)
    parameters: Callable[[np.ndarray], np.ndarray] = field(repr=False)
    bends: bool = False

    @property
    def model(self) -> str:
        """Name of its density."""
        return self.density.__name__

    @property
    def dim(self) -> int:
        """Dimension of a state."""
        return len(self.coordinates)

    def data(self) -> dict[str, np.ndarray]:
        """Return its data, in double precision."""
        return _data(self.name)

    def potential(self, x: Tensor) -> Tensor:
        """Return U (chains,) of states (chains, dim), up to a constant, for `bnnviz.sample`."""
        return self.density(_tensors(self.name, x.dtype, x.device), x)

    def reference(self) -> ReferenceMoments:
        """Return the reference moments of the coordinates."""
        return self._moments(_read("references")[self.name])

    def parameter_reference(self) -> ReferenceMoments | None:
        """Return the reference moments of the parameters; None if only the coordinates were integrated."""
        found = _read("references")[self.name]
        return self._moments({"how": found["how"], **found["parameters"]}) if "parameters" in found else None

    def _moments(self, found: dict[str, Any]) -> ReferenceMoments:
        parts = (np.array(found[name]) for name in ("mean", "mean_se", "sd", "sd_se"))
        return ReferenceMoments(*parts, how=found["how"])

    def published(self) -> dict[str, Any] | None:
        """Return the published moments of its parameters, or None."""
        return _read("published").get(self.name)


@cache
def _read(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@cache
def _data(name: str) -> dict[str, np.ndarray]:
    return {key: np.asarray(value, dtype=float) for key, value in POSTERIORS[name].make_data().items()}


@cache
def _tensors(name: str, dtype: torch.dtype, device: torch.device) -> densities.Data:
    return {key: torch.as_tensor(value, dtype=dtype, device=device) for key, value in _data(name).items()}


def _table(name: str) -> dict[str, np.ndarray]:
    """Return the columns of a table, by name."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    return dict(zip(head, np.array(rows, dtype=float).T, strict=True))


# --- data


def _regression(y: np.ndarray, columns: list[np.ndarray], cauchy: float, precision: float = 0.0) -> dict[str, Any]:
    design = np.column_stack([np.ones(len(y)), *columns])
    return {"y": y, "design": design, "cauchy": cauchy, "precision": precision}


def _kidiq(*terms: str) -> dict[str, Any]:
    table = _table("kidiq")
    table["mom_hs:mom_iq"] = table["mom_hs"] * table["mom_iq"]
    return _regression(table["kid_score"], [table[term] for term in terms], cauchy=2.5)


_MESQUITE = ("diam1", "diam2", "canopy_height", "total_height", "density", "group")


def _mesquite() -> dict[str, Any]:
    table = _table("mesquite")
    return _regression(table["weight"], [table[name] for name in _MESQUITE], cauchy=np.inf)


def _logmesquite() -> dict[str, Any]:
    table = {name: column if name == "group" else np.log(column) for name, column in _table("mesquite").items()}
    return _regression(table["weight"], [table[name] for name in _MESQUITE], cauchy=np.inf)


def _ark() -> dict[str, Any]:
    y, lags = _table("ark")["y"], 5
    before = [y[lags - lag : len(y) - lag] for lag in range(1, lags + 1)]
    return _regression(y[lags:], before, cauchy=2.5, precision=0.01)


def _schools() -> dict[str, Any]:
    table = _table("eight_schools")
    return {"y": table["effect"], "sd": table["sd"]}


def _garch() -> dict[str, Any]:
    return {**_table("garch"), "sigma1": 0.5}


def _ionosphere() -> dict[str, Any]:
    rows = datasets.load("ionosphere")
    features, labels = np.concatenate([rows.x_train, rows.x_test]), np.concatenate([rows.y_train, rows.y_test])
    features = features[:, features.std(0) > 0]
    features = (features - features.mean(0)) / features.std(0)
    return {"y": labels.ravel(), "design": np.column_stack([np.ones(len(features)), features])}


# --- parameters


def _scale_last(x: np.ndarray) -> np.ndarray:
    return np.column_stack([x[:, :-1], np.exp(x[:, -1])])


def _uncentred(x: np.ndarray) -> np.ndarray:
    tau = np.exp(x[:, 9:])
    return np.column_stack([x[:, 8:9] + tau * x[:, :8], x[:, 8], tau])


def _garch_parameters(x: np.ndarray) -> np.ndarray:
    alpha1 = _share(x[:, 2])
    return np.column_stack([x[:, 0], np.exp(x[:, 1]), alpha1, (1 - alpha1) * _share(x[:, 3])])


def _mixture_parameters(x: np.ndarray) -> np.ndarray:
    return np.column_stack([x[:, 0], x[:, 0] + np.exp(x[:, 1]), np.exp(x[:, 2:4]), _share(x[:, 4])])


def _share(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


# --- the list


def _names(stem: str, count: int) -> tuple[str, ...]:
    return tuple(f"{stem}[{i + 1}]" for i in range(count))


def _linear(name: str, title: str, make_data: Callable[[], dict[str, Any]], size: int) -> Posterior:
    names = (*_names("beta", size), "log sigma")
    return Posterior(name, title, densities.regression, names, make_data, _scale_last)


_ALL = (
    _linear("kidscore_momiq", "Test scores by the mother's IQ", lambda: _kidiq("mom_iq"), 2),
    _linear("kidscore_momhsiq", "Test scores by IQ and school", lambda: _kidiq("mom_hs", "mom_iq"), 3),
    _linear(
        "kidscore_interaction",
        "Test scores by IQ, school and both: strongly correlated",
        lambda: _kidiq("mom_hs", "mom_iq", "mom_hs:mom_iq"),
        4,
    ),
    _linear("mesquite", "Weight of mesquite bushes: scales from 1 to 100", _mesquite, 7),
    _linear("logmesquite", "Log weight of mesquite bushes", _logmesquite, 7),
    _linear("ark", "Autoregression of order five", _ark, 6),
    Posterior(
        "arma", "ARMA(1, 1)", densities.arma, ("mu", "phi", "theta", "log sigma"), lambda: _table("arma"),
        _scale_last,
    ),
    Posterior(
        "garch", "GARCH(1, 1)", densities.garch, ("mu", "log alpha0", "logit alpha1", "logit beta1/(1-alpha1)"),
        _garch, _garch_parameters,
    ),
    Posterior(
        "gauss_mix", "Mixture of two normals, in order", densities.gauss_mix,
        ("mu[1]", "log gap", "log sigma[1]", "log sigma[2]", "logit theta"), lambda: _table("gauss_mix"),
        _mixture_parameters,
    ),
    Posterior(
        "gp_regression", "Gaussian process with noise", densities.gp_regression,
        ("log rho", "log alpha", "log sigma"), lambda: _table("gp"), np.exp,
    ),
    Posterior(
        "eight_schools_centred", "Eight schools, centred: a funnel", densities.eight_schools_centred,
        (*_names("theta", 8), "mu", "log tau"), _schools, _scale_last,
        bends=True,
    ),
    Posterior(
        "eight_schools_noncentred", "Eight schools, not centred", densities.eight_schools_noncentred,
        (*_names("theta~", 8), "mu", "log tau"), _schools, _uncentred,
    ),
    Posterior(
        "ionosphere", "Logistic regression on Ionosphere", densities.logistic_regression, _names("beta", 34),
        _ionosphere, np.asarray,
    ),
)  # fmt: skip

#: All of them, by name.
POSTERIORS: dict[str, Posterior] = {posterior.name: posterior for posterior in _ALL}

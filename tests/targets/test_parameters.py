"""Named parameters with constraints: what their transforms and log-Jacobians make of densities with closed forms."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import constraints

import bnnviz
from bnnviz import targets
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.targets import Parameter, ParameterDensity

EFFECTS = torch.tensor([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = torch.tensor([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
LEVEL = 4.0  # standard errors
PUBLISHED = Path(__file__).parents[2] / "benchmarks/posteriors/data/published.json"


def gamma(given: dict[str, Tensor]) -> Tensor:
    return given["x"] - 2 * given["x"].log()


def beta(given: dict[str, Tensor]) -> Tensor:
    return -given["p"].log() - 2 * torch.log1p(-given["p"])


def half_normal(given: dict[str, Tensor]) -> Tensor:
    return given["s"].square() / 2


def dirichlet(given: dict[str, Tensor]) -> Tensor:
    return -(torch.tensor([1.0, 2.0, 3.0]) * given["w"].log()).sum(-1)


def eight_schools(given: dict[str, Tensor]) -> Tensor:
    mu, tau, z = given["mu"], given["tau"], given["z"]
    theta = mu[:, None] + tau[:, None] * z
    off = ((EFFECTS - theta) / ERRORS).square().sum(-1) / 2
    return off + (mu / 5).square() / 2 + torch.log1p((tau / 5).square()) + z.square().sum(-1) / 2


@pytest.mark.parametrize(
    ("parameter", "function", "name", "mass"),
    [
        (bnnviz.positive(), gamma, "x", 2.0),  # of x^2 exp(-x): Gamma(3)
        (bnnviz.interval(0, 1), beta, "p", 1 / 12),  # B(2, 3)
        (bnnviz.above(0), half_normal, "s", math.sqrt(math.pi / 2)),
    ],
)
def test_the_density_of_the_coordinate_has_the_mass_of_the_parameters(parameter, function, name, mass) -> None:
    """A wrong Jacobian, of any kind, changes the integral."""
    y = torch.linspace(-40, 40, 80001, dtype=torch.float64)
    target = ParameterDensity(function, {name: parameter}).to("cpu", torch.float64)
    density = torch.exp(-target.potential(y[:, None])).nan_to_num()
    assert float(torch.trapezoid(density, y)) == pytest.approx(mass, rel=1e-6)


def test_a_simplex_has_the_mass_of_dirichlet() -> None:
    target = ParameterDensity(dirichlet, {"w": bnnviz.simplex(3)}).to("cpu", torch.float64)
    ticks = torch.linspace(-25, 25, 801, dtype=torch.float64)
    density = torch.exp(-target.potential(torch.cartesian_prod(ticks, ticks))).nan_to_num()
    mass = density.sum() * (ticks[1] - ticks[0]) ** 2
    assert float(mass) == pytest.approx(math.gamma(2) * math.gamma(3) * math.gamma(4) / math.gamma(9), rel=1e-4)


def _off(values: np.ndarray, truth: float, target_ess: float) -> float:
    """Return by how many standard errors a mean is off."""
    return abs(values.mean() - truth) / (values.std() / target_ess**0.5)


@pytest.mark.slow
def test_draws_come_back_as_their_constraints_have_them() -> None:
    given = {"x": bnnviz.positive(), "w": bnnviz.simplex(3), "z": (2, 2)}

    def potential(parts: dict[str, Tensor]) -> Tensor:
        return gamma(parts) + dirichlet(parts) + parts["z"].square().sum((-1, -2)) / 2

    run = bnnviz.sample(potential, "hmc", parameters=given, draws=200, warmup=100, chains=8, seed=1)
    found, ess = run.parameters(), run.summary()["ess_min"]
    shapes = {name: part.shape for name, part in found.items()}
    assert shapes == {"x": (8, 200), "w": (8, 200, 3), "z": (8, 200, 2, 2)}
    assert run.draws.shape == (8, 200, 7)
    assert (found["x"] > 0).all() and np.allclose(found["w"].sum(-1), 1)
    truths = [(found["x"], 3), ((found["x"] - 3) ** 2, 3), (found["z"], 0)]
    truths += [(found["w"][..., i], (i + 2) / 9) for i in range(3)]
    assert max(_off(values, truth, ess) for values, truth in truths) < LEVEL


@pytest.mark.slow
def test_eight_schools_have_the_published_means() -> None:
    """Means of mu, tau and all effects, within the errors of ours and of the published ones (posteriordb)."""
    published = json.loads(PUBLISHED.read_text())["eight_schools_noncentred"]
    given = {"mu": (), "tau": bnnviz.positive(), "z": (8,)}
    run = bnnviz.sample(eight_schools, "nuts", parameters=given, draws=1000, chains=4, seed=2)
    found, ess = run.parameters(), run.summary()["ess_min"]
    theta = found["mu"][..., None] + found["tau"][..., None] * found["z"]
    draws = np.concatenate([theta, found["mu"][..., None], found["tau"][..., None]], -1).reshape(-1, 10)
    error = np.hypot(draws.std(0) / ess**0.5, published["mcse"])
    assert np.abs((draws.mean(0) - published["mean"]) / error).max() < LEVEL


@pytest.mark.parametrize(
    "parameter",
    [
        Parameter(constraints.corr_cholesky, (3, 3)),
        bnnviz.below(-1, 2),
        bnnviz.interval(-1, 5, (2, 3)),
        bnnviz.simplex(4, 2),
    ],
)
def test_other_constraints_have_the_jacobian_of_their_map(parameter: Parameter) -> None:
    y = torch.randn(1, parameter.size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    value, log_det = parameter.value(y)
    assert bool(parameter.constraint.check(value).all()) and value.shape[1:] == parameter.shape
    whole = torch.autograd.functional.jacobian(lambda z: parameter.value(z)[0].flatten(), y)[:, 0]
    rows = _independent(parameter)
    assert float(torch.linalg.slogdet(whole[rows])[1]) == pytest.approx(float(log_det), abs=1e-9)


def _independent(parameter: Parameter) -> list[int]:
    """Return the numbers of the entries of a flattened value that determine it."""
    places = list(np.ndindex(*parameter.shape))
    if parameter.constraint is constraints.corr_cholesky:
        return [i for i, (row, column) in enumerate(places) if column < row]
    if parameter.constraint is constraints.simplex:
        return [i for i, place in enumerate(places) if place[-1] < parameter.shape[-1] - 1]
    return list(range(len(places)))


@pytest.mark.parametrize(
    ("options", "statement"),
    [
        ({"parameters": {}}, "a dict of shapes or constraints"),
        ({"parameters": {"x": 0}}, "a positive integer"),
        ({"parameters": {"x": "positive"}}, "a positive integer"),
        ({"parameters": {1: ()}}, "name must be a string"),
        ({"parameters": {"x": ()}, "dim": 1}, "dim is determined"),
        ({}, "parameters="),
    ],
)
def test_what_are_no_parameters_is_refused(options: dict[str, Any], statement: str) -> None:
    with pytest.raises(BnnvizError, match=statement):
        bnnviz.start(gamma, "nuts", **options)


@pytest.mark.parametrize(
    ("make", "statement"),
    [
        (lambda: bnnviz.interval(1, 1), "must be below the upper"),
        (lambda: bnnviz.above(math.inf), "finite number"),
        (lambda: bnnviz.simplex(1), "cannot satisfy"),
        (lambda: Parameter(constraints.positive_integer), "no bijection"),
        (lambda: Parameter(constraints.corr_cholesky, 4), "cannot satisfy"),
    ],
)
def test_a_constraint_that_cannot_be_is_refused(make, statement: str) -> None:
    with pytest.raises(BnnvizError, match=statement):
        make()


POINT = {"x": 3.0, "w": [0.2, 0.3, 0.5], "z": [[1.0, 2.0], [3.0, 4.0]]}
NAMED = {"x": bnnviz.positive(), "w": bnnviz.simplex(3), "z": (2, 2)}


def _all(parts: dict[str, Tensor]) -> Tensor:
    return gamma(parts) + dirichlet(parts) + parts["z"].square().sum((-1, -2)) / 2


def _set_out(target: targets.Target, chains: int, given: Any) -> Run:
    """Return a run of which no move is made."""
    spec = bnnviz.start(target, "hmc", chains=chains, start=given, dtype="float64", paused=True).stop().spec
    run = Run(spec, target=target)
    run.prepare()
    return run


@pytest.mark.parametrize(
    "given",
    [
        POINT,
        {name: np.array([value, value]) for name, value in POINT.items()},
        {**POINT, "x": torch.tensor([3.0, 3.0])},
        [POINT, {**POINT, "x": torch.tensor(3.0)}],
    ],
    ids=["one point", "one a chain", "some a chain", "a list"],
)
def test_chains_set_out_from_values_of_the_parameters(given: Any) -> None:
    target = ParameterDensity(_all, NAMED)
    run = _set_out(target, 2, given)
    for name, value in POINT.items():
        np.testing.assert_allclose(target.named_values(run.state.x)[name], np.array([value, value]), rtol=1e-12)
    assert "given_start" in {note.code for note in run.notes}


@pytest.mark.parametrize("given", [[1.0, 2.0], np.array([[1.0, 2.0]] * 3), torch.tensor([[1.0, 2.0]])])
def test_chains_set_out_from_an_array(given: Any) -> None:
    assert _set_out(targets.Callable(lambda x: x.square().sum(-1), 2), 3, given).state.x.tolist() == [[1.0, 2.0]] * 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"x": 1.0}, "needs a value of the parameter (w|z)"),
        ({**POINT, "y": 1.0}, "has no parameter y; its parameters are x, w, z"),
        ({**POINT, "x": -1.0}, "The value of x violates its constraint"),
        ({**POINT, "w": [0.5, 0.5, 0.5]}, "The value of w violates its constraint"),
        ({**POINT, "z": [1.0]}, r"The value of z has shape \(1,\); give \(2, 2\)"),
        (
            {**POINT, "x": [1.0, 2.0, 3.0], "z": np.zeros((2, 2, 2))},
            "one value of each parameter, or one per chain of each",
        ),
        (np.zeros((2, 3)), "3 dimensions, but this target has 7"),
        ([np.nan] * 7, "not finite"),
        (["a"] * 7, "array of numbers"),
    ],
)
def test_points_that_do_not_fit_are_refused(given: Any, says: str) -> None:
    with pytest.raises(BnnvizError, match=says):
        bnnviz.start(_all, "nuts", parameters=NAMED, start=given, paused=True)

"""Densities that raise errors where they are not defined, and starting points that are tried again."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz.engine.run.initialization import TRIES, Descent
from bnnviz.engine.run.run import Run
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz.targets import Callable
from bnnviz.targets.base import RejectedPoints, evaluated


def gamma(x: torch.Tensor) -> torch.Tensor:
    """Return U of two independent Gamma(4, 1), by a distribution that refuses what is not positive."""
    log = -torch.distributions.Gamma(4.0, 1.0).log_prob(x)
    return log.sum(1)


def wishart(x: torch.Tensor) -> torch.Tensor:
    """Return U of the entries a, b, c of a matrix [[a, b], [b, c]] from a Wishart(8, I), by its Cholesky factor."""
    matrix = torch.stack([x[:, 0], x[:, 1], x[:, 1], x[:, 2]], 1).view(-1, 2, 2)
    factor = torch.linalg.cholesky(matrix)
    log_det = 2 * factor.diagonal(dim1=1, dim2=2).log().sum(1)
    return -(8 - 3) / 2 * log_det + (x[:, 0] + x[:, 2]) / 2


def finished(target: Callable, sampler: str = "hmc", **changes: object) -> Run:
    spec = Spec(target=target.title, sampler=sampler, **{"draws": 400, "warmup": 200, **changes})
    run = Run(spec, target=target)
    while not run.finished:
        run.advance(1.0)
    return run


def test_points_that_raise_are_found_by_halves_and_infinite() -> None:
    x = torch.tensor([[1.0, 2.0], [-1.0, 2.0], [3.0, 1.0], [2.0, -2.0], [1.0, 1.0]])
    target = Callable(gamma, 2)
    potential, gradient = target.gradient(x)
    fine = [0, 2, 4]
    expected, slope = Callable(gamma, 2).gradient(x[fine])
    assert torch.equal(potential[fine], expected) and torch.equal(gradient[fine], slope)
    assert torch.isinf(potential[[1, 3]]).all() and torch.isnan(gradient[[1, 3]]).all()
    assert target.rejected.count == 2 and "ValueError" in target.rejected.first
    *_, product = target.gradient_and_product(x, torch.ones_like(x))
    assert torch.isfinite(product[fine]).all()


@pytest.mark.parametrize("error", [TypeError("no"), NameError("no"), RuntimeError("shapes"), BnnvizError("no")])
def test_other_errors_are_the_callers_to_see(error: Exception) -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise error

    with pytest.raises(type(error)):
        evaluated(fails, torch.zeros(4, 2), RejectedPoints())


def test_a_matrix_without_a_factor_is_a_rejected_point() -> None:
    run = finished(Callable(wishart, 3), draws=60, warmup=20)
    assert run.phase == "done" and run.alive.all() and run.target.rejected.count
    assert "LinAlgError" in run.target.rejected.first
    assert "rejected_points" in {note.code for note in run.notes}


def test_the_number_goes_on_from_a_checkpoint() -> None:
    target = Callable(gamma, 2)
    spec = Spec(target=target.title, sampler="hmc", settings={"step_size": 1.5, "metric": "unit"}, draws=60, warmup=20)
    run = Run(spec, target=target)
    while run.phase != "sampling":
        run.step_proposal()
    other = Run.restore(run.checkpoint(), target=target)
    for each in (run, other):
        while not each.finished:
            each.step_proposal()
    assert other.target.rejected.count == run.target.rejected.count
    assert other.notes == run.notes and np.array_equal(run.draws, other.draws)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, 0] - x[:, 0].log(),
        lambda x: (x[:, 0].sqrt() - 1) ** 2,
        lambda x: -torch.distributions.Normal(0.0, x[:, 0]).log_prob(torch.tensor(1.0)) + x[:, 0],
    ],
    ids=["log", "sqrt", "normal"],
)
def test_starts_are_tried_again_where_u_is_not_finite(function: object) -> None:
    """Eight chains of one coordinate begin at points above zero, which half of the first are not."""
    target = Callable(function, 1)
    run = Run(Spec(target=target.title, sampler="sgld", chains=8, draws=10), target=target)
    run.prepare()
    assert (run.state.x > 0).all() and run.target.rejected.count == 0
    again = Run(run.spec, target=target)
    again.prepare()
    assert torch.equal(again.state.x, run.state.x)


def test_a_density_that_is_nowhere_defined_is_refused_in_a_sentence() -> None:
    def nowhere(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("the scale must be positive")

    with pytest.raises(BnnvizError, match=rf"Chains 0, 1 .* {TRIES} .*the scale must be positive"):
        bnnviz.sample(nowhere, "hmc", dim=2, chains=2, draws=5)


def test_given_points_are_not_replaced_but_named() -> None:
    source = bnnviz.sample("gaussian", "hmc", draws=5, chains=4, target_settings={"size": 1})
    target = Callable(lambda x: x[:, 0] - x[:, 0].log(), 1)
    outside = np.flatnonzero(source.draws[:, -1, 0] <= 0)
    assert 0 < len(outside) < 4
    fixed = {"step_size": 0.1, "metric": "unit"}
    run = bnnviz.sample(target, "hmc", draws=5, warmup=5, chains=4, start=source.draws[:, -1], settings=fixed)
    (reported,) = (note for note in run._run.notes if note.code == "undefined_start")
    assert reported.values["numbers"] == outside.tolist()


def test_a_descent_comes_back_from_where_there_is_no_slope() -> None:
    """The mode of x - log x is 1; so large a rate leads below zero."""
    target = Callable(lambda x: 20 * (x[:, 0] - x[:, 0].log()), 1)
    target.descent_rate = 3.0
    descent = Descent(target, torch.tensor([[4.0], [0.5]]), 400)
    descent.advance(400)
    assert torch.allclose(descent.ends(), torch.ones(2, 1), atol=0.05)

"""Where chains come to by BFGS: to a density's mass, to modes of their own, or back to where they set out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from families import some_quick

import bnnviz
from bnnviz import targets
from bnnviz.engine.run.descent import QuasiNewton
from bnnviz.engine.run.run import Run
from bnnviz.samplers.pdmp.scaling.preconditioner import Preconditioner
from bnnviz.specs.run import Spec


def ends_of(function: Callable[[torch.Tensor], torch.Tensor], x: list[list[float]]) -> tuple[torch.Tensor, int]:
    start = torch.tensor(x, dtype=torch.float64)
    descent = QuasiNewton(targets.Callable(function, start.shape[1]).to("cpu", torch.float64), start)
    descent.advance(1000)
    assert descent.done
    return descent.ends(), descent.taken


def test_scales_from_a_thousandth_to_a_hundred_are_no_hindrance() -> None:
    sd = torch.tensor([1e-3, 1.0, 100.0], dtype=torch.float64)
    mean = torch.tensor([0.5, -3.0, 250.0], dtype=torch.float64)
    # The first two are correlated.
    factor = torch.tensor([[1.0, 0, 0], [0.95, 0.31, 0], [0, 0, 1.0]], dtype=torch.float64) * sd[:, None]
    inverse = torch.linalg.inv(factor)

    def potential(x: torch.Tensor) -> torch.Tensor:
        return ((x - mean) @ inverse.T).square().sum(-1) / 2

    ends, steps = ends_of(potential, [[0.0, 0.0, 0.0], [1.0, 1.0, -1.0]])
    # One draw in a thousand has a U of 8.1 or more.
    assert (potential(ends) < 8.1).all()
    assert steps < 80


def test_a_density_without_a_mode_leaves_chains_where_they_were() -> None:
    ends, steps = ends_of(lambda x: -x.sum(-1) - x[:, 0].exp(), [[0.3, 0.1], [-0.2, 0.4]])
    assert torch.equal(ends, torch.tensor([[0.3, 0.1], [-0.2, 0.4]], dtype=torch.float64))
    assert steps <= 110


def wells(depth: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return U with two wells, at -3 and 3, of which the right one is so much deeper."""
    return lambda x: ((x.square() - 9).square() / 4 - depth * (x / 6 + 0.5)).sum(-1)


def test_modes_that_have_mass_are_kept_and_others_left() -> None:
    ends, _ = ends_of(wells(5.0), [[-2.5], [2.5], [-3.1], [3.3]])
    assert (ends[:, 0] * torch.tensor([-1.0, 1.0, -1.0, 1.0]) > 2.5).all()
    ends, _ = ends_of(lambda x: torch.where(x < 0, 1000 + (x + 3) ** 2, (x - 3) ** 2).sum(-1), [[-2.0], [4.0]])
    assert (ends - 3).abs().max() < 0.2


def test_a_chain_that_begins_where_u_is_infinite_goes_to_the_others() -> None:
    def potential(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x - 2 * x.clamp_min(1e-300).log(), torch.inf).sum(-1)

    ends, _ = ends_of(potential, [[-1.0], [0.5]])
    assert (ends - 2).abs().max() < 0.2


def test_a_pdmp_sets_out_from_there_on_a_function_and_from_random_points_of_a_named_density() -> None:
    spec = Spec(sampler="bps", chains=4, draws=1, device="cpu", dtype="float64")
    run = Run(spec, target=targets.Callable(lambda x: (x - 50.0).square().sum(-1) / 2, 2))
    run.prepare()
    assert (run.state.x - 50.0).abs().max() < 0.5
    run = Run(spec.replace(target="gaussian", target_settings={"size": 2}))
    run.prepare()
    assert run.state.x.std() > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "unit"), some_quick([("nuts", 1e3), ("nuts", 1.0), ("hmc", 1e-3)], 2))
def test_a_regression_on_raw_scales_has_the_moments_of_its_closed_form(sampler: str, unit: float) -> None:
    """Flat priors and inputs that are not centred: the correlation is -0.999, and scales differ by powers of ten."""
    rng = np.random.default_rng(0)
    x = 66 + rng.normal(0, 3, 60)
    y = unit * (20_000 + 150 * (x - 66) + rng.normal(0, 600, 60))
    rows, seen = torch.tensor(np.column_stack([np.ones(60), x])), torch.tensor(y)

    def potential(w: torch.Tensor) -> torch.Tensor:
        left = (seen - w[:, :2].double() @ rows.T).square().sum(-1) / 2
        return (left * torch.exp(-2 * w[:, 2].double()) + 60 * w[:, 2].double()).to(w.dtype)

    run = bnnviz.sample(potential, sampler, dim=3, draws=400, chains=4, seed=1)
    found = run.summary()
    solved, residual = np.linalg.lstsq(rows.numpy(), y, rcond=None)[:2]
    # Student's t with 57 degrees of freedom.
    cov = np.linalg.inv(rows.numpy().T @ rows.numpy()) * residual / 57 * 57 / 55
    off = (np.array(found["mean"][:2]) - solved) / np.array(found["mean_se"][:2])
    assert np.abs(off).max() < 4.5
    np.testing.assert_allclose(np.diag(found["cov"])[:2], np.diag(cov), rtol=0.3)
    assert found["rhat_max"] < 1.05


def test_the_boomerang_keeps_its_reference_where_a_window_teaches_a_degenerate_one() -> None:
    unit = Preconditioner.unit(torch.ones(2, dtype=torch.float64), dense=True)
    x = torch.zeros(4, 2, dtype=torch.float64)
    sums = unit.added(None, x, x, torch.ones(4, dtype=torch.bool))
    for _ in range(20):
        sums = sums.added(
            x, torch.full_like(x, 1e200), torch.ones(4, dtype=torch.bool), torch.ones(4, dtype=torch.bool)
        )
    learned = unit.learned(sums)
    assert torch.isfinite(learned.factor).all() and torch.isfinite(learned.inverse).all()

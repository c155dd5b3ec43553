"""The published posteriors of the benchmarks: densities, and reference moments against published ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.posteriors.catalogue import POSTERIORS, Posterior
from benchmarks.posteriors.densities import filtered
from benchmarks.posteriors.verdicts import TOLERANCE
from truth import posterior_references

#: Of a published mean of 10,000 draws, and of a standard deviation of as many.
_Z, _SD_SHARE = 5.0, 0.05


def points(posterior: Posterior, count: int = 3, spread: float = 0.3) -> torch.Tensor:
    """Return points (count, dim) near the posterior's mean."""
    known = posterior.reference()
    noise = np.random.default_rng(1).standard_normal((count, posterior.dim))
    return torch.as_tensor(known.mean + spread * known.sd * noise)


@pytest.mark.parametrize("name", POSTERIORS)
def test_densities_of_chains_are_independent_and_differentiable(name: str) -> None:
    posterior = POSTERIORS[name]
    x = points(posterior).requires_grad_(True)
    together = posterior.potential(x)
    torch.testing.assert_close(together, torch.cat([posterior.potential(row[None]) for row in x]))
    (gradient,) = torch.autograd.grad(together.sum(), x)
    steps = 1e-4 * torch.diag(torch.as_tensor(posterior.reference().sd))
    for i, step in enumerate(steps):
        with torch.no_grad():
            slope = (posterior.potential(x + step) - posterior.potential(x - step)) / 2e-4
        torch.testing.assert_close(slope, gradient[:, i] * step[i] / 1e-4, rtol=1e-4, atol=1e-4)


def test_a_recursion_is_what_its_loop_gives() -> None:
    values, factor = torch.randn(2, 200, dtype=torch.float64), torch.tensor([[0.9], [-0.4]], dtype=torch.float64)
    expected, last = [], torch.zeros(2, dtype=torch.float64)
    for t in range(values.shape[1]):
        last = values[:, t] + factor[:, 0] * last
        expected.append(last)
    torch.testing.assert_close(filtered(values, factor), torch.stack(expected, 1))


def test_every_posterior_has_a_reference_that_decides_its_verdict() -> None:
    for posterior in POSTERIORS.values():
        known = posterior.reference()
        assert known.mean.shape == known.sd.shape == (posterior.dim,) and (known.sd > 0).all()
        assert (np.maximum(known.mean_se, known.sd_se) / known.sd < TOLERANCE / 5).all()


@pytest.mark.parametrize("name", [name for name, posterior in POSTERIORS.items() if posterior.published()])
def test_references_agree_with_the_published_figures(name: str) -> None:
    posterior, published = POSTERIORS[name], POSTERIORS[name].published()
    known = posterior.parameter_reference()
    if known is None:  # of the coordinates that are published as they are
        known = posterior.reference()
        columns = [i for i, coordinate in enumerate(posterior.coordinates) if coordinate in published["names"]]
    else:
        columns = list(range(len(published["names"])))
    if name == "eight_schools_noncentred":
        columns = [8]
    se = np.hypot(np.array(published["mcse"])[columns], known.mean_se[columns])
    z = (known.mean[columns] - np.array(published["mean"])[columns]) / se
    assert np.abs(z).max() < _Z, dict(zip(np.array(published["names"])[columns], z, strict=True))
    if "sd" in published:
        ratio = known.sd[columns] / np.array(published["sd"])[columns]
        assert np.abs(ratio - 1).max() < _SD_SHARE


@pytest.mark.parametrize("name", ["kidscore_momiq", "gp_regression", "eight_schools_centred"])
def test_quadrature_gives_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(posterior_references.AXIS, 3, 17)  # exact enough for what falls off on all sides
    known, found = POSTERIORS[name].reference(), posterior_references.make(POSTERIORS[name])
    np.testing.assert_allclose((np.array(found["mean"]) - known.mean) / known.sd, 0, atol=1e-3)
    np.testing.assert_allclose(found["sd"] / known.sd, 1, atol=1e-3)


def test_importance_sampling_gives_the_reference_within_its_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posterior_references, "FITTED", 2000)
    posterior = POSTERIORS["kidscore_momiq"]
    known, found = posterior.reference(), posterior_references.importance(posterior, 10_000)
    assert found.ess > 5000 and found.pareto_k < 0.5
    moments = posterior_references.importance_moments(found.draws, found.weight)
    for name in ("mean", "sd"):
        assert np.abs((moments[name] - getattr(known, name)) / moments[f"{name}_se"]).max() < 4

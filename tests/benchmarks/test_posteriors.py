"""Published posteriors: densities, reference moments against published ones, the rule of right and wrong, rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bnnviz import optional, samplers
from bnnviz.benchmarks import budget, find
from bnnviz.benchmarks.posteriors import POSTERIORS, Posterior, ReferenceMoments, importance, quadrature
from bnnviz.benchmarks.posteriors.verdicts import TOLERANCE, chance_limit, judge
from bnnviz.benchmarks.suites import posteriors as suite
from bnnviz.cli.main import main
from bnnviz.errors import BnnvizError

#: Of a published mean of 10,000 draws, and of a standard deviation of as many.
_Z, _SD_SHARE = 5.0, 0.05


def points(posterior: Posterior, count: int = 3, spread: float = 0.3) -> torch.Tensor:
    """Return points (count, dim) near the posterior's mean."""
    known = posterior.reference()
    noise = np.random.default_rng(1).standard_normal((count, posterior.dim))
    return torch.as_tensor(known.mean + spread * known.sd * noise)


# --- densities


@pytest.mark.parametrize("name", POSTERIORS)
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    posterior = POSTERIORS[name]
    x = points(posterior).requires_grad_(True)
    (gradient,) = torch.autograd.grad(posterior.potential(x).sum(), x)
    scale = torch.as_tensor(posterior.reference().sd)
    for i in range(posterior.dim):
        step = torch.zeros_like(x)
        step[:, i] = 1e-4 * scale[i]
        with torch.no_grad():
            slope = (posterior.potential(x + step) - posterior.potential(x - step)) / 2e-4
        torch.testing.assert_close(slope, gradient[:, i].detach() * scale[i], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", POSTERIORS)
def test_chains_do_not_see_each_other_and_keep_their_precision(name: str) -> None:
    posterior = POSTERIORS[name]
    x = points(posterior)
    together = posterior.potential(x)
    assert together.shape == (3,)
    assert together.dtype == torch.float64
    torch.testing.assert_close(together, torch.cat([posterior.potential(row[None]) for row in x]))


def test_a_recursion_is_what_its_loop_gives() -> None:
    from bnnviz.benchmarks.posteriors.densities import filtered

    values, factor = torch.randn(2, 200, dtype=torch.float64), torch.tensor([[0.9], [-0.4]], dtype=torch.float64)
    expected, last = [], torch.zeros(2, dtype=torch.float64)
    for t in range(values.shape[1]):
        last = values[:, t] + factor[:, 0] * last
        expected.append(last)
    torch.testing.assert_close(filtered(values, factor), torch.stack(expected, 1))


def test_numpyro_models_have_the_same_potential() -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("numpyro")
    from bnnviz.benchmarks.posteriors.numpyro_nuts import flat_potential

    for posterior in POSTERIORS.values():
        x = points(posterior)
        theirs = np.array(jax.vmap(flat_potential(posterior))(x.numpy()))
        off = posterior.potential(x).numpy() - theirs
        assert np.ptp(off) < 1e-8 * np.abs(theirs).max(), posterior.name


# --- references


def test_every_posterior_has_a_reference_and_its_data_are_whole() -> None:
    rows = {"kidscore_momiq": 434, "mesquite": 46, "ark": 195, "ionosphere": 351}
    for name, posterior in POSTERIORS.items():
        known = posterior.reference()
        assert known.mean.shape == known.sd.shape == (posterior.dim,)
        assert (known.sd > 0).all()
        # What a long run leaves open must not decide a verdict.
        assert (known.mean_se / known.sd < TOLERANCE / 5).all()
        assert (known.sd_se / known.sd < TOLERANCE / 5).all()
        assert sum(size for _, size in posterior.sites) == posterior.dim
        if name in rows:
            assert len(posterior.data()["y"]) == rows[name]


@pytest.mark.parametrize("name", [name for name, posterior in POSTERIORS.items() if posterior.published()])
def test_references_agree_with_the_published_figures(name: str) -> None:
    posterior, published = POSTERIORS[name], POSTERIORS[name].published()
    known = posterior.parameter_reference()
    if known is None:  # what is a coordinate as it is
        known, columns = posterior.reference(), _linear(posterior)
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


def _linear(posterior: Posterior) -> list[int]:
    """Return which coordinates are published as they are."""
    names = posterior.published()["names"]
    return [i for i, name in enumerate(posterior.coordinates) if name in names]


@pytest.mark.parametrize("name", ["kidscore_momiq", "gp_regression"])
def test_a_quadrature_over_a_grid_gives_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A coarse one is exact enough: the trapezoidal rule is, of what falls off on all sides.
    monkeypatch.setitem(quadrature.AXIS, 3, 17)
    known = POSTERIORS[name].reference()
    mean, sd = quadrature.over_grid(POSTERIORS[name])
    np.testing.assert_allclose((mean - known.mean) / known.sd, 0, atol=1e-3)
    np.testing.assert_allclose(sd / known.sd, 1, atol=1e-3)


def test_importance_sampling_gives_the_reference_within_its_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importance, "_FITTED", 2000)
    posterior = POSTERIORS["kidscore_momiq"]
    known, found = posterior.reference(), importance.sample(posterior, 10_000)
    assert found.ess > 5000
    assert found.pareto_k < 0.5
    moments = importance.moments(found.draws, found.weight)
    assert np.abs((moments["mean"] - known.mean) / moments["mean_se"]).max() < 4
    assert np.abs((moments["sd"] - known.sd) / moments["sd_se"]).max() < 4


def test_eight_schools_agree_in_both_forms() -> None:
    centred, other = (POSTERIORS[f"eight_schools_{form}"].reference() for form in ("centred", "noncentred"))
    np.testing.assert_allclose(centred.mean[8:], other.mean[8:])
    np.testing.assert_allclose(centred.sd[8:], other.sd[8:])


# --- the rule

TRUTH = ReferenceMoments(np.zeros(3), np.zeros(3), np.ones(3), np.zeros(3), "known")
NAMES = ("a", "b", "c")


def normal_draws(seed: int, count: int = 2000) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((4, count, 3))


def test_exact_draws_are_right() -> None:
    verdicts = [judge(normal_draws(seed, 100), TRUTH, NAMES).verdict for seed in range(40)]
    # One of a thousand is wrong by chance: two of forty would be less than one chance in a thousand.
    assert verdicts.count("wrong") <= 1
    assert set(verdicts) <= {"right", "wrong"}


@pytest.mark.parametrize(
    ("spoil", "of"),
    [
        (lambda x: x * np.array([1.0, 0.7, 1.0]), "sd of b"),
        (lambda x: x * np.array([1.0, 1.0, 1.2]), "sd of c"),
        (lambda x: x + np.array([0.3, 0.0, 0.0]), "mean of a"),
    ],
)
def test_biased_draws_are_wrong_by_what_was_done_to_them(spoil: Any, of: str) -> None:
    found = judge(spoil(normal_draws(0)), TRUTH, NAMES)
    assert (found.verdict, found.of) == ("wrong", of)
    assert abs(found.bias) > found.allowed >= TOLERANCE


def test_a_chain_that_stands_still_is_wrong_and_few_draws_are_nothing() -> None:
    assert judge(np.full((4, 100, 3), 0.5), TRUTH, NAMES).verdict == "wrong"
    assert judge(normal_draws(0, 5), TRUTH, NAMES).verdict == "too few"
    slow = np.repeat(normal_draws(0, 10), 100, axis=1)  # a thousand draws, and each a hundred times the same
    assert judge(slow, TRUTH, NAMES).verdict == "too few"
    assert judge(np.empty((0, 0, 0)), TRUTH, NAMES).verdict == "too few"


def test_a_small_error_is_not_called_wrong_however_sure_it_is() -> None:
    found = judge(normal_draws(0, 40_000) * 1.03, TRUTH, NAMES)
    assert found.verdict == "right"
    assert chance_limit(6) > 3


# --- the table


def test_the_suite_walks_the_samplers_that_follow_the_target() -> None:
    names = {cls.registered for cls in budget.chain_samplers()}
    assert {"nuts", "hmc", "bps", "zigzag", "boomerang", "sgld"} <= names
    assert names.isdisjoint({"map", "laplace", "pmcnet", "func_hmc"})
    assert list(find("posteriors").cases) == list(POSTERIORS)


def test_one_case_in_a_second(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(budget, "chain_samplers", lambda: [samplers.REGISTRY.get("hmc")])
    monkeypatch.setattr(suite.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as ended:
        main(["bench", "posteriors", "--case", "eight_schools_noncentred", "--seconds", "1", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert ended.value.code in (0, None)
    assert row["metric"] == row["sampler"] == "hmc"
    assert row["verdict"] in ("right", "wrong", "too few")
    assert isinstance(row["warned"], bool)
    assert row["cpu_seconds"] < 4


def _made(draws: np.ndarray, warnings: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    run = budget.BudgetRun(draws, {"warnings": warnings, "grad_evals": 7}, 2.0, "")
    monkeypatch.setattr(budget, "run", lambda *_, **__: run)
    return suite.measure(POSTERIORS["gp_regression"], "hmc", 1.0)


def test_who_is_wrong_without_a_word_misses_and_who_warned_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    known = POSTERIORS["gp_regression"].reference()
    right = known.mean + known.sd * normal_draws(0)
    wrong = known.mean + 0.7 * known.sd * normal_draws(0)
    silent = _made(wrong, [], monkeypatch)
    assert (silent.more["verdict"], silent.more["warned"], silent.ok) == ("wrong", False, False)
    told = _made(wrong, ["The chains disagree."], monkeypatch)
    assert (told.more["verdict"], told.more["warned"], told.ok) == ("wrong", True, True)
    assert "warned: The chains disagree." in told.more["note"]
    assert _made(right, [], monkeypatch).ok
    assert not _made(right[:, :3], [], monkeypatch).ok  # hardly a draw, and not a word


def test_a_run_that_mixes_badly_warns() -> None:
    row = suite.measure(POSTERIORS["eight_schools_noncentred"], "sgld", 30.0, draws=30, warmup=0)
    assert row.more["draws"] == 30
    assert row.more["warned"]
    assert row.goal is None


def test_what_a_density_raises_is_a_warning_and_no_crash() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no such point")

    found = budget.run(broken, "hmc", 1.0, dim=2)
    assert "first ValueError: no such point" in found.warnings[0]
    assert found.draws.size == 0


def test_the_sources_of_the_data_are_named() -> None:
    folder = Path(suite.__file__).parents[1] / "posteriors" / "data"
    words = (folder / "README.md").read_text(encoding="utf-8")
    for path in folder.iterdir():
        assert path.name == "README.md" or path.name in words


@pytest.mark.parametrize("name", ["mixing", "nuts", "pdmp", "posteriors"])
def test_a_suite_of_effective_draws_says_at_once_that_they_cannot_be_counted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ArviZ each was nan, and a benchmark of hours had none."""
    monkeypatch.setattr(optional, "has", lambda module: module != "arviz_stats")
    case = next(iter(find(name).cases.values()))
    with pytest.raises(BnnvizError, match="Effective draws need arviz-stats"):
        next(iter(case(1.0, lambda sentence: None)))

"""Targets: gradients and curvatures against automatic differentiation, moments against draws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import bnnviz
from bnnviz import data, targets
from bnnviz.engine.evaluation.predictions import scores
from bnnviz.targets.base import Target

DENSITIES = [
    targets.Gaussian(size=3, correlation=0.7, spread=4.0),
    targets.Gaussian(mean=[1.0, -2.0], cov=[[2.0, 0.3], [0.3, 0.5]]),
    targets.Banana(bend=1.3, width=0.4),
    targets.DoubleWell(reading="text"),
    targets.DoubleWell(reading="figure"),
    targets.GaussianMixture(),
    targets.GaussianMixture(components=2, radius=1.2, width=0.7),
    targets.GaussianMixture(components=1),
    targets.Funnel(size=4, spread=0.8),
    targets.LogisticRegression(),
]


def networks() -> list[targets.BNN]:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    built = []
    for activation in (nn.Tanh, nn.ReLU, nn.SiLU, nn.Sigmoid, nn.Softplus):
        module = nn.Sequential(nn.Linear(3, 7), activation(), nn.Linear(7, 4), activation(), nn.Linear(4, 1))
        built.append(bnnviz.BNN(module, (x, y), prior_sd=0.8, noise_sd=0.3))
    wide = nn.Sequential(nn.Linear(3, 5, bias=False), nn.Tanh(), nn.Linear(5, 4))
    built.append(bnnviz.BNN(wide, (x, rng.integers(0, 4, 30)), "categorical"))
    built.append(bnnviz.BNN(nn.Sequential(nn.Linear(3, 1)), (x, (y > 0).astype(int)), "bernoulli"))
    for activation in (nn.Tanh, nn.ReLU, nn.Softplus):
        module = nn.Sequential(nn.Linear(3, 5), activation(), nn.Linear(5, 1))
        built.append(bnnviz.BNN(module, (x, y), prior_sd=0.8, noise_sd=0.3, noise="learned"))
    built.append(bnnviz.BNN(nn.Linear(3, 1), (x, y), prior_sd=2.0, noise="learned"))
    return built


def two_far_apart(x: torch.Tensor) -> torch.Tensor:
    """Return U of two unit normals at -20 and 20, whose second derivative is nan in torch (0 times infinity)."""
    return -torch.logaddexp(-0.5 * (x - 20).square(), -0.5 * (x + 20).square()).sum(-1)


@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-6), (torch.float32, 1e-2)])
def test_a_curvature_that_is_not_finite_is_the_difference_of_two_gradients(dtype, close):
    target = targets.Callable(two_far_apart, 2).to("cpu", dtype)
    x = torch.tensor([[19.0, -21.0], [22.0, 20.5]], dtype=dtype)
    v = torch.tensor([[1.0, -2.0], [0.5, 0.0]], dtype=dtype)
    plain = torch.autograd.functional.hvp(lambda at: two_far_apart(at).sum(), x, v)[1]
    assert torch.isnan(plain).any()
    _, gradient, product = target.gradient_and_product(x, v)
    torch.testing.assert_close(gradient, x - 20 * x.sign(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(product, v, rtol=close, atol=close)
    torch.testing.assert_close(target.gradient_and_curvature(x, v)[2], v.square().sum(1), rtol=close, atol=close)


@pytest.mark.parametrize("target", [*DENSITIES, *networks()], ids=lambda t: f"{t.title}-{t.dim}")
def test_gradient_and_curvature_agree_with_autograd(target):
    target.to("cpu", torch.float64)
    rng = torch.Generator().manual_seed(1)
    x = 0.7 * torch.randn(5, target.dim, generator=rng, dtype=torch.float64)
    v = torch.randn(5, target.dim, generator=rng, dtype=torch.float64)
    expected = Target.gradient_and_curvature(target, x, v)
    found = target.gradient_and_curvature(x, v)
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-6, atol=1e-7)
    for a, b in zip(target.gradient(x), expected[:2], strict=True):
        assert torch.allclose(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("target", [t for t in DENSITIES if t.exact_draws(1) is not None], ids=lambda t: t.title)
def test_moments_agree_with_exact_draws(target):
    draws = target.exact_draws(200_000, seed=3)
    error = draws.std(0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(0) - target.mean()) < 5 * error).all()
    squares = (draws - target.mean()) ** 2
    error = squares.std(0) / np.sqrt(len(draws))
    assert (np.abs(squares.mean(0) - np.diag(target.cov())) < 5 * error).all()


@pytest.mark.slow
def test_logistic_moments_agree_with_importance_sampling():
    target = targets.LogisticRegression().to("cpu", torch.float64)
    rng = np.random.default_rng(0)
    draws = target.mean() + rng.standard_t(8, (200_000, 3)) @ np.linalg.cholesky(1.3 * target.cov()).T
    from scipy import stats

    whitened = np.linalg.solve(np.linalg.cholesky(1.3 * target.cov()), (draws - target.mean()).T).T
    log_weight = -target.potential(torch.as_tensor(draws)).numpy() - stats.t(8).logpdf(whitened).sum(1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ draws
    assert np.allclose(mean, target.mean(), atol=0.01)
    assert np.allclose((draws - mean).T @ ((draws - mean) * weight[:, None]), target.cov(), atol=0.02)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: bnnviz.BNN(nn.Linear(3, 1), (np.ones((5, 3)), np.ones(5)), noise="unknown"), "fixed, learned"),
        (lambda: bnnviz.BNN(nn.Linear(3, 2), (np.ones((5, 3)), np.ones(5))), "one output"),
        (lambda: bnnviz.BNN(nn.Linear(3, 1), (np.ones((5, 3)), np.ones(4))), "5 inputs"),
        (lambda: bnnviz.BNN(nn.Linear(3, 1), (np.full((5, 3), np.nan), np.ones(5))), "missing or infinite"),
        (lambda: bnnviz.BNN(nn.Linear(3, 2), (np.ones((5, 3)), np.arange(5)), "categorical"), "must run from 0"),
        (lambda: bnnviz.BNN(nn.Linear(3, 1), (np.ones((5, 3)), np.arange(5)), "bernoulli"), "0 or 1"),
        (lambda: bnnviz.BNN(nn.Linear(3, 1), (np.ones((5, 3)), np.ones(5)), "cauchy"), "one of gaussian"),
        (
            lambda: bnnviz.BNN(
                nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False), nn.Linear(3, 1)), (np.eye(5, 3), np.ones(5))
            ),
            "cannot process one row alone",
        ),
        (lambda: targets.Gaussian(mean_list="[0, x]"), "JSON list"),
        (lambda: targets.Gaussian(mean_list="[0, 1]", cov_list="[[1, 2], [2, 1]]"), "positive definite"),
        (lambda: targets.Gaussian(mean=[0.0], cov=np.eye(2)), "shape"),
    ],
)
def test_bad_targets_get_one_sentence(build, words):
    with pytest.raises(bnnviz.BnnvizError, match=words) as caught:
        build()
    assert caught.value.sentence.count("\n") == 0


# --- networks on classes, and on points of the user's ---


CLASSES = {  # three classes on a line
    "name": "three",
    "title": "Three",
    "doc": "",
    "task": "classification",
    "x_train": np.arange(9.0)[:, None],
    "y_train": np.arange(9) // 3,
    "x_test": np.arange(9.0)[:, None],
    "y_test": np.arange(9) // 3,
}


def test_points_take_the_place_of_the_training_rows():
    points = [[0.1, 2.0], [0.3, -1.0]]
    target = targets.Network(hidden="5", points=points)
    assert (target.examples, target.x.tolist(), target.y.tolist()) == (2, [[0.1], [0.3]], [2.0, -1.0])
    assert target.data_set.test_interval == targets.Network().data_set.test_interval
    assert "2 drawn points" in target.describe_value()
    drawn = targets.Network(data="moons", hidden="5", points=[[0.5, -0.5, 1]])
    assert (drawn.x.tolist(), drawn.y.tolist()) == ([[0.5, -0.5]], [1.0])


@pytest.mark.parametrize("name", ["toy_c", "moons"])
@pytest.mark.parametrize("activation", ["tanh", "softplus"])
def test_without_points_there_is_only_the_prior(name, activation):
    target = targets.Network(data=name, hidden="4", activation=activation, prior_sd=0.5, points=[])
    target.to("cpu", torch.float64)
    theta = torch.randn(3, target.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    potential, gradient, curvature = target.gradient_and_curvature(theta, theta)
    assert torch.allclose(potential, 2 * theta.square().sum(-1))
    assert torch.allclose(gradient, 4 * theta)
    assert torch.allclose(curvature, 4 * theta.square().sum(-1))
    assert torch.equal(target.curvature_diagonal(theta[0]), torch.zeros(target.dim, dtype=torch.float64))


@pytest.mark.parametrize(
    ("name", "points", "words"),
    [
        ("toy_c", [[0.0, 1.0, 1.0]], r"have 3 numbers; .* needs rows \[x, y\]"),
        ("moons", [[0.0, 1.0]], r"have 2 numbers; .* needs rows \[x1, x2, class\]"),
        ("moons", [[0.0, 1.0, 2.0]], "has class 2; Two moons has classes 0 to 1"),
        ("moons", [[0.0, 1.0, 0.5]], "has class 0.5"),
        ("moons", [[0.0, 1.0, -1.0]], "has class -1"),
        ("toy_c", [[0.0, float("nan")]], "has nan"),
    ],
)
def test_points_that_do_not_fit_change_nothing(name, points, words):
    target = targets.Network(data=name, hidden="4")
    before = target.x, target.y, target.data_set
    with pytest.raises(bnnviz.BnnvizError, match=words) as caught:
        target.change({"points": points})
    assert caught.value.field == "points"
    assert all(a is b for a, b in zip(before, (target.x, target.y, target.data_set), strict=True))
    with pytest.raises(bnnviz.BnnvizError, match=words):
        targets.Network(data=name, points=points)


def test_rows_of_any_network_can_be_replaced():
    target = bnnviz.BNN(nn.Linear(2, 3), (np.zeros((4, 2)), [0, 1, 2, 0]), "categorical").to("cpu", torch.float32)
    target.replace_rows(np.ones((2, 2)), [2, 1])
    assert (target.examples, target.x.dtype, target.y.tolist()) == (2, torch.float32, [2, 1])
    for x, y, words in (
        (np.ones((2, 3)), [0, 1], r"a row needs \(2,\)"),
        (np.ones((2, 2)), [0, 3], "must run from 0 to 2"),
        (np.ones((0, 2)), [], "0 inputs"),
        (np.full((1, 2), np.nan), [0], "missing or infinite"),
    ):
        with pytest.raises(bnnviz.BnnvizError, match=words):
            target.replace_rows(x, y)
    assert target.y.tolist() == [2, 1]


def test_replaced_rows_are_standardised_like_the_data_set():
    x = np.arange(20.0)[:, None]
    mine = data.DataSet(**{**CLASSES, "task": "regression", "x_train": x, "y_train": 5 + 2 * x[:, 0]})
    target = bnnviz.BNN(nn.Linear(1, 1), mine).to("cpu", torch.float64)
    before = target.x[3], target.y[3]
    target.replace_rows(x[3:4], mine.y_train[3:4])
    assert torch.allclose(target.x[0], before[0]) and torch.allclose(target.y[0], before[1])


# --- learned observation noise ---


def test_learned_noise_is_one_more_coordinate():
    fixed, learned = (targets.Network(hidden="3", prior_sd=2.0, noise_sd=0.3, noise=noise) for noise in targets.NOISES)
    assert (learned.dim, learned.names()[-1], len(learned.names())) == (fixed.dim + 1, "log noise", learned.dim)
    assert learned.describe_value().endswith("10 weights and the noise")
    for target in (fixed, learned):
        target.to("cpu", torch.float64)
    theta = torch.randn(4, learned.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    theta[:2, -1] = torch.tensor([0.0, 2.0])
    assert torch.equal(learned.outputs(theta, learned.x), fixed.outputs(theta[:, :-1].contiguous(), learned.x))
    assert torch.allclose(
        learned.own_values(theta)["noise_sd"][:2], torch.tensor([0.3, 0.3 * np.e], dtype=torch.float64)
    )
    assert fixed.own_values(theta[:, :-1]) == {}
    rows = learned.initial(1000, torch.Generator().manual_seed(0))
    assert rows.shape == (1000, learned.dim)


def test_learned_noise_has_the_exact_posterior_density():
    """Differences of U are those of scipy's log densities, the prior of the noise included."""
    from scipy import stats

    target = targets.Network(hidden="2", prior_sd=0.5, noise_sd=0.3, noise="learned").to("cpu", torch.float64)
    theta = 0.5 * torch.randn(6, target.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sd = target.own_values(theta)["noise_sd"].numpy()
    f = target.outputs(theta, target.x)[..., 0].numpy()
    log_density = stats.norm(f, sd[:, None]).logpdf(target.y.numpy()).sum(1) + stats.norm(0, 0.5).logpdf(theta).sum(1)
    found = target.potential(theta).numpy()
    assert np.allclose(found - found[0], log_density[0] - log_density)
    each = target.likelihood_at(theta).log_density(torch.as_tensor(f)[..., None], target.y)
    assert np.allclose(each, stats.norm(f, sd[:, None]).logpdf(target.y.numpy()))
    prior = stats.norm(0, 0.5).logpdf(theta[:, -1]) - np.log(2.0)
    assert np.allclose(stats.norm(np.log(0.3), 1.0).logpdf(np.log(sd)), prior)


@pytest.mark.slow
def test_hessian_diagonal_and_row_sums(monkeypatch):
    points = [[-0.3, -0.2], [0.0, 0.1], [0.3, 0.2]]
    network = targets.Network(data="toy_c", hidden="3", points=points)
    for target in (targets.LogisticRegression(), network, targets.Banana()):
        target.to("cpu", torch.float64)
        x = torch.linspace(-0.4, 0.6, target.dim, dtype=torch.float64)
        full = torch.func.hessian(lambda one, target=target: target.potential(one[None])[0])(x)
        full = full - (target.prior_precision or 0.0) * torch.eye(target.dim, dtype=torch.float64)
        assert torch.allclose(target.hessian_diagonal(x), full.diagonal(), atol=1e-8)
        assert torch.allclose(target.hessian_row_sums(x), full.sum(1), atol=1e-8)
        monkeypatch.setattr("bnnviz.targets.base._EXACT_DIAGONAL", 0)
        monkeypatch.setattr("bnnviz.targets.base._PROBES", 2000)
        spread = (full - torch.diag(full.diagonal())).square().sum(1).sqrt() / 2000**0.5
        assert ((target.hessian_diagonal(x) - full.diagonal()).abs() < 5 * spread + 1e-9).all()
        monkeypatch.undo()


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["tanh", "softplus"])
def test_gauss_newton_of_learned_noise_is_the_expected_curvature(activation):
    """The average Hessian over many data sets that the network itself has made."""
    target = targets.Network(hidden="2", activation=activation, prior_sd=0.5, noise_sd=0.3, noise="learned")
    target.to("cpu", torch.float64)
    rng = torch.Generator().manual_seed(0)
    theta = 0.5 * torch.randn(1, target.dim, dtype=torch.float64, generator=rng)
    f, sd = target.outputs(theta, target.x)[0, :, 0], target.own_values(theta)["noise_sd"]
    total, basis = 0.0, torch.eye(target.dim, dtype=torch.float64)
    count = 3000
    for _ in range(count):
        target.y = f + sd * torch.randn(f.shape, dtype=torch.float64, generator=rng)
        total = total + target.gradient_and_curvature(theta.expand(target.dim, -1), basis)[2]
    found = target.curvature_diagonal(theta[0])
    assert torch.allclose(found, total / count - target.prior_precision, rtol=0.05, atol=0.05)
    assert float(found[-1]) == 2 * 28 * 4


def test_scores_use_each_draws_own_noise():
    x = np.arange(20.0)[:, None]
    rows = {"x_train": x, "y_train": x[:, 0], "x_test": x[:2], "y_test": [0.0, 1.0]}
    mine = data.DataSet(name="m", title="M", doc="", task="regression", standardise=False, **rows)
    target = bnnviz.BNN(nn.Linear(1, 1), mine, prior_sd=2.0, noise_sd=1.0, noise="learned").to("cpu", torch.float64)
    draws = torch.tensor([[[1.0, 0.0, 0.0], [1.0, 0.0, 4.0]]], dtype=torch.float64)
    density = (1 + np.exp(-2)) / 2 / np.sqrt(2 * np.pi)
    assert scores(target, draws) == pytest.approx({"rmse": 0.0, "nll": -np.log(density)})


def test_single_precision_is_enough_for_ten_thousand_rows():
    """What is lost of gradients and curvatures is far below what they vary by over the posterior, .02 to .04 wide."""
    target = targets.LogisticRegression(rows=10_000)
    rng = torch.Generator().manual_seed(0)
    x = torch.tensor([-0.5, 1.5, -1.0]) + 0.03 * torch.randn(20, 3, generator=rng)
    v = torch.randn(20, 3, generator=rng)
    exact, single = (
        target.to("cpu", dtype).gradient_and_curvature(x.to(dtype), v.to(dtype))
        for dtype in (torch.float64, torch.float32)
    )
    gradient, curvature = (part.double() for part in single[1:])
    assert ((gradient - exact[1]).abs().amax(0) < 1e-3 * exact[1].std(0)).all()
    torch.testing.assert_close(curvature, exact[2], rtol=1e-4, atol=0)

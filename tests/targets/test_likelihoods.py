"""Likelihoods of a network of one's own: against SciPy, quadrature, sums over all observations, and each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from families import some_quick
from scipy import integrate, stats
from torch import Tensor, nn

import bnnviz
from bnnviz.errors import BnnvizError
from bnnviz.models import mlp
from bnnviz.targets import BNN, likelihoods
from bnnviz.targets.minibatch import Rows

LEVEL = 4.0  # standard errors
RNG = np.random.default_rng(0)
F1 = torch.as_tensor(RNG.standard_normal((3, 5, 1)))
F2 = torch.as_tensor(RNG.standard_normal((3, 5, 2)))
REAL, COUNTS, CLASSES = RNG.standard_normal(5), RNG.poisson(2.0, 5).astype(float), np.array([0, 2, 1, 3, 1])
PAIRS = RNG.standard_normal((5, 2))
CUTS = [-1.0, 0.3, 2.0]
POSITIVE = np.exp(REAL)


def ordinal_pmf(f: np.ndarray) -> np.ndarray:
    below = np.concatenate([np.zeros_like(f), 1 / (1 + np.exp(-(np.array(CUTS) - f))), np.ones_like(f)], -1)
    return np.diff(below, axis=-1)


KNOWN = {
    "student_t": (likelihoods.StudentT(3.0, 0.7), F1, REAL, lambda f: stats.t(3, f[..., 0], 0.7).logpdf(REAL)),
    "log_normal": (
        likelihoods.LogNormal(0.7),
        F1,
        POSITIVE,
        lambda f: stats.lognorm(0.7, scale=np.exp(f[..., 0])).logpdf(POSITIVE),
    ),
    "heteroscedastic": (
        likelihoods.Heteroscedastic(),
        F2,
        REAL,
        lambda f: stats.norm(f[..., 0], np.exp(f[..., 1])).logpdf(REAL),
    ),
    "poisson": (likelihoods.Poisson(), F1, COUNTS, lambda f: stats.poisson(np.exp(f[..., 0])).logpmf(COUNTS)),
    "negative_binomial": (
        likelihoods.NegativeBinomial(2.5),
        F1,
        COUNTS,
        lambda f: stats.nbinom(2.5, 2.5 / (2.5 + np.exp(f[..., 0]))).logpmf(COUNTS),
    ),
    "ordinal": (
        likelihoods.Ordinal(cut_points=CUTS),
        F1,
        CLASSES,
        lambda f: np.log(np.take_along_axis(ordinal_pmf(f), np.broadcast_to(CLASSES, (3, 5))[..., None], 2)[..., 0]),
    ),
    "independent": (
        likelihoods.Normal([0.5, 2.0]),
        F2,
        PAIRS,
        lambda f: stats.norm(f, [0.5, 2.0]).logpdf(PAIRS).sum(-1),
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_log_densities_are_scipys(name: str) -> None:
    likelihood, f, y, exact = KNOWN[name]
    found = likelihood.log_density(f, torch.as_tensor(y))
    np.testing.assert_allclose(found.numpy(), exact(f.numpy()), rtol=1e-10)


def every_observation(likelihood: likelihoods.Likelihood) -> tuple[np.ndarray, np.ndarray]:
    """Return observations and the weights that integrate over them."""
    if likelihood.task == "classification":
        return np.arange(4), np.ones(4)
    if likelihood.discrete:
        return np.arange(400.0), np.ones(400)
    wide = np.linspace(-9, 9, 20_001)
    grid = np.exp(wide) if likelihood.name == "log_normal" else np.sinh(wide)
    return grid, np.gradient(grid)


@pytest.mark.parametrize(
    "name",
    ["student_t", "log_normal", "heteroscedastic", "poisson", "negative_binomial", "ordinal"],
)
def test_moments_cdf_and_curvature_are_sums_over_all_observations(name: str) -> None:
    """The Gauss-Newton curvature is the expected square of the slope (Fisher's information)."""
    likelihood, f, *_ = KNOWN[name]
    f = f[:1, :1]
    y, weight = every_observation(likelihood)
    given = torch.as_tensor(y)
    at = f.expand(1, len(y), -1)
    density = weight * likelihood.log_density(at, given).exp().numpy()[0]
    assert density.sum() == pytest.approx(1, abs=1e-6)
    slopes = likelihood.derivatives(at, given, torch.zeros(1, 0))[1].numpy()[0]
    information = np.einsum("y,yi,yj->ij", density, slopes, slopes)
    np.testing.assert_allclose(likelihood.hessian(f, given[:1])[0, 0].numpy(), information, rtol=1e-4, atol=1e-6)
    if likelihood.task == "classification":
        np.testing.assert_allclose(likelihood.mean(f)[0, 0].numpy(), density, rtol=1e-9)
        return
    mean = (density * y).sum()
    assert float(likelihood.mean(f)) == pytest.approx(mean, abs=1e-5)
    wide = 3e-3 if name == "student_t" else 1e-5  # of the tails beyond the grid
    assert float(likelihood.variance(f)) == pytest.approx((density * (y - mean) ** 2).sum(), rel=wide)
    place = int(np.searchsorted(density.cumsum(), 0.7))
    half = 0.0 if likelihood.discrete else 0.5 * density[place]
    assert likelihood.cdf(f, y[place : place + 1])[0, 0] == pytest.approx(density[: place + 1].sum() - half, abs=1e-5)


@pytest.mark.parametrize("name", ["student_t", "log_normal", "heteroscedastic", "poisson", "negative_binomial"])
def test_draws_have_the_mean_and_the_variance(name: str) -> None:
    likelihood, f, *_ = KNOWN[name]
    f = f[:1].expand(20_000, -1, -1)
    drawn = likelihood.draw(f, np.random.default_rng(1))
    mean, variance = likelihood.mean(f)[0].numpy(), likelihood.variance(f)[0].numpy()
    assert (np.abs(drawn.mean(0) - mean) < LEVEL * np.sqrt(variance / len(drawn))).all()
    if name != "student_t":  # whose fourth moment is infinite
        off = np.square(drawn - mean)
        assert (np.abs(off.mean(0) - variance) < LEVEL * off.std(0) / math.sqrt(len(drawn))).all()


class Inner(nn.Module):
    """A perceptron that is no ``Sequential``, so that automatic differentiation does the work."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(2, 3), nn.Linear(3, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.first(x)))


def network(outputs: int, by_hand: bool) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, outputs)) if by_hand else Inner(outputs)


X = RNG.standard_normal((7, 2))
OBSERVED = {
    "real": RNG.standard_normal(7),
    "counts": RNG.poisson(2.0, 7).astype(float),
    "classes": np.array([0, 2, 1, 3, 1, 0, 2]),
    "pairs": RNG.standard_normal((7, 2)),
}


def own_poisson(f: Tensor, y: Tensor) -> Tensor:
    return y * f[:, 0] - f[:, 0].exp() - torch.lgamma(y + 1)


KINDS = {
    "gaussian": (1, "real", {"noise": "learned"}),
    "several": (2, "pairs", {"noise": "learned", "noise_sd": [0.5, 2.0]}),
    "student_t": (1, "real", {"likelihood": "student_t", "noise": "learned"}),
    "heteroscedastic": (2, "real", {"likelihood": "heteroscedastic"}),
    "poisson": (1, "counts", {"likelihood": "poisson"}),
    "negative_binomial": (1, "counts", {"likelihood": "negative_binomial"}),
    "ordinal": (1, "classes", {"likelihood": "ordinal"}),
    "callable": (1, "counts", {"likelihood": own_poisson}),
}


def posterior(kind: str, by_hand: bool = True, **more: object) -> bnnviz.BNN:
    outputs, observed, given = KINDS[kind]
    made = bnnviz.BNN(network(outputs, by_hand), (X, OBSERVED[observed]), **given | {"prior_sd": 1.3} | more)
    return made.to("cpu", torch.float64)


@pytest.mark.parametrize("by_hand", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_those_of_the_potential(kind: str, by_hand: bool) -> None:
    target = posterior(kind, by_hand)
    theta = target.initial(4, torch.Generator().manual_seed(1))
    at = theta.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(target.potential(at).sum(), at)
    np.testing.assert_allclose(target.gradient(theta)[1], slope, rtol=1e-9, atol=1e-11)
    hessian = torch.stack(
        [torch.autograd.functional.hessian(lambda one: target.potential(one[None])[0], x) for x in theta]
    )
    v = torch.randn(theta.shape, dtype=torch.float64)
    product = torch.einsum("cij,cj->ci", hessian, v)
    np.testing.assert_allclose(target.gradient_and_curvature(theta, v)[2], (v * product).sum(-1), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(target.gradient_and_product(theta, v)[2], product, rtol=1e-7, atol=1e-9)
    index = torch.tensor([[0, 1, 2], [3, 4, 5], [6, 0, 2], [5, 5, 1]])
    batch = target.batch(index)
    each = [target.potential_on(theta[k : k + 1], Rows(target.x[i], target.y[i], 7 / 3)) for k, i in enumerate(index)]
    np.testing.assert_allclose(batch.potential(theta), torch.cat(each), rtol=1e-9)
    at = theta.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(batch.potential(at).sum(), at)
    np.testing.assert_allclose(batch.gradient(theta)[1], slope, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_the_curvature_matrix_has_its_diagonal_and_no_negative_eigenvalue(kind: str) -> None:
    target = posterior(kind)
    x = target.initial(1, torch.Generator().manual_seed(2))[0]
    matrix, diagonal = target.curvature_matrix(x), target.curvature_diagonal(x)
    np.testing.assert_allclose(torch.diagonal(matrix), diagonal, rtol=1e-8)
    assert torch.linalg.eigvalsh(matrix).min() > -1e-9
    assert (diagonal[-max(target.likelihood_dim, 1) :] > 0).all()
    estimate = target._signed_diagonal(x)
    assert len(target.names()) == target.dim == len(x) == sum(count for _, count in target.groups())
    # 200 terms for each weight: a tenth of it, for rows that are alike.
    free = slice(0, target.weights)
    assert float((estimate[free].sum() - diagonal[free].sum()).abs() / diagonal[free].sum()) < 0.5


def test_a_function_is_the_likelihood_that_it_computes() -> None:
    own, named = posterior("callable"), posterior("poisson")
    theta = named.initial(3, torch.Generator().manual_seed(0))
    np.testing.assert_allclose(own.potential(theta), named.potential(theta))
    np.testing.assert_allclose(own.gradient(theta)[1], named.gradient(theta)[1])
    np.testing.assert_allclose(own.curvature_matrix(theta[0]), named.curvature_matrix(theta[0]), atol=1e-10)


def grid_moments(
    target: bnnviz.BNN, reach: float, centre: tuple[float, float] = (0.0, 0.0)
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of two weights, by the trapezoidal rule."""
    axis = np.linspace(-reach, reach, 301)
    points = np.stack(np.meshgrid(axis + centre[0], axis + centre[1], indexing="ij"), -1).reshape(-1, 2)
    potential = target.potential(torch.as_tensor(points)).numpy()
    weight = np.exp(potential.min() - potential)
    weight /= weight.sum()
    mean = weight @ points
    return mean, weight @ (points - mean) ** 2


def by_hand(kind: str, x: np.ndarray, y: np.ndarray, a: float, b: float) -> float:
    """Return minus the log posterior of two weights, from SciPy alone."""
    prior = (a**2 + b**2) / 2
    if kind == "heteroscedastic":
        return prior - stats.norm(a * x, np.exp(b * x)).logpdf(y).sum()
    return prior - stats.poisson(np.exp(a * x + b)).logpmf(y).sum()


@pytest.mark.slow
@pytest.mark.parametrize("kind", some_quick(["poisson", "heteroscedastic"], 1))
def test_the_posterior_of_two_weights_is_that_of_quadrature(kind: str) -> None:
    rng = np.random.default_rng(3)
    x = np.linspace(0.3, 1.5, 12)
    y = rng.poisson(np.exp(0.8 * x)).astype(float) if kind == "poisson" else 0.7 * x + 0.4 * rng.standard_normal(12)
    layer = nn.Linear(1, 1) if kind == "poisson" else nn.Linear(1, 2, bias=False)
    target = bnnviz.BNN(nn.Sequential(layer), (x[:, None], y), likelihood=kind).to("cpu", torch.float64)
    # U is, up to a constant, what SciPy has.
    points = torch.tensor([[0.3, -0.2], [1.0, 0.5]], dtype=torch.float64)
    one, other = (by_hand(kind, x, y, *point) for point in points.tolist())
    assert float(target.potential(points).diff()) == pytest.approx(other - one, rel=1e-9)
    mean, variance = grid_moments(target, 4.0)
    run = bnnviz.sample(target, "nuts", draws=300, warmup=200, chains=4, dtype="float64", seed=1, start="module")
    table = run.draws
    found = run.summary()
    error = np.array(found["mean"]) - mean
    assert (np.abs(error) < LEVEL * np.array(found["mean_se"])).all()
    spread = table.reshape(-1, 2).var(0)
    assert (np.abs(spread / variance - 1) < LEVEL * math.sqrt(2 / found["ess_min"]) * 1.5).all()


def test_gamma_poisson() -> None:
    """exp of a weight is the mean of all counts: with its normal prior the posterior is an integral in one variable."""
    y = np.array([3.0, 5, 2, 4, 6, 3])
    module = nn.Sequential(nn.Linear(1, 1, bias=False))
    target = bnnviz.BNN(module, (np.ones((6, 1)), y), likelihood="poisson", prior_sd=2.0)
    run = bnnviz.sample(target, "nuts", draws=250, warmup=150, chains=4, seed=0, start="module")

    def density(b: float) -> float:
        return math.exp(y.sum() * b - 6 * math.exp(b) - b * b / 8)

    mass = integrate.quad(density, -1, 4)[0]
    rate = integrate.quad(lambda b: math.exp(b) * density(b), -1, 4)[0] / mass
    rates = np.exp(run.draws[..., 0].astype(float))
    predicted = run.predict(np.ones((1, 1)))
    error = rates.std() / math.sqrt(max(run.summary()["ess_min"], 1))
    assert abs(rates.mean() - rate) < LEVEL * error
    assert predicted.mean[0] == pytest.approx(rates.mean(), rel=1e-5)
    # The law of total variance: that of the rate, and the mean of the Poisson variance, which is the mean rate.
    assert predicted.sd[0] ** 2 == pytest.approx(rates.var() + rates.mean(), rel=1e-4)
    below = stats.poisson(rates.ravel()).cdf
    for level, value in predicted.quantiles.items():
        assert below(value[0]).mean() >= level > below(value[0] - 1).mean()


REFUSED = [
    ("poisson", 1, [1.0, -1, 2], "counts"),
    ("negative_binomial", 1, [1.0, 0.5, 2], "counts"),
    ("ordinal", 1, [0, 1.5, 2], "integer"),
    ("ordinal", 1, [0, -1, 2], "from 0"),
    ("ordinal", 2, [0, 1, 2], "one output"),
    ("heteroscedastic", 1, [0.0, 1, 2], "logarithm of a standard deviation"),
    ("poisson", 2, [0, 1, 2], "one output"),
    ("bernoulli", 1, [[0, 1], [1, 0], [1, 1]], "one number per row"),
    ("poisson", 1, [[0, 1], [1, 0], [1, 1]], "one number per row"),
    ("gaussian", 1, [[0, 1], [1, 0], [1, 1]], "one output for each column"),
    (likelihoods.Ordinal(cut_points=[0.0]), 1, [0, 1, 2], "from 0 to 1"),
    (lambda f, y: (y - f[:, 0]).sum(), 1, [0.0, 1, 2], "one real number per row"),
    (lambda f, y: y - f, 1, [0.0, 1, 2], "one real number per row"),
    (lambda f, y: -((y - f[:, 0]) ** 2) / y, 1, [0.0, 1, 2], "not finite"),
    (lambda f, y: -((y - f[:, 0] + f[:, 0].mean()) ** 2), 1, [0.0, 1, 2], "depends on the others"),
    (lambda f, y: -(y**2), 1, [0.0, 1, 2], "does not depend on the outputs"),
    (lambda f, y: -((y - f[:, 3]) ** 2), 1, [0.0, 1, 2], "cannot be called"),
    (lambda f, y: -((y - f[:, 0]) ** 2) + torch.rand(len(y)), 1, [0.0, 1, 2], "not deterministic"),
]


@pytest.mark.parametrize(("likelihood", "outputs", "y", "statement"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_sentence(likelihood, outputs, y, statement) -> None:
    with pytest.raises(BnnvizError, match=statement) as error:
        bnnviz.BNN(nn.Linear(1, outputs), (np.arange(3.0)[:, None], np.array(y)), likelihood=likelihood)
    assert str(error.value).count(". ") == 0


@pytest.mark.parametrize(
    ("make", "statement"),
    [
        (lambda: likelihoods.StudentT(df=2.0), "above 2"),
        (lambda: likelihoods.Ordinal(cut_points=[1.0, 0.0]), "finite and increasing"),
        (lambda: likelihoods.NegativeBinomial(-1.0), "above 0"),
        (lambda: posterior("poisson", noise="learned"), "no noise to learn"),
        (lambda: posterior("several", noise_sd=[1.0, 2.0, 3.0]), "3 numbers"),
    ],
)
def test_settings_that_do_not_fit_are_refused(make, statement: str) -> None:
    with pytest.raises(BnnvizError, match=statement):
        make()


def censored(output: Tensor, y: Tensor) -> Tensor:
    """A Tobit likelihood whose derivative is 0 / 0 at outputs far above zero."""
    below = torch.log(torch.distributions.Normal(0.0, 1.0).cdf(-output[:, 0] / 0.3))
    return torch.where(y > 0, -0.5 * ((y - output[:, 0]) / 0.3) ** 2, below)


@pytest.mark.parametrize("order", [1, -1])
def test_a_slope_that_is_not_finite_far_out_is_refused_whichever_rows_come_first(order: int) -> None:
    x = torch.linspace(-2, 2, 60, dtype=torch.float64)[::1, None].flip(0) * order
    with pytest.raises(BnnvizError, match="gradient of the log likelihood is not finite"):
        bnnviz.BNN(nn.Linear(1, 1), (x, x[:, 0].clamp_min(0.0)), likelihood=censored)


@pytest.mark.parametrize("name", likelihoods.NAMES)
def test_a_row_of_weight_two_is_that_row_twice(name: str) -> None:
    rng = np.random.default_rng(0)
    x, times = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    classes = {"bernoulli": 2, "categorical": 3, "ordinal": 3}.get(name)
    y = rng.integers(0, classes, 30) if classes else rng.poisson(3, 30) + 1
    outputs = {"heteroscedastic": 2, "categorical": 3}.get(name, 1)
    module = mlp(2, [4], outputs)
    weighted = BNN(
        module,
        (x, np.column_stack([y, times])),
        likelihoods.Weighted(BNN(module, (x, y), name).likelihood),
        prior="learned",
    )
    twice = np.repeat(np.arange(30), times)
    repeated = BNN(module, (x[twice], y[twice]), BNN(module, (x, y), name).likelihood, prior="learned")
    theta = torch.randn(4, repeated.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (u, slope), (potential, gradient) = weighted.gradient(theta), repeated.gradient(theta)
    np.testing.assert_allclose(slope, gradient, atol=1e-10)
    np.testing.assert_allclose(u - u[0], potential - potential[0], atol=1e-9)  # up to a constant
    np.testing.assert_allclose(
        weighted.gradient_and_product(theta, theta.flip(0))[2],
        repeated.gradient_and_product(theta, theta.flip(0))[2],
        atol=1e-9,
    )
    np.testing.assert_allclose(weighted.curvature_diagonal(theta[0]), repeated.curvature_diagonal(theta[0]), atol=1e-8)


def test_the_distribution_of_four_degrees_of_freedom_is_scipys() -> None:
    y = np.concatenate([np.linspace(-60, 60, 4001), [-np.inf, -1e200, 1e200, np.inf]])
    found = likelihoods.StudentT(4.0).cdf(torch.zeros(1, len(y), 1, dtype=torch.float64), y)
    np.testing.assert_allclose(found[0], stats.t(4).cdf(y), rtol=1e-8, atol=1e-15)

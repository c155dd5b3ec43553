"""Test the derivatives of perceptrons in C++ against automatic differentiation of the same posterior."""

import copy

import numpy as np
import pytest
import torch
from conftest import needs_compiler
from torch import Tensor, nn

import bnnviz
from bnnviz.engine.compilation.torch_internals import traced
from bnnviz.models import mlp
from bnnviz.targets import mlp_native
from bnnviz.targets.base import differentiate, differentiate_twice
from bnnviz.targets.minibatch import Rows

#: One vector of rows, several that fill up a block, and more than two blocks; none at all.
ROWS = (1, 7, 8, 33, 64, 65, 150)


def posterior(sizes: list[int], rows: int, kind: str = "gaussian", activation: type = nn.Tanh, **rest) -> bnnviz.BNN:
    """Return a perceptron on made-up rows, with derivatives in C++, in double precision."""
    rng = np.random.default_rng(rows)
    parts = [part for a, b in zip(sizes, sizes[1:], strict=False) for part in (nn.Linear(a, b), activation())]
    x = rng.normal(size=(rows, sizes[0]))
    y = rng.normal(size=rows) if kind == "gaussian" else rng.integers(0, max(sizes[-1], 2), rows)
    noise = {"noise_sd": 0.5} if kind == "gaussian" else {}
    module = rest.pop("module", None) or nn.Sequential(*parts[:-1])
    return bnnviz.BNN(module, (x, y), kind, prior_sd=0.7, **noise, **rest)


def in_cpp(target: bnnviz.BNN) -> bnnviz.BNN:
    """Return the target, whose derivatives have to be in C++."""
    target.use_native(waits=True)
    assert target._native is not None
    return target


def states(target: bnnviz.BNN, count: int = 3) -> tuple[Tensor, Tensor]:
    """Return random states and directions (count, dim)."""
    numbers = torch.randn(2, count, target.dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return tuple(numbers.to(target.dtype))


def assert_right(target: bnnviz.BNN, rows: Rows, rtol: float = 1e-9) -> None:
    """Compare U, its gradient and v' H v with those of automatic differentiation in double precision."""
    theta, v = states(target)
    assert target._native.suit(theta, rows)
    exact = copy.deepcopy(target).to("cpu", torch.float64)
    same = Rows(*(part.double() if part.is_floating_point() else part for part in rows[:2]), rows.weight)
    value, gradient = target.gradient_on(theta, rows)
    known, slope = differentiate(lambda x: exact.potential_on(x, same), theta.double())
    largest = float(slope.abs().max())
    torch.testing.assert_close(value.double(), known, rtol=rtol, atol=rtol)
    torch.testing.assert_close(gradient.double(), slope, rtol=rtol, atol=rtol * largest)
    *_, product = differentiate_twice(lambda x: exact.potential_on(x, same), theta.double(), v.double())
    curvature = (product * v).sum(-1)
    scale = float((product * v).abs().sum(-1).max())
    torch.testing.assert_close(target.curvature_on(theta, v, rows)[2].double(), curvature, rtol=rtol, atol=rtol * scale)


@needs_compiler
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli", "categorical"])
def test_derivatives_are_those_of_automatic_differentiation(kind: str, rows: int) -> None:
    target = in_cpp(posterior([3, 9, 6, 4 if kind == "categorical" else 1], rows, kind))
    assert_right(target, target.all_rows())


@needs_compiler
@pytest.mark.parametrize("activation", [nn.ReLU, nn.Sigmoid, nn.SiLU, nn.Tanh])
def test_each_activation_has_its_derivatives(activation: type) -> None:
    target = in_cpp(posterior([2, 5, 7, 1], 40, activation=activation))
    assert_right(target, target.all_rows())


@needs_compiler
@pytest.mark.parametrize("activation", [nn.ReLU, nn.Sigmoid, nn.SiLU, nn.Tanh])
def test_single_precision_is_as_exact_as_it_can_be(activation: type) -> None:
    target = in_cpp(posterior([2, 5, 7, 1], 40, activation=activation).to("cpu", torch.float32))
    assert_right(target, target.all_rows(), rtol=3e-6)


@needs_compiler
@pytest.mark.parametrize("noise", ["fixed", "learned"])
@pytest.mark.parametrize("path", [False, True])
@pytest.mark.parametrize("prior", ["equal", "fan_in", "learned"])
def test_priors_noises_and_linear_paths_have_theirs(prior: str, path: bool, noise: str) -> None:
    module = mlp(3, [10, 12], 1, linear_path=path)
    target = in_cpp(posterior([3], 30, module=module, prior=prior, noise=noise))
    assert_right(target, target.all_rows())


@needs_compiler
def test_batches_are_weighted_and_may_be_each_chains_own() -> None:
    target = in_cpp(posterior([3, 6, 1], 90))
    index = torch.randint(90, (3, 70), generator=torch.Generator().manual_seed(2))
    assert_right(target, target.weighted(*target.read(index)))
    assert_right(target, target.part(index[0])._rows)


@needs_compiler
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("activation", [nn.ReLU, nn.Sigmoid, nn.SiLU, nn.Tanh])
def test_what_is_not_finite_stays_so(activation: type, bad: float) -> None:
    target = posterior([2, 5, 5, 1], 20, activation=activation)
    theta = states(target)[0]
    theta[1, 3] = bad
    expected = [part.isfinite() for part in target.gradient(theta)]
    found = [part.isfinite() for part in in_cpp(target).gradient(theta)]
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1].all(1), expected[1].all(1))


@needs_compiler
def test_where_operations_are_recorded_pytorch_computes() -> None:
    target = in_cpp(posterior([3, 6, 1], 20))
    theta = states(target)[0]
    assert not target._native.suit(theta.clone().requires_grad_(True), target.all_rows())
    program = traced(lambda x: [target.gradient(x)[1]], [theta])
    torch.testing.assert_close(program(2 * theta)[0], target.gradient(2 * theta)[1])
    mapped = torch.func.vmap(lambda x: target.potential(x[None])[0])(theta)
    torch.testing.assert_close(mapped, target.potential(theta))
    asked = []
    torch.func.vmap(lambda x: asked.append(target._native.suit(x[None], target.all_rows())) or x)(theta)
    assert asked == [False]


@needs_compiler
def test_a_target_that_moves_to_another_precision_computes_with_pytorch() -> None:
    target = in_cpp(posterior([3, 6, 1], 20)).to("cpu", torch.float32)
    theta = states(target)[0]
    assert not target._native.suit(theta, target.all_rows())
    assert target.gradient(theta)[1].dtype is torch.float32


@needs_compiler
def test_new_rows_are_read() -> None:
    target = in_cpp(posterior([3, 6, 1], 20))
    target.replace_rows(torch.randn(31, 3, dtype=torch.float64), torch.randn(31, dtype=torch.float64))
    assert_right(target, target.all_rows())


@pytest.mark.parametrize(
    "target",
    [
        posterior([3, 300, 1], 10),
        posterior([3, 6, 1], 10, module=nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1))),
        bnnviz.BNN(nn.Linear(2, 1), (torch.randn(9, 2), torch.ones(9)), "poisson"),
    ],
)
def test_others_have_none(target: bnnviz.BNN) -> None:
    target.use_native(waits=True)
    assert target._native is None


@pytest.mark.slow
@needs_compiler
def test_what_the_compiler_gets_wrong_is_not_taken(tmp_path, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    right = mlp_native._SOURCE.read_text(encoding="utf-8")
    source = tmp_path / "wrong.cpp"
    source.write_text(right.replace("g[layer.bias + o] += sum", "g[layer.bias + o] -= sum"), encoding="utf-8")
    monkeypatch.setattr(mlp_native, "_SOURCE", source)
    target = posterior([3, 6, 1], 20)
    target.use_native(waits=True)
    assert target._native is None and "differ from PyTorch's" in caplog.text


@pytest.mark.slow
@needs_compiler
def test_runs_take_it_and_have_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    target = posterior([1, 5, 1], 10)

    def drawn() -> np.ndarray:
        return bnnviz.sample(target, "hmc", draws=10, warmup=10, chains=2, seed=3, dtype="float64").draws

    in_cpp_too, asked = drawn(), []
    monkeypatch.setattr(mlp_native, "derivatives", lambda *args, **rest: asked.append(args))
    # Rounding grows along trajectories, by a few units each.
    np.testing.assert_allclose(drawn(), in_cpp_too, rtol=1e-6, atol=1e-6)
    assert asked

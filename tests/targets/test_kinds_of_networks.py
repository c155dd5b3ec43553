"""Every kind of network is sampled as it is, or refused with a clear error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import odd_modules as odd
import pytest
import torch
from odd_modules import Computed, frozen, head, hooked, parametrized, perceptron, stack
from torch import Tensor, nn
from torch.nn import functional

import bnnviz
from bnnviz import BnnvizError

PRIOR_SD, NOISE_SD = 0.8, 0.3
RNG = np.random.default_rng(3)
X = RNG.normal(size=(7, odd.INPUTS))
Y = np.sin(X.sum(1))


#: Networks that are evaluated for all chains at once, by kind.
AT_ONCE: dict[str, tuple[Callable[[], nn.Module], ...]] = {
    "Frozen parameters (`requires_grad=False`)": (
        lambda: frozen(perceptron(), "0."),
        lambda: frozen(perceptron(), "2.weight", "4.bias"),
    ),
    "Tied weights, a layer used twice": (odd.tied_weight, odd.autoencoder),
    "Parametrizations": (parametrized(nn.utils.parametrizations.spectral_norm),),
    "`weight_norm`, `spectral_norm`": (hooked(nn.utils.weight_norm), hooked(nn.utils.spectral_norm)),
    "Parameters put in the place of others, or in another order": (hooked(odd.unnormed), hooked(odd.broadcast_bias)),
    "A forward that takes derivatives by its inputs, with `torch.func`": (odd.jacobian,),
    "Attention, transformers": (odd.transformer,),
    "Normalisation in evaluation mode": (lambda: odd.normalised(nn.BatchNorm1d(4)),),
    "Tensors in plain attributes, buffers": (odd.own_matrix,),
    "A forward that leaves tensors in attributes": (odd.keeps_all_hidden,),
    "Parameters without numbers, or that the forward does not read": (
        odd.empty_weight,
        lambda: Computed(lambda m, x: m.head(x), unread=nn.Linear(5, 5), head=head(3)),
    ),
    "A forward that writes into its inputs": (odd.zeroes_its_input,),
    "Hooks, subclasses of layers, `torch.fx` graphs": (
        odd.with_hooks,
        lambda: stack(odd.DoubledLinear(3, 4), nn.Tanh(), head()),
    ),
    "Steps: a sign, an argmax, a threshold": (odd.step,),
    "Convolution, Fourier transform, embedding": (odd.convolution,),
    "Kernels, linear algebra, bilinear layers, sampling on a grid": (odd.kernels,),
}
#: Networks that are evaluated for one chain after another.
ONE_BY_ONE: dict[str, tuple[Callable[[], nn.Module], ...]] = {
    "A forward that takes derivatives by its inputs, with `torch.autograd.grad`": (odd.slope_of_inputs,),
    "Recurrent layers": (odd.recurrent,),
    "Real weights seen as complex ones (`torch.view_as_complex`)": (odd.seen_as_complex,),
    "Branches on values": (odd.branch_on_a_weight, odd.branch_on_each_row),
    "A forward that writes in place": (odd.fills,),
    "Operations that are differentiable once": (odd.differentiable_once,),
}


def computed(forward: Callable[[Any, Tensor], Any], **parts: Any) -> Callable[[], nn.Module]:
    return lambda: Computed(forward, **({"head": head(3)} | parts))


def overlapping() -> nn.Module:
    numbers = torch.ones(6)
    first, second = nn.Parameter(numbers[:3]), nn.Parameter(numbers[2:5])
    return Computed(lambda m, x: (x * m.first * m.second).sum(1, keepdim=True), first=first, second=second)


def in_a_list() -> nn.Module:
    module = Computed(lambda m, x: m.head(functional.linear(x, m.held[0])), inner=nn.Linear(3, 3), head=head(3))
    module.held = [module.inner.weight]
    return module


def with_a_copy() -> nn.Module:
    """Return a module with a buffer in the memory of a weight."""
    module = Computed(lambda m, x: m.layer(x) + x @ m.copy.T.to(x), layer=nn.Linear(3, 1))
    module.register_buffer("copy", module.layer.weight.data)
    return module


def straight_through(h: Tensor) -> Tensor:
    return h + (h.sign() - h).detach()


#: Networks that are refused.
REFUSED: dict[str, tuple[Callable[[], nn.Module], ...]] = {
    "Complex weights or buffers": (
        lambda: nn.Linear(3, 1, dtype=torch.complex64),
        computed(lambda m, x: m.head(x) * m.w.real, w=nn.Parameter(torch.ones(1, dtype=torch.complex128))),
    ),
    "No parameters, all frozen": (lambda: stack(nn.Flatten()), lambda: head(3).requires_grad_(False)),
    "Outputs that are constant or detached": (
        computed(lambda m, x: m.head(x).detach()),
        computed(lambda m, x: torch.zeros(len(x), 1, dtype=x.dtype)),
    ),
    "A part that is detached or rounded": (
        computed(lambda m, x: m.head(torch.tanh(m.inner(x)).detach()), inner=nn.Linear(3, 3)),
        computed(lambda m, x: m.head(straight_through(m.inner(x))), inner=nn.Linear(3, 3)),
    ),
    "Weights that the forward changes in place": (odd.renormalised, odd.clipped),
    "Tensors that were computed from parameters before": (odd.computed_before,),
    "Lazy layers, the device `meta`": (lambda: stack(nn.LazyLinear(4), nn.Tanh(), head()),),
    "Outputs that are not finite": (computed(lambda m, x: m.head(x) / 0),),
    "Weights that are read from a list": (in_a_list,),
    "Random numbers in evaluation mode, states kept from call to call": (
        computed(lambda m, x: m.head(functional.dropout(x))),
    ),
    "Rows whose outputs depend on each other": (
        computed(lambda m, x: m.head(functional.batch_norm(x, None, None, training=True))),
        lambda: odd.normalised(nn.BatchNorm1d(4, track_running_stats=False)),
    ),
    "TorchScript, `torch.compile`, `DataParallel`": (
        lambda: torch.jit.trace(perceptron(), torch.ones(2, 3)),
        lambda: stack(torch.jit.script(nn.Linear(3, 4)), head()),
    ),
    "Trainable tensors that are no parameters": (
        computed(lambda m, x: m.head(torch.tanh(m.layers[0](x))), layers=[nn.Linear(3, 3)]),
        computed(lambda m, x: m.head(x) * m.scale, scale=torch.ones(1, requires_grad=True)),
    ),
    "Parameters that share memory": (with_a_copy, overlapping),
    "Outputs of another shape or type": (computed(lambda m, x: (m.head(x), x)),),
    "Casts to float32 in the forward": (computed(lambda m, x: m.head(x.float())),),
}

TAKEN = AT_ONCE | ONE_BY_ONE
#: The first of each kind is a quick test.
MODULES = [
    pytest.param(kind, made, id=f"{kind}-{k}", marks=[pytest.mark.slow] * bool(k))
    for kind, examples in TAKEN.items()
    for k, made in enumerate(examples)
]


def posterior(made: Callable[[], nn.Module], seed: int = 0, **options: Any) -> tuple[nn.Module, bnnviz.BNN]:
    torch.manual_seed(seed)
    module = made().double()
    return module, bnnviz.BNN(module, (X, Y), prior_sd=PRIOR_SD, noise_sd=NOISE_SD, **options)


def own_potential(module: nn.Module) -> Tensor:
    """Return U of the module's own weights, from the definition."""
    f = module(torch.tensor(X))[:, 0]
    penalty = sum(p.square().sum() for p in module.parameters() if p.requires_grad) / (2 * PRIOR_SD**2)
    return (f - torch.tensor(Y)).square().sum() / (2 * NOISE_SD**2) + penalty


@pytest.mark.parametrize(("kind", "made"), MODULES)
def test_a_network_that_is_taken_is_sampled_as_it_is(kind: str, made: Callable[[], nn.Module]) -> None:
    """U, its gradient and curvature are those of the module into which a draw is loaded; so are the outputs."""
    module, target = posterior(made)
    assert target.rules.one_by_one == (kind in ONE_BY_ONE)
    theta = target.initial(2, torch.Generator().manual_seed(1)) * 0.7
    v = torch.linspace(-1, 1, theta.numel(), dtype=theta.dtype).view_as(theta)
    potential, gradient = target.gradient(theta)
    curvature = target.gradient_and_curvature(theta, v)[2]
    apart = [target.gradient(theta + step * v)[1] for step in (-1e-5, 1e-5)]
    np.testing.assert_allclose(curvature, ((apart[1] - apart[0]) * v).sum(1) / 2e-5, rtol=1e-4, atol=1e-5)
    for chain, draw in enumerate(theta):
        fresh = made().double().eval()
        fresh.load_state_dict(target.state_dict(draw))
        if hasattr(fresh, "matrix"):
            fresh.matrix = fresh.matrix.double()
        np.testing.assert_allclose(target.outputs(draw[None], X)[0], fresh(torch.tensor(X)).detach(), rtol=1e-9)
        value = own_potential(fresh)
        value.backward()
        own = [p.grad if p.grad is not None else torch.zeros_like(p) for p in fresh.parameters() if p.requires_grad]
        assert potential[chain].item() == pytest.approx(value.item(), rel=1e-9)
        np.testing.assert_allclose(gradient[chain], torch.cat([g.flatten() for g in own]), rtol=1e-8, atol=1e-9)
    assert target.dim == sum(p.numel() for p in module.parameters() if p.requires_grad)


@pytest.mark.parametrize(("kind", "made"), MODULES)
def test_a_network_that_is_taken_computes_in_either_precision(kind: str, made: Callable[[], nn.Module]) -> None:
    """A run's clone in single precision agrees with the double one; so do batches of each chain's own."""
    _, target = posterior(made, noise="learned")
    theta = target.initial(3, torch.Generator().manual_seed(1)) * 0.5
    single = target.clone().to("cpu", torch.float32)
    index = torch.tensor([[0, 1, 2], [3, 4, 5], [6, 0, 1]])
    v = torch.ones_like(theta)
    for part in ("gradient", "gradient_and_product"):
        given = (theta, v)[: 1 + (part != "gradient")]
        exact, batches = (getattr(seen, part)(*given) for seen in (target, target.batch(index)))
        rough = getattr(single, part)(*(each.float() for each in given))
        for a, b in zip(rough, exact, strict=True):
            scale = b.abs().max().item()
            np.testing.assert_allclose(a, b, atol=3e-2 * scale if part != "gradient" else 1e-3 * scale)
        alone = [
            getattr(target.batch(rows[None]), part)(*(each[k : k + 1] for each in given))
            for k, rows in enumerate(index)
        ]
        for together, parts in zip(batches, zip(*alone, strict=True), strict=True):
            np.testing.assert_allclose(together, torch.cat(parts), rtol=1e-6, atol=1e-6 * together.abs().max().item())


@pytest.mark.parametrize(("kind", "made"), [case for case in MODULES if case.id.endswith("-0")])
def test_gauss_newton_of_a_network_that_is_taken(kind: str, made: Callable[[], nn.Module]) -> None:
    """The Gauss-Newton matrix is J' J / sd^2, with J by differences of the outputs."""
    _, target = posterior(made)
    theta = target.initial(1, torch.Generator().manual_seed(1))[0] * 0.7
    steps = 1e-6 * torch.eye(target.dim, dtype=theta.dtype)
    jacobian = (target.outputs(theta + steps, X) - target.outputs(theta - steps, X))[..., 0].T / 2e-6
    expected = jacobian.T @ jacobian / NOISE_SD**2
    np.testing.assert_allclose(target.curvature_matrix(theta), expected, rtol=1e-4, atol=1e-4 * expected.abs().max())
    np.testing.assert_allclose(target.curvature_diagonal(theta), expected.diag(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "made",
    [pytest.param(made, id=f"{name}-{k}") for name, examples in REFUSED.items() for k, made in enumerate(examples)],
)
@pytest.mark.filterwarnings("ignore")
def test_a_network_that_cannot_be_sampled_is_refused(made: Callable[[], nn.Module]) -> None:
    with pytest.raises(BnnvizError) as refused:
        bnnviz.BNN(made(), (X, Y))
    assert refused.value.field == "module"


@pytest.mark.slow
def test_a_step_is_refused_by_processes() -> None:
    assert posterior(odd.step)[1].jumps and not posterior(odd.convolution)[1].jumps
    with pytest.raises(BnnvizError):
        bnnviz.sample(posterior(odd.step)[1], "zigzag", draws=3)


@pytest.mark.parametrize(
    "words",
    [
        lambda: Computed(lambda m, x: m.head(m.words(x).flatten(1)), words=nn.Embedding(5, 2), head=head(6)),
        lambda: Computed(lambda m, x: m.head(m.words(x)), words=nn.EmbeddingBag(5, 2), head=head(2)),
        lambda: Computed(lambda m, x: m.head(functional.one_hot(x, 5).flatten(1).to(m.head.weight)), head=head(15)),
    ],
)
def test_whole_numbers_as_inputs_are_read_with_and_without_a_cast(words: Callable[[], nn.Module]) -> None:
    given = np.arange(21).reshape(7, 3) % 5
    module = words()
    target = bnnviz.BNN(module, (given, Y), noise_sd=0.3)
    assert target.whole
    module.function = lambda m, x, inner=module.function: inner(m, x.long())
    cast = bnnviz.BNN(module, (given, Y), noise_sd=0.3)
    assert cast.dim == sum(p.numel() for p in module.parameters())
    theta = torch.randn(2, cast.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(target.potential(theta), cast.potential(theta), rtol=1e-9)


@pytest.mark.slow
def test_a_forward_that_is_rougher_than_single_precision_is_refused() -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return m.head(torch.tanh(m.inner(x)))

    torch.manual_seed(0)
    target = bnnviz.BNN(Computed(forward, inner=nn.Linear(3, 4), head=head()), (X, Y))
    with pytest.raises(BnnvizError, match="from those in float64, as under torch.autocast") as refused:
        bnnviz.sample(target, "hmc", draws=3)
    assert refused.value.field == "dtype"
    assert bnnviz.sample(target, "hmc", draws=3, warmup=2, dtype="float64").draws.shape[1] == 3


def test_weights_frozen_after_the_posterior_was_made_change_nothing() -> None:
    module = perceptron()
    target = bnnviz.BNN(module, (X, Y), noise_sd=0.3)
    for parameter in (*module.parameters(), *target.module.parameters()):
        parameter.requires_grad_(False)
    draw = torch.arange(float(target.dim), dtype=torch.float64)
    found = torch.cat([held.flatten() for held in target.state_dict(draw).values()])
    torch.testing.assert_close(found.double(), draw)

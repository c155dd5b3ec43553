"""Every kind of network is sampled as it is, or refused in a sentence; the manual's page is made from this table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import odd_modules as odd
import pytest
import torch
from odd_modules import Computed, frozen, head, hooked, parametrized, perceptron, recurrent, stack
from scipy import sparse
from torch import Tensor, fx, nn
from torch.nn import functional

import bnnviz
from bnnviz import BnnvizError

PRIOR_SD, NOISE_SD = 0.8, 0.3
RNG = np.random.default_rng(3)
X = RNG.normal(size=(7, odd.INPUTS))
Y = np.sin(X.sum(1))


class Kind(NamedTuple):
    """A kind of network, how it is sampled, and examples of it."""

    name: str
    how: str
    made: tuple[Callable[[], nn.Module], ...]


AS_IS, LOOP = "All chains at once", "Chains one after another"
TAKEN = (
    Kind(
        "Frozen parameters (`requires_grad=False`)",
        f"{AS_IS}; frozen weights stay what they are, and `dim` counts the others",
        (lambda: frozen(perceptron(), "0."), lambda: frozen(perceptron(), "2.weight", "4.bias"), odd.frozen_factor),
    ),
    Kind(
        "Tied weights, a layer used twice",
        f"{AS_IS}; they count once, and `state_dict` has them under each name",
        (odd.tied_weight, odd.shared_layer, odd.twice_in_a_list, odd.autoencoder, odd.two_names),
    ),
    Kind(
        "Parametrizations (`torch.nn.utils.parametrizations`)",
        f"{AS_IS}; what is sampled are the parameters behind them",
        (
            parametrized(odd.NEW_WEIGHT_NORM, 4),
            parametrized(odd.NEW_SPECTRAL_NORM, 4),
            parametrized(odd.symmetric),
            parametrized(nn.utils.parametrizations.orthogonal),
        ),
    ),
    Kind(
        "`torch.nn.utils.weight_norm`, `spectral_norm`, `prune`",
        f"{AS_IS}; what is sampled are the parameters behind them, pruned ones have the prior alone",
        (hooked(odd.OLD_WEIGHT_NORM), hooked(odd.OLD_SPECTRAL_NORM), hooked(odd.pruned)),
    ),
    Kind(
        "Layers whose parameters were put in the place of others, or in another order",
        AS_IS,
        tuple(
            hooked(made)
            for made in (odd.unnormed, odd.unparametrized, odd.unpruned, odd.broadcast_bias, odd.one_input_less)
        ),
    ),
    Kind(
        "A forward that takes derivatives by its inputs, with `torch.func`",
        AS_IS,
        (odd.jacobian, lambda: stack(odd.jacobian()), lambda: stack(nn.Linear(3, 3), odd.jacobian())),
    ),
    Kind(
        "A forward that takes derivatives by its inputs, with `torch.autograd.grad`",
        f"{LOOP}, which is slower",
        (
            odd.slope_of_inputs,
            lambda: stack(nn.Flatten(), odd.slope_of_inputs()),
            lambda: stack(odd.slope_of_inputs(), nn.Linear(1, 1)),
        ),
    ),
    Kind(
        "Attention, transformers",
        f"{AS_IS}, without fused kernels, of which there are no second derivatives",
        (odd.attention, odd.transformer(), odd.transformer(2), odd.plain_attention),
    ),
    Kind(
        "Normalisation in evaluation mode",
        f"{AS_IS}; batch normalisation has the means and variances that the module came with",
        (
            lambda: odd.normalised(nn.BatchNorm1d(4)),
            lambda: odd.normalised(nn.BatchNorm2d(2), (2, 2, 1)),
            lambda: odd.normalised(nn.GroupNorm(2, 4)),
            lambda: odd.normalised(nn.InstanceNorm1d(2), (2, 2)),
        ),
    ),
    Kind(
        "Tensors in plain attributes, buffers",
        f"{AS_IS}; they move to the run's device and precision",
        (odd.own_matrix(torch.float32), odd.own_matrix(torch.float64), odd.buffered),
    ),
    Kind(
        "A forward that leaves tensors in attributes",
        f"{AS_IS}; the attributes are put back after each call",
        (odd.keeps_hidden, odd.keeps_all_hidden, odd.keeps_named),
    ),
    Kind(
        "Parameters without numbers, or that the forward does not read",
        f"{AS_IS}; the latter have the prior alone",
        (
            odd.empty_weight,
            lambda: Computed(lambda m, x: m.head(x), unread=nn.Linear(5, 5), head=head(3)),
            lambda: Computed(lambda m, x: m.head(x), head=head(3), unread=nn.Parameter(torch.ones(()))),
        ),
    ),
    Kind(
        "A forward that writes into its inputs",
        f"{AS_IS}; they are copied for each call",
        (odd.zeroes_its_input, odd.doubles_its_input, odd.clamps_its_input),
    ),
    Kind(
        "Hooks, subclasses of layers, `torch.fx` graphs",
        AS_IS,
        (
            odd.with_hooks,
            lambda: stack(odd.DoubledLinear(3, 4), nn.Tanh(), head()),
            lambda: fx.symbolic_trace(perceptron()),
        ),
    ),
    Kind(
        "Steps: a sign, an argmax, a threshold",
        f"{AS_IS}; HMC and NUTS are right, slowly, and processes refuse them",
        (odd.step, odd.threshold, odd.best_of_experts),
    ),
    Kind(
        "Convolution, Fourier transform, embedding",
        AS_IS,
        (
            odd.convolution,
            lambda: stack(nn.Unflatten(1, (1, 3)), nn.ConvTranspose1d(1, 2, 2), nn.Tanh(), nn.Flatten(), head(8)),
            odd.shuffled,
            odd.spectrum,
            odd.embedding,
            odd.bag("mean"),
            odd.bag("max"),
            odd.sparse_words,
        ),
    ),
    Kind(
        "Kernels, linear algebra, bilinear layers, sampling on a grid",
        AS_IS,
        (
            odd.kernels,
            odd.exponential_of_matrix,
            odd.solved,
            lambda: Computed(lambda m, x: m.layer(x[:, :2], x[:, 1:]), layer=nn.Bilinear(2, 2, 1)),
            odd.on_an_image,
        ),
    ),
    Kind(
        "Recurrent layers",
        f"{LOOP}, which is slower",
        (
            recurrent(nn.LSTM),
            recurrent(nn.GRU, num_layers=2),
            recurrent(nn.RNN, bidirectional=True),
            odd.cell,
            odd.packed,
        ),
    ),
    Kind(
        "Real weights seen as complex ones (`torch.view_as_complex`)",
        f"{LOOP}, which is slower",
        (
            odd.seen_as_complex,
            lambda: stack(nn.Tanh(), odd.seen_as_complex()),
            lambda: stack(odd.seen_as_complex(), nn.Tanh(), head(1)),
        ),
    ),
    Kind(
        "Branches on values",
        f"{LOOP}, which is slower",
        (odd.branch_on_a_weight, odd.branch_on_each_row, odd.number_of_a_weight, odd.equilibrium),
    ),
    Kind(
        "A forward that writes in place",
        f"{LOOP}, which is slower",
        (odd.fills, odd.adds_in_place, odd.writes_by_index),
    ),
    Kind(
        "Operations that are differentiable once",
        f"{LOOP}, which is slower; second derivatives are differences of gradients",
        (
            odd.differentiable_once,
            lambda: stack(odd.differentiable_once()),
            lambda: stack(nn.Tanh(), odd.differentiable_once()),
        ),
    ),
)


class Refused(NamedTuple):
    """A kind of network that is refused, words of the sentence, and examples of it."""

    name: str
    why: str
    says: str
    made: tuple[Callable[[], nn.Module], ...]


def computed(forward: Callable[[Any, Tensor], Any], **parts: Any) -> Callable[[], nn.Module]:
    return lambda: Computed(forward, **({"head": head(3)} | parts))


def with_buffer() -> nn.Module:
    module = head(3)
    module.register_buffer("phase", torch.ones(3, dtype=torch.complex64))
    return module


def overlapping(first: slice, second: slice) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        numbers = torch.ones(6)
        return Computed(
            lambda m, x: (x * m.first * m.second).sum(1, keepdim=True),
            first=nn.Parameter(numbers[first]),
            second=nn.Parameter(numbers[second]),
        )

    return build


def in_a_list(*names: str) -> Callable[[], nn.Module]:
    def forward(m: Any, x: Tensor) -> Tensor:
        return m.head(torch.tanh(functional.linear(x, m.held[-1]))) * m.held[0].sum()

    def build() -> nn.Module:
        module = Computed(forward, inner=nn.Linear(3, 3), head=head(3))
        module.held = [module.get_parameter(name) for name in names]
        return module

    return build


def beside() -> nn.Module:
    """Return a module whose forward reads another one's weights."""
    other = nn.Linear(3, 1).double()
    return Computed(lambda m, x: m.head(x) + other(x), head=head(3))


def read_twice() -> nn.Module:
    """Return a module whose forward reads a weight once more, by the name that it had outside."""
    layer = nn.Linear(3, 1).double()
    weight = layer.weight
    return Computed(lambda m, x: m.layer(x) + functional.linear(x, weight), layer=layer)


def copied_as(way: str) -> Callable[[], nn.Module]:
    """Return what builds a module that reads a weight's memory once more."""

    def build() -> nn.Module:
        module = Computed(lambda m, x: m.layer(x) + x @ m.copy.T.to(x), layer=nn.Linear(3, 1))
        copy = module.layer.weight.data
        if way == "buffer":
            module.register_buffer("copy", copy)
        else:
            module.copy = nn.Parameter(copy, requires_grad=False) if way == "frozen" else copy
        return module

    return build


def straight_through(h: Tensor) -> Tensor:
    return h + (h.sign() - h).detach()


def counting() -> nn.Module:
    module = Computed(lambda m, x: m.head(x) * m.calls.add_(1.0), head=head(3))
    module.register_buffer("calls", torch.zeros(()))
    return module


DROPOUT = "differ from one call to the next"
ROWS = "depends on the others|cannot read one row alone"
REFUSED = (
    Refused(
        "Complex weights or buffers",
        "samplers move real numbers",
        "holds complex numbers",
        (
            lambda: nn.Linear(3, 1, dtype=torch.complex64),
            computed(lambda m, x: m.head(x) * m.w.real, w=nn.Parameter(torch.ones(1, dtype=torch.complex128))),
            with_buffer,
        ),
    ),
    Refused(
        "No parameters, all frozen",
        "there is nothing to sample",
        "no parameters to sample|parameters of the module are frozen",
        (lambda: stack(nn.Flatten()), lambda: head(3).requires_grad_(False), lambda: frozen(perceptron(), "")),
    ),
    Refused(
        "Outputs that are constant or detached",
        "there is no gradient",
        "do not depend on its weights as far as derivatives tell",
        (
            computed(lambda m, x: m.head(x).detach()),
            computed(lambda m, x: torch.zeros(len(x), 1, dtype=x.dtype)),
            computed(lambda m, x: torch.as_tensor(m.head(x).detach().numpy())),
            computed(lambda m, x: functional.linear(x, m.head.weight.data)),
        ),
    ),
    Refused(
        "A part that is detached or rounded",
        "the gradient is not that of the outputs",
        "change otherwise with its weights than their derivatives say",
        (
            computed(lambda m, x: m.head(torch.tanh(m.inner(x)).detach()), inner=nn.Linear(3, 3)),
            computed(lambda m, x: m.head(x * m.scale.data), scale=nn.Parameter(torch.full((3,), 0.5))),
            computed(lambda m, x: m.head(straight_through(m.inner(x))), inner=nn.Linear(3, 3)),
            computed(lambda m, x: m.head(x).half()),
            odd.unlearnt_word(padding_idx=0),
            odd.unlearnt_word(scale_grad_by_freq=True),
        ),
    ),
    Refused(
        "Weights that the forward changes in place",
        "they are a chain's position",
        "changes its weights in place",
        (odd.renormalised, odd.clipped, odd.decayed),
    ),
    Refused(
        "Tensors that were computed from parameters before",
        "no draw changes them",
        "was computed from parameters before",
        (
            odd.computed_before("weight"),
            odd.computed_before("bias"),
            copied_as("attribute"),
            lambda: stack(odd.computed_before("weight")(), nn.Tanh(), nn.Linear(1, 1)),
        ),
    ),
    Refused(
        "Lazy layers, the device `meta`",
        "there are no weights yet",
        "lazy layers|device meta",
        (
            lambda: stack(nn.LazyLinear(4), nn.Tanh(), head()),
            lambda: stack(nn.Linear(3, 4), nn.Tanh(), nn.LazyLinear(1)),
            lambda: nn.Linear(3, 1, device="meta"),
        ),
    ),
    Refused(
        "Outputs that are not finite",
        "no row has a likelihood",
        "are not finite",
        (
            computed(lambda m, x: m.head(x) / 0),
            computed(lambda m, x: (-m.head(x).square() - 1).log()),
            computed(lambda m, x: m.head(x * torch.nan)),
        ),
    ),
    Refused(
        "Weights that are read from a list",
        "weights of a draw do not get there",
        "from elsewhere than its parameters, such as a closure, a global or a list",
        (
            in_a_list("head.weight", "inner.weight"),
            in_a_list("inner.weight"),
            in_a_list("inner.bias", "inner.weight"),
        ),
    ),
    Refused(
        "Random numbers in evaluation mode, states kept from call to call",
        "outputs have to be a function of weights and inputs",
        DROPOUT,
        (
            computed(lambda m, x: m.head(functional.dropout(x))),
            computed(lambda m, x: m.head(x + torch.randn_like(x))),
            counting,
        ),
    ),
    Refused(
        "Rows whose outputs depend on each other",
        "a row has no likelihood of its own",
        ROWS,
        (
            computed(lambda m, x: m.head(functional.batch_norm(x, None, None, training=True))),
            lambda: odd.normalised(nn.BatchNorm1d(4, track_running_stats=False)),
            computed(lambda m, x: m.head(x - x.mean(0))),
            computed(lambda m, x: torch.softmax(m.head(x), 0)),
            computed(lambda m, x: m.head(m.layer(x)[0]), layer=nn.LSTM(3, 3)),
        ),
    ),
    Refused(
        "TorchScript, `torch.compile`, `DataParallel`",
        "give the module inside",
        "TorchScript|torch.compile|DataParallel",
        (
            lambda: torch.jit.trace(perceptron(), torch.ones(2, 3)),
            lambda: stack(torch.jit.script(nn.Linear(3, 4)), head()),
            lambda: nn.DataParallel(head(3)),
            odd.compiled_forward,
            lambda: stack(odd.compiled_forward(), nn.Tanh(), head(1)),
        ),
    ),
    Refused(
        "Trainable tensors that are no parameters",
        "they would stay what they are, unsaid",
        "trainable tensors (that are no parameters|from elsewhere than its parameters)",
        (
            computed(lambda m, x: m.head(torch.tanh(m.layers[0](x))), layers=[nn.Linear(3, 3)]),
            computed(lambda m, x: m.head(x) * m.scale, scale=torch.ones(1, requires_grad=True)),
            computed(lambda m, x: m.head(x) * m.scales["a"], scales={"a": nn.Parameter(torch.ones(1))}),
            beside,
            read_twice,
        ),
    ),
    Refused(
        "Parameters that share memory",
        "a change of one would be a change of the other",
        "first and second share memory|weight and copy share memory",
        (
            copied_as("buffer"),
            copied_as("frozen"),
            overlapping(slice(0, 3), slice(2, 5)),
            overlapping(slice(0, 5, 2), slice(2, 5)),
            overlapping(slice(0, 3), slice(0, 3)),
        ),
    ),
    Refused(
        "Outputs of another shape or type",
        "the likelihood needs one real number a row, or as many as it says",
        "returns",
        (
            computed(lambda m, x: (m.head(x), x)),
            computed(lambda m, x: {"outputs": m.head(x)}),
            computed(lambda m, x: m.head(x)[:, 0]),
            computed(lambda m, x: torch.complex(m.head(x), m.head(x))),
            computed(lambda m, x: m.head(x).round().long()),
        ),
    ),
    Refused(
        "Casts to float32 in the forward",
        "posteriors are checked in float64",
        "computes in float32 alone",
        (
            computed(lambda m, x: m.head(x.float())),
            computed(lambda m, x: m.head(x.to(torch.float32))),
            computed(lambda m, x: m.head(torch.zeros(len(x), 3) + x.float())),
        ),
    ),
)

#: The first of each kind is a quick test.
MODULES = [
    pytest.param(kind, made, id=f"{kind.name}-{k}", marks=[pytest.mark.slow] * bool(k))
    for kind in TAKEN
    for k, made in enumerate(kind.made)
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
def test_a_network_that_is_taken_is_sampled_as_it_is(kind: Kind, made: Callable[[], nn.Module]) -> None:
    """U, its gradient and curvature are those of the module into which a draw is loaded; so are the outputs."""
    module, target = posterior(made)
    assert target.rules.one_by_one == kind.how.startswith(LOOP)
    assert any("one after another" in sentence for sentence in target.remarks()) == target.rules.one_by_one
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
def test_a_network_that_is_taken_computes_in_either_precision(kind: Kind, made: Callable[[], nn.Module]) -> None:
    """A run's clone in single precision agrees with the double one; so do batches of each chain's own."""
    _, target = posterior(made, noise="learnt")
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
def test_gauss_newton_of_a_network_that_is_taken(kind: Kind, made: Callable[[], nn.Module]) -> None:
    """The Gauss-Newton matrix is J' J / sd^2, with J by differences of the outputs."""
    _, target = posterior(made)
    theta = target.initial(1, torch.Generator().manual_seed(1))[0] * 0.7
    steps = 1e-6 * torch.eye(target.dim, dtype=theta.dtype)
    jacobian = (target.outputs(theta + steps, X) - target.outputs(theta - steps, X))[..., 0].T / 2e-6
    expected = jacobian.T @ jacobian / NOISE_SD**2
    np.testing.assert_allclose(target.curvature_matrix(theta), expected, rtol=1e-4, atol=1e-4 * expected.abs().max())
    np.testing.assert_allclose(target.curvature_diagonal(theta), expected.diag(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("row", "made"),
    [pytest.param(row, made, id=f"{row.name}-{k}") for row in REFUSED for k, made in enumerate(row.made)],
)
@pytest.mark.filterwarnings("ignore")
def test_a_network_that_cannot_be_sampled_is_refused_in_one_sentence(row: Refused, made: Callable) -> None:
    with pytest.raises(BnnvizError) as refused:
        bnnviz.BNN(made(), (X, Y))
    sentence = refused.value.sentence
    assert re.search(row.says, sentence)
    assert refused.value.field == "module"
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 600


@pytest.mark.slow
def test_a_step_is_told_and_refused_by_processes() -> None:
    for kind in TAKEN:
        for made in kind.made if kind.name.startswith(("Steps", "Tied", "Convolution")) else ():
            target = posterior(made)[1]
            assert target.jumps == kind.name.startswith("Steps")
            assert any("outputs jump" in sentence for sentence in target.remarks()) == target.jumps
    with pytest.raises(BnnvizError, match="does not tell where U jumps"):
        bnnviz.sample(posterior(odd.step)[1], "zigzag", draws=3)


@pytest.mark.parametrize(
    "words",
    [
        lambda: Computed(lambda m, x: m.head(m.words(x).flatten(1)), words=nn.Embedding(5, 2), head=head(6)),
        lambda: Computed(lambda m, x: m.head(m.words(x)), words=nn.EmbeddingBag(5, 2), head=head(2)),
        lambda: Computed(lambda m, x: m.head(functional.one_hot(x, 5).flatten(1).double()), head=head(15)),
    ],
)
def test_whole_numbers_as_inputs_are_read_with_and_without_a_cast(words: Callable[[], nn.Module]) -> None:
    given = np.arange(21).reshape(7, 3) % 5
    module = words()
    target = bnnviz.BNN(module, (given, Y))
    assert target.whole
    module.function = lambda m, x, inner=module.function: inner(m, x.long())
    cast = bnnviz.BNN(module, (given, Y))
    assert cast.dim == sum(p.numel() for p in module.parameters())
    theta = torch.randn(2, cast.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(target.potential(theta), cast.potential(theta), rtol=1e-9)


@pytest.mark.slow
def test_a_forward_that_is_rougher_than_single_precision_is_refused() -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return m.head(torch.tanh(m.inner(x)))

    target = bnnviz.BNN(Computed(forward, inner=nn.Linear(3, 4), head=head()), (X, Y))
    with pytest.raises(BnnvizError, match="off those in float64, as under torch.autocast") as refused:
        bnnviz.sample(target, "hmc", draws=3)
    assert refused.value.field == "dtype"
    assert bnnviz.sample(target, "hmc", draws=3, warmup=2, dtype="float64").draws.shape[1] == 3


def test_weights_frozen_after_the_posterior_was_made_change_nothing() -> None:
    module = perceptron()
    target = bnnviz.BNN(module, (X, Y))
    for parameter in (*module.parameters(), *target.module.parameters()):
        parameter.requires_grad_(False)
    draw = torch.arange(float(target.dim), dtype=torch.float64)
    found = torch.cat([held.flatten() for held in target.state_dict(draw).values()])
    torch.testing.assert_close(found.double(), draw)


@pytest.mark.parametrize(
    "given",
    [
        torch.tensor(X).to_sparse(),
        torch.tensor(X).to_sparse_csr(),
        sparse.csr_matrix(X),
        sparse.coo_array(X),
        X[::-1].copy()[::-1],
        X.astype(">f8"),
        X.astype(object),
        np.ma.masked_array(X, False),
    ],
    ids=["COO", "CSR", "SciPy's matrix", "SciPy's array", "negative strides", "big-endian", "objects", "unmasked"],
)
def test_inputs_of_many_kinds_are_the_same_numbers(given: Any) -> None:
    np.testing.assert_array_equal(bnnviz.BNN(head(3), (given, Y)).x, X)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (np.ma.masked_array(X, X > 1), "behind a mask"),
        (torch.nested.nested_tensor([torch.ones(3), torch.ones(2)]), "nested tensor"),
        (np.array([["1.5", "2", "3"]] * 7, dtype=object), "no number"),
    ],
    ids=["masked", "nested", "words"],
)
@pytest.mark.filterwarnings("ignore")
def test_inputs_that_are_no_rows_of_numbers_are_refused(given: Any, says: str) -> None:
    with pytest.raises(BnnvizError, match=says):
        bnnviz.BNN(head(3), (given, Y))

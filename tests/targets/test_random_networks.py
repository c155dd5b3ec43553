"""Random trees of modules of many kinds: each is sampled as it is, or refused in a sentence, and none fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import odd_modules as odd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import bnnviz

WIDTH = 4
X = np.random.default_rng(8).normal(size=(5, WIDTH))
Y = X.sum(1)


def residual(inner: nn.Module) -> nn.Module:
    return odd.Computed(lambda m, x: x + m.inner(x), inner=inner)


def branches(first: nn.Module, second: nn.Module) -> nn.Module:
    """Return the mean of two modules, which may be the same."""
    return odd.Computed(lambda m, x: sum(part(x) for part in m.parts) / 2, parts=nn.ModuleList([first, second]))


def sequence(inner: nn.Module) -> nn.Module:
    """Return a recurrent module over the four inputs as a sequence of numbers."""
    return odd.Computed(lambda m, x: m.inner(x[..., None])[0][..., 0], inner=inner)


def attends() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        h = m.inner(x[..., None])
        return m.attention(h, h, h)[0].mean(-1)

    return odd.Computed(forward, inner=nn.Linear(1, 2), attention=nn.MultiheadAttention(2, 2, batch_first=True))


def linear() -> nn.Module:
    return nn.Linear(WIDTH, WIDTH)


LEAVES = {
    "linear": linear,
    "no bias": lambda: nn.Linear(WIDTH, WIDTH, bias=False),
    "bilinear": lambda: odd.Computed(lambda m, x: m.layer(x, x), layer=nn.Bilinear(WIDTH, WIDTH, WIDTH)),
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "prelu": nn.PReLU,
    "gelu": nn.GELU,
    "softplus": nn.Softplus,
    "softmax": lambda: nn.Softmax(-1),
    "layer norm": lambda: nn.LayerNorm(WIDTH),
    "group norm": lambda: nn.GroupNorm(2, WIDTH),
    "batch norm": lambda: nn.BatchNorm1d(WIDTH),
    "batch statistics": lambda: nn.BatchNorm1d(WIDTH, track_running_stats=False),
    "dropout": nn.Dropout,
    "convolution": lambda: nn.Sequential(nn.Unflatten(1, (1, WIDTH)), nn.Conv1d(1, 1, 3, padding=1), nn.Flatten()),
    "lstm": lambda: sequence(nn.LSTM(1, 1, batch_first=True)),
    "gru": lambda: sequence(nn.GRU(1, 1, batch_first=True)),
    "attention": attends,
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(linear()),
    "spectral norm": lambda: nn.utils.parametrizations.spectral_norm(linear()),
    "frozen": lambda: linear().requires_grad_(False),
    "in place": lambda: odd.Computed(lambda m, x: m.layer(x).mul_(0.5), layer=linear()),
    "branch": lambda: odd.Computed(lambda m, x: x if m.layer.bias[0] > 0 else m.layer(x), layer=linear()),
    "random": lambda: odd.Computed(lambda m, x: x + torch.rand_like(x)),
    "detached": lambda: odd.Computed(lambda m, x: x.detach()),
    "complex": lambda: odd.Computed(lambda m, x: x * m.w.real, w=nn.Parameter(torch.ones(1, dtype=torch.complex64))),
}
NAMES = st.sampled_from(sorted(LEAVES))
TREES = st.recursive(
    NAMES,
    lambda inner: st.one_of(
        st.tuples(st.just("stack"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("residual"), inner),
        st.tuples(st.just("branches"), inner, inner),
        st.tuples(st.just("twice"), inner),
    ),
    max_leaves=6,
)


def grow(tree: str | tuple) -> nn.Module:
    """Return the module that a tree describes."""
    if isinstance(tree, str):
        return LEAVES[tree]()
    kind, *parts = tree
    if kind == "stack":
        return nn.Sequential(*map(grow, parts[0]))
    if kind == "residual":
        return residual(grow(parts[0]))
    first = grow(parts[0])
    return branches(first, first if kind == "twice" else grow(parts[1]))


def build(tree: str | tuple, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(grow(tree), nn.Linear(WIDTH, 1)).double()


def check(tree: str | tuple, seed: int) -> None:
    """Compare outputs of draws with those of the module that they are loaded into, and the gradient with that of U."""
    try:
        target = bnnviz.BNN(build(tree, seed), (X, Y), noise_sd=0.5)
    except bnnviz.BnnvizError as refused:
        assert refused.sentence.endswith(".")
        assert any(word in str(tree) for word in ("random", "batch statistics", "complex", "detached")), refused
        return
    assert "random" not in str(tree)
    assert "complex" not in str(tree)
    theta = target.initial(2, torch.Generator().manual_seed(seed))
    _, gradient, curvature = target.gradient_and_curvature(theta, torch.ones_like(theta))
    assert torch.isfinite(gradient).all()
    assert torch.isfinite(curvature).all()
    for chain, draw in enumerate(theta):
        fresh = build(tree, seed + 10).eval()
        fresh.load_state_dict(target.state_dict(draw))
        f = fresh(torch.tensor(X))
        np.testing.assert_allclose(target.outputs(draw[None], X)[0], f.detach(), rtol=1e-9, atol=1e-12)
        ((f[:, 0] - torch.tensor(Y)).square().sum() * 2).backward()
        own = [p for p in fresh.parameters() if p.requires_grad]
        slopes = [p.grad.flatten() if p.grad is not None else torch.zeros(p.numel()).double() for p in own]
        expected = torch.cat(slopes) + draw.double()
        np.testing.assert_allclose(gradient[chain], expected, rtol=1e-7, atol=1e-8 * float(expected.abs().max()))


ALWAYS = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@pytest.mark.parametrize("examples", [8, pytest.param(150, marks=pytest.mark.slow)])
def test_a_random_network_is_sampled_as_it_is_or_refused(examples: int) -> None:
    given(tree=TREES, seed=st.integers(0, 100))(settings(max_examples=examples, **ALWAYS)(check))()


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_each_kind_of_layer_is_sampled_as_it_is_or_refused(name: str) -> None:
    check(name, 0)

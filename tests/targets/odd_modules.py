"""Modules of many kinds, for tests: each maps inputs (rows, 3) to one output."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

INPUTS = 3


class Computed(nn.Module):
    """A module whose forward is a function of itself and of its inputs."""

    def __init__(self, forward: Callable[[Any, Tensor], Any], **parts: Any) -> None:
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def stack(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(*layers)


def head(inputs: int = 4) -> nn.Linear:
    return nn.Linear(inputs, 1)


def frozen(module: nn.Module, *names: str) -> nn.Module:
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(not name.startswith(names))
    return module


def perceptron() -> nn.Sequential:
    return stack(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), head())


def tied_weight() -> nn.Module:
    module = stack(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh(), head(3))
    module[2].weight = module[0].weight
    return module


def autoencoder() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        return m.head(functional.linear(torch.tanh(m.encoder(x)), m.encoder.weight.T))

    return Computed(forward, encoder=nn.Linear(3, 4), head=head(3))


def parametrized(made: Callable[[nn.Module], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: stack(made(nn.Linear(3, 4)), nn.Tanh(), head())


def hooked(made: Callable[[nn.Module], Any]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        layer = nn.Linear(3, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made(layer)
        return stack(layer, nn.Tanh(), head())

    return build


def recurrent() -> nn.Module:
    layer = nn.LSTM(1, 4, batch_first=True)
    return Computed(lambda m, x: m.head(m.layer(x[..., None])[0][:, -1]), layer=layer, head=head())


def transformer() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        return m.head(m.layer(m.inner(x[..., None])).mean(1))

    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    return Computed(forward, inner=nn.Linear(1, 4), layer=layer, head=head())


def branch_on_a_weight() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        return m.head(torch.tanh(x)) if m.switch > 0 else m.head(torch.sin(x))

    return Computed(forward, switch=nn.Parameter(torch.ones(())), head=head(3))


def branch_on_each_row() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        return torch.stack([m.head(row) if row[0] > 0 else m.other(row) for row in x])

    return Computed(forward, head=head(3), other=head(3))


def fills() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        out = torch.zeros(len(x), 4, dtype=x.dtype)
        for k in range(4):
            out[:, k] = m.layers[k](x)[:, 0]
        return m.head(torch.tanh(out))

    return Computed(forward, layers=nn.ModuleList([head(3) for _ in range(4)]), head=head())


def normalised(layer: nn.Module) -> nn.Module:
    """Give a normalisation statistics that it could have been trained to."""
    if getattr(layer, "running_mean", None) is not None:
        layer.running_mean.uniform_(-1, 1)
        layer.running_var.uniform_(0.5, 2)
    return stack(nn.Linear(3, 4), layer, nn.Tanh(), head())


def seen_as_complex() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        weights = torch.view_as_complex(m.pairs)
        return m.head(torch.cat([x @ weights.real + 1, (x.to(weights.dtype) @ weights).abs() + x[:, :1]], 1))

    return Computed(forward, bias=nn.Parameter(torch.zeros(1)), pairs=nn.Parameter(torch.randn(3, 2, 2)), head=head())


def empty_weight() -> nn.Module:
    return Computed(lambda m, x: m.head(x), nothing=nn.Parameter(torch.zeros(2, 0)), head=head(3))


def zeroes_its_input() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        x[:, 0] = 0
        return m.head(torch.tanh(x))

    return Computed(forward, head=head(3))


def keeps_all_hidden() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        m.all_hidden.append(torch.tanh(m.inner(x)))
        return m.head(m.all_hidden[-1])

    return Computed(forward, inner=nn.Linear(3, 4), head=head(), all_hidden=[])


def own_matrix() -> nn.Module:
    return Computed(
        lambda m, x: m.head(torch.tanh(x @ m.matrix)), matrix=torch.linspace(-1, 1, 12).view(3, 4), head=head()
    )


class Once(torch.autograd.Function):
    """A square that can be differentiated once."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        return 2 * ctx.saved_tensors[0] * slope


def differentiable_once() -> nn.Module:
    return Computed(lambda m, x: m.head(Once.apply(m.inner(x))), inner=nn.Linear(3, 4), head=head())


def convolution() -> nn.Module:
    return stack(nn.Unflatten(1, (1, 3)), nn.Conv1d(1, 2, 2), nn.ReLU(), nn.Flatten(), head())


def kernels() -> nn.Module:
    return Computed(
        lambda m, x: m.head(torch.exp(-torch.cdist(x, m.centres))),
        centres=nn.Parameter(torch.linspace(-1, 1, 12).view(4, 3)),
        head=head(),
    )


class DoubledLinear(nn.Linear):
    """A subclass of a layer with a forward of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


def with_hooks() -> nn.Module:
    module = perceptron()
    module[0].register_forward_pre_hook(lambda layer, given: (given[0] + 1,))
    module[1].register_forward_hook(lambda layer, given, found: 3 * found)
    module.register_forward_hook(lambda layer, given, found: found - 0.5)
    return module


def slope_of_inputs() -> nn.Module:
    """A forward that takes derivatives by its inputs, as physics-informed networks do."""

    def forward(m: Any, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            return torch.autograd.grad(m.body(x).sum(), x, create_graph=True)[0].sum(1, keepdim=True)

    return Computed(forward, body=perceptron())


def jacobian() -> nn.Module:
    """The same for each row by torch.func."""

    def forward(m: Any, x: Tensor) -> Tensor:
        slopes = torch.func.vmap(torch.func.jacrev(lambda row: m.body(row[None])[0, 0]))(x)
        return slopes.sum(1, keepdim=True)

    return Computed(forward, body=perceptron())


def unnormed(layer: nn.Module) -> None:
    """Leave the weights behind the bias among the parameters, as all do that remove what they have registered."""
    nn.utils.weight_norm(layer)
    nn.utils.remove_weight_norm(layer)


def broadcast_bias(layer: nn.Module) -> None:
    layer.bias = nn.Parameter(torch.zeros(1))


def step() -> nn.Module:
    return Computed(lambda m, x: m.head(torch.sign(m.inner(x))), inner=nn.Linear(3, 4), head=head())


def renormalised() -> nn.Module:
    words = nn.Embedding(2, 4, max_norm=0.3)
    return Computed(lambda m, x: m.head(m.words((x > 0).long()).flatten(1)), words=words, head=head(12))


def clipped() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        m.head.weight.data.clamp_(min=0)
        return m.head(x)

    return Computed(forward, head=head(3))


def computed_before() -> nn.Module:
    """Return a module whose weight was computed from a parameter once."""
    module = stack(nn.Linear(3, 4), nn.Tanh(), head())
    kept = module[0]._parameters.pop("weight")
    module[0].raw = nn.Parameter(kept.detach().clone())
    module[0].weight = 2 * module[0].raw
    return module

"""Many copies of one multilayer perceptron at once: value, gradient and directional curvature by hand.

One batched matrix product per layer serves all chains; nothing is recorded for automatic
differentiation, which for small networks costs more than the arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Layer(NamedTuple):
    """Where a linear layer's weights lie in the flat vector."""

    inputs: int
    outputs: int
    weight: int
    bias: int | None
    activation: str


def _tanh(z: Tensor) -> Tensor:
    # torch.tanh takes five times as long as sigmoid on a CPU.
    s = torch.sigmoid(2 * z)
    return 2 * s - 1 if z.requires_grad else s.mul_(2).sub_(1)


def _activate(name: str, z: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the activation, its slope and its second derivative (None where that is zero)."""
    if name == "tanh":
        a = _tanh(z)
        slope = 1 - a * a
        return a, slope, -2 * a * slope
    if name == "relu":
        return z.clamp_min(0), (z > 0).to(z.dtype), None
    if name == "sigmoid":
        a = torch.sigmoid(z)
        slope = a * (1 - a)
        return a, slope, slope * (1 - 2 * a)
    if name == "silu":
        s = torch.sigmoid(z)
        slope = s * (1 + z * (1 - s))
        return z * s, slope, s * (1 - s) * (2 + z * (1 - 2 * s))
    return z, torch.ones_like(z), None


_NAMES = {nn.Tanh: "tanh", nn.ReLU: "relu", nn.Sigmoid: "sigmoid", nn.SiLU: "silu"}


def read_layers(module: nn.Module) -> list[Layer] | None:
    """Read a ``Sequential`` of linear layers and known activations; None if it is anything else."""
    if type(module) is not nn.Sequential:
        return None
    layers: list[Layer] = []
    offset = 0
    for child in module:
        if type(child) is nn.Linear:
            weight, bias = offset, None
            offset += child.weight.numel()
            if child.bias is not None:
                bias, offset = offset, offset + child.bias.numel()
            layers.append(Layer(child.in_features, child.out_features, weight, bias, "identity"))
        elif type(child) in _NAMES and layers and layers[-1].activation == "identity":
            layers[-1] = layers[-1]._replace(activation=_NAMES[type(child)])
        else:
            return None
    shared = len({id(p) for p in module.parameters()}) != sum(len(list(c.parameters())) for c in module)
    return layers if layers and not shared else None


def _weights(layer: Layer, theta: Tensor) -> tuple[Tensor, Tensor | None]:
    size = layer.inputs * layer.outputs
    w = theta[:, layer.weight : layer.weight + size].view(-1, layer.outputs, layer.inputs)
    b = None if layer.bias is None else theta[:, layer.bias : layer.bias + layer.outputs].unsqueeze(1)
    return w, b


def _affine(a: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    product = torch.matmul(a, w.transpose(1, 2))
    return product if b is None else product.add_(b)


def outputs(layers: list[Layer], theta: Tensor, x: Tensor) -> Tensor:
    """Return the network's outputs (chains, rows, outputs) for weights (chains, dim) and inputs (rows, inputs)."""
    a = x
    for layer in layers:
        z = _affine(a, *_weights(layer, theta))
        a = _tanh(z) if layer.activation == "tanh" else _activate(layer.activation, z)[0]
    return a


class Pass(NamedTuple):
    """A forward pass: the input of each layer, and slope and second derivative of each activation."""

    inputs: list[Tensor]
    slopes: list[Tensor]
    bends: list[Tensor | None]
    outputs: Tensor


def forward(layers: list[Layer], theta: Tensor, x: Tensor) -> Pass:
    """Run the network for all chains and keep what the derivatives need."""
    inputs, slopes, bends = [], [], []
    a = x
    for layer in layers:
        inputs.append(a)
        z = _affine(a, *_weights(layer, theta))
        if layer.activation == "identity":
            a, slope, bend = z, None, None
        else:
            a, slope, bend = _activate(layer.activation, z)
        slopes.append(slope)
        bends.append(bend)
    return Pass(inputs, slopes, bends, a)


def backward(layers: list[Layer], theta: Tensor, run: Pass, residual: Tensor) -> Tensor:
    """Return the gradient (chains, dim) of a loss whose derivative by the outputs is ``residual``."""
    gradient = torch.empty_like(theta)
    delta = residual
    for i in range(len(layers) - 1, -1, -1):
        layer = layers[i]
        if run.slopes[i] is not None:
            delta = delta * run.slopes[i]
        size = layer.inputs * layer.outputs
        product = torch.matmul(delta.transpose(1, 2), run.inputs[i])
        gradient[:, layer.weight : layer.weight + size] = product.reshape(theta.shape[0], size)
        if layer.bias is not None:
            gradient[:, layer.bias : layer.bias + layer.outputs] = delta.sum(1)
        if i:
            delta = torch.matmul(delta, _weights(layer, theta)[0])
    return gradient


def directional(layers: list[Layer], theta: Tensor, v: Tensor, run: Pass) -> tuple[Tensor, Tensor]:
    """Return first and second derivative of the outputs (chains, rows, outputs) along theta + s v at s = 0."""
    first = second = None
    for i, layer in enumerate(layers):
        w, _ = _weights(layer, theta)
        vw, vb = _weights(layer, v)
        z1 = _affine(run.inputs[i], vw, vb)
        z2 = None
        if first is not None:
            z2 = torch.matmul(first, vw.transpose(1, 2)).mul_(2)
            z1 = z1.add_(torch.matmul(first, w.transpose(1, 2)))
            if second is not None:
                z2 = z2.add_(torch.matmul(second, w.transpose(1, 2)))
        first, second = _chain_rule(run.slopes[i], run.bends[i], z1, z2)
    return first, torch.zeros_like(first) if second is None else second


def _chain_rule(
    slope: Tensor | None, bend: Tensor | None, z1: Tensor, z2: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    if slope is None:
        return z1, z2
    second = None if z2 is None else slope * z2
    if bend is not None:
        curved = bend * z1 * z1
        second = curved if second is None else second.add_(curved)
    return slope * z1, second

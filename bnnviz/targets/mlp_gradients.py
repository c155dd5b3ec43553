r"""Differentiate many copies of a multilayer perceptron at once: value, gradient and directional curvature.

With :math:`a_0 = x`, :math:`z_l = W_l a_{l-1} + b_l` and :math:`a_l = \phi_l(z_l)`, the gradient goes backwards by

.. math::
    \delta_l = \phi_l'(z_l) \odot W_{l+1}^\top \delta_{l+1}, \qquad
    \frac{\partial \ell}{\partial W_l} = \delta_l a_{l-1}^\top,

and derivatives along :math:`\theta + s v`, written with dots, go forwards by

.. math::
    \dot z_l = W_l \dot a_{l-1} + V_l a_{l-1} + v_{b, l}, \qquad
    \ddot z_l = W_l \ddot a_{l-1} + 2 V_l \dot a_{l-1}, \qquad
    \ddot a_l = \phi_l'' \odot \dot z_l^2 + \phi_l' \odot \ddot z_l

(Pearlmutter 1994, https://doi.org/10.1162/neco.1994.6.1.147).

One batched matrix product per layer serves all chains. Nothing is recorded for automatic differentiation, which for
small networks costs more than the arithmetic. Internally, units precede rows, (chains, units, rows), which makes
batched products of small matrices several times faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bnnviz.models.perceptron import WithLinearPath

_LEAST = 1e-20  # minimum variance, so that the slope of its root is finite


class LinearLayer(NamedTuple):
    """Slices of a layer's weights, and of a linear path from the inputs, in the flat vector, and its activation."""

    inputs: int
    outputs: int
    weight: int
    bias: int | None
    activation: str
    path: int | None = None


def _tanh(z: Tensor) -> Tensor:
    # torch.tanh takes five times as long as sigmoid on a CPU.
    if z.requires_grad:
        return 2 * torch.sigmoid(2 * z) - 1
    return z.mul_(2).sigmoid_().mul_(2).sub_(1)


class _Activated(NamedTuple):
    """An activation: its value, its slope, and the input of its second derivative."""

    value: Tensor
    slope: Tensor
    inner: Tensor | None = None


def _activate(name: str, z: Tensor) -> _Activated:
    """Return an activation of z, which may be overwritten."""
    if name == "tanh":
        a = _tanh(z)
        return _Activated(a, torch.addcmul(torch.ones_like(a[:1, :1, :1]), a, a, value=-1))
    if name == "relu":
        return _Activated(z.clamp_min(0), (z > 0).to(z.dtype))
    if name == "sigmoid":
        a = torch.sigmoid(z)
        return _Activated(a, a * (1 - a))
    if name == "silu":
        s = torch.sigmoid(z)
        return _Activated(z * s, s * (1 + z * (1 - s)), s * (1 - s) * (2 + z * (1 - 2 * s)))
    return _Activated(z, torch.ones_like(z))


def _bend(name: str, activated: _Activated) -> Tensor | None:
    """Return the second derivative of an activation; None if zero."""
    if name == "tanh":
        return -2 * activated.value * activated.slope
    if name == "sigmoid":
        return activated.slope * (1 - 2 * activated.value)
    return activated.inner


_NAMES = {nn.Tanh: "tanh", nn.ReLU: "relu", nn.Sigmoid: "sigmoid", nn.SiLU: "silu"}


# Including those that act elementwise.
_ALL_NAMES = _NAMES | {nn.Softplus: "softplus", nn.ELU: "elu", nn.GELU: "gelu", nn.LeakyReLU: "leaky_relu"}


def hidden_layers(module: nn.Module) -> list[LinearLayer]:
    """Return the linear layers of a multilayer perceptron with permutable hidden units; [] for other modules."""
    layers = read_layers(module, _ALL_NAMES) or []
    return layers if len(layers) > 1 and layers[-1].activation == "identity" else []


def read_layers(module: nn.Module, names: dict[type[nn.Module], str] = _NAMES) -> list[LinearLayer] | None:
    """Read a ``Sequential`` of linear layers and the given activations; None for anything else."""
    if type(module) is WithLinearPath:
        return _read_with_path(module, names)
    if type(module) is not nn.Sequential or not all(map(_is_plain, module.modules())):
        return None
    layers: list[LinearLayer] = []
    offset = 0
    for child in module:
        if type(child) is nn.Linear:
            places = {}
            # In order of registration: removing weight_norm or pruning moves weights to the end.
            for name, parameter in child.named_parameters():
                places[name], offset = offset, offset + parameter.numel()
            outputs, inputs = child.weight.shape
            layers.append(LinearLayer(inputs, outputs, places["weight"], places.get("bias"), "identity"))
        elif type(child) in names and layers and layers[-1].activation == "identity":
            layers[-1] = layers[-1]._replace(activation=names[type(child)])
        else:
            return None
    shared = len({id(p) for p in module.parameters()}) != sum(len(list(c.parameters())) for c in module)
    return layers if layers and not shared else None


def input_weights(module: nn.Module) -> list[str]:
    """Return the names of a multilayer perceptron's matrices that read its inputs."""
    names = [name for name, _ in module.named_parameters() if name.endswith("weight")]
    return names[: 2 if type(module) is WithLinearPath else 1]


def output_weights(module: nn.Module) -> list[str]:
    """Return the names of a multilayer perceptron's parameters that are summed in its outputs."""
    names = [name for name, _ in module.named_parameters()]
    last = names[-1].rpartition(".")[0]
    path = input_weights(module)[:1] if type(module) is WithLinearPath else []
    return [*path, *(name for name in names if name.rpartition(".")[0] == last)]


def _read_with_path(module: WithLinearPath, names: dict[type[nn.Module], str]) -> list[LinearLayer] | None:
    """Read a perceptron with a linear path, whose weights come first."""
    layers = read_layers(module.body, names)
    if not layers or layers[-1].activation != "identity" or not all(map(_is_plain, (module, module.linear))):
        return None
    start = module.linear.weight.numel()
    moved = [
        layer._replace(weight=layer.weight + start, bias=None if layer.bias is None else layer.bias + start)
        for layer in layers
    ]
    return [*moved[:-1], moved[-1]._replace(path=0)]


def _is_plain(module: nn.Module) -> bool:
    """Return whether a module computes as its class defines, with no extras such as hooks."""
    if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
        return False
    if type(module) is nn.Linear:  # with a matrix and at most one bias per row
        if module._parameters.keys() != {"weight", "bias"} or module.weight is None or module.weight.dim() != 2:
            return False
        if module.bias is not None and module.bias.shape != module.weight.shape[:1]:
            return False
    return all(p.requires_grad for p in module.parameters())


def _weights(layer: LinearLayer, theta: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return weights (chains, outputs, inputs) and biases (chains, outputs, 1)."""
    size = layer.inputs * layer.outputs
    w = theta[:, layer.weight : layer.weight + size].view(-1, layer.outputs, layer.inputs)
    b = None if layer.bias is None else theta[:, layer.bias : layer.bias + layer.outputs].unsqueeze(2)
    return w, b


def _path(layers: list[LinearLayer], theta: Tensor) -> Tensor | None:
    """Return the weights (chains, outputs, inputs) of the linear path, or None."""
    last = layers[-1]
    if last.path is None:
        return None
    size = layers[0].inputs * last.outputs
    return theta[:, last.path : last.path + size].view(-1, last.outputs, layers[0].inputs)


def _times(w: Tensor, a: Tensor) -> Tensor:
    """Return the product of matrices (chains, m, n) and (n, rows) or (chains, n, rows)."""
    return w * a if w.shape[-1] == 1 else torch.matmul(w, a)


def _affine(a: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    product = _times(w, a)
    return product if b is None else product.add_(b)


def outputs(layers: list[LinearLayer], theta: Tensor, x: Tensor, masks: Sequence[Tensor] = ()) -> Tensor:
    """Return the network's outputs (chains, rows, outputs) for weights (chains, dim).

    Inputs are (rows, inputs) for all chains, or (chains, rows, inputs). ``masks`` are factors on the units read by the
    second and later layers, (chains, units, rows) each.
    """
    a = x.mT
    for number, layer in enumerate(layers):
        if number and masks:
            a = a * masks[number - 1]
        a = _activation(layer, _affine(a, *_weights(layer, theta)))
    path = _path(layers, theta)
    a = a if path is None else a + _times(path, x.mT)
    return a.transpose(1, 2)


def _activation(layer: LinearLayer, z: Tensor) -> Tensor:
    return _tanh(z) if layer.activation == "tanh" else _activate(layer.activation, z).value


def noisy_outputs(layers: list[LinearLayer], mean: Tensor, sd: Tensor, x: Tensor, noise: Sequence[Tensor]) -> Tensor:
    """Return outputs (chains, rows, outputs) for independent normal weights, mean and sd (chains, dim), for each row.

    Pre-activations are drawn instead of weights (the local reparameterisation of Kingma, Salimans and Welling 2015,
    https://doi.org/10.48550/arXiv.1506.02557).
    """
    a, variance = x.mT, sd.square()
    for layer, z in zip(layers, noise, strict=True):
        centre, spread = _affine(a, *_weights(layer, mean)), _affine(a.square(), *_weights(layer, variance))
        if layer.path is not None:
            centre = centre + _times(_path(layers, mean), x.mT)
            spread = spread + _times(_path(layers, variance), x.mT.square())
        a = _activation(layer, centre + spread.clamp_min(_LEAST).sqrt() * z)
    return a.transpose(1, 2)


class Pass(NamedTuple):
    """A forward pass: the input of each layer, each activation except identities, and the outputs.

    Inputs are (inputs, rows) for the first layer, unless each chain has separate ones, and (chains, inputs, rows) for
    the others; outputs are (chains, rows, outputs).
    """

    inputs: list[Tensor]
    activated: list[_Activated | None]
    outputs: Tensor


def forward(layers: list[LinearLayer], theta: Tensor, x: Tensor) -> Pass:
    """Run the network for all chains and store the inputs of the derivatives."""
    inputs, activated = [], []
    a = x.mT
    for layer in layers:
        inputs.append(a)
        z = _affine(a, *_weights(layer, theta))
        activated.append(None if layer.activation == "identity" else _activate(layer.activation, z))
        a = z if activated[-1] is None else activated[-1].value
    path = _path(layers, theta)
    a = a if path is None else a.add_(_times(path, x.mT))
    return Pass(inputs, activated, a.transpose(1, 2))


def backward(layers: list[LinearLayer], theta: Tensor, run: Pass, residual: Tensor) -> Tensor:
    """Return the gradient (chains, dim) of a loss whose derivative by the outputs is ``residual``."""
    gradient = torch.empty_like(theta)
    delta = residual.transpose(1, 2)
    if layers[-1].path is not None:
        product = torch.matmul(delta, run.inputs[0].transpose(-1, -2)).flatten(1)
        gradient[:, layers[-1].path : layers[-1].path + product.shape[1]] = product
    for i in range(len(layers) - 1, -1, -1):
        layer = layers[i]
        if run.activated[i] is not None:
            delta = delta * run.activated[i].slope
        size = layer.inputs * layer.outputs
        product = torch.matmul(delta, run.inputs[i].transpose(-1, -2))
        gradient[:, layer.weight : layer.weight + size] = product.reshape(theta.shape[0], size)
        if layer.bias is not None:
            gradient[:, layer.bias : layer.bias + layer.outputs] = delta.sum(2)
        if i:
            delta = _times(_weights(layer, theta)[0].transpose(1, 2), delta)
    return gradient


def directional(layers: list[LinearLayer], theta: Tensor, v: Tensor, run: Pass) -> tuple[Tensor, Tensor]:
    """Return first and second derivative of the outputs (chains, rows, outputs) along theta + s v at s = 0."""
    first = second = None
    for i, layer in enumerate(layers):
        w, _ = _weights(layer, theta)
        vw, vb = _weights(layer, v)
        z1 = _affine(run.inputs[i], vw, vb)
        if layer.path is not None:
            z1 = z1.add_(_times(_path(layers, v), run.inputs[0]))
        z2 = None
        if first is not None:
            z2 = _times(vw, first).mul_(2)
            z1 = z1.add_(_times(w, first))
            if second is not None:
                z2 = z2.add_(_times(w, second))
        first, second = _chain_rule(layer.activation, run.activated[i], z1, z2)
    first = first.transpose(1, 2)
    return first, torch.zeros_like(first) if second is None else second.transpose(1, 2)


def _chain_rule(name: str, activated: _Activated | None, z1: Tensor, z2: Tensor | None) -> tuple[Tensor, Tensor | None]:
    if activated is None:
        return z1, z2
    second = None if z2 is None else z2.mul_(activated.slope)
    bend = _bend(name, activated)
    if bend is not None:
        curved = bend.mul(z1).mul_(z1)
        second = curved if second is None else second.add_(curved)
    return z1 * activated.slope, second

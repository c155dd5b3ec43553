"""Build fully connected networks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from bnnviz.errors import BnnvizError
from bnnviz.models.layers import ACTIVATIONS

_MODULES = {"tanh": nn.Tanh, "relu": nn.ReLU, "softplus": nn.Softplus, "silu": nn.SiLU}


class WithLinearPath(nn.Module):
    """A multilayer perceptron plus a linear map of its inputs without a bias, which is part of the body."""

    def __init__(self, body: nn.Sequential, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of body and linear map."""
        return self.linear(x) + self.body(x)


def mlp(
    inputs: int, hidden: Sequence[int], outputs: int, activation: str = "tanh", linear_path: bool = False
) -> nn.Module:
    """Create a fully connected network (multilayer perceptron).

    Parameters
    ----------
    inputs : int
        Number of features of one row of data.
    hidden : sequence of int
        Widths of the hidden layers. An empty sequence gives a linear model.
    outputs : int
        Number of outputs: 1 for regression or a binary logit, one logit per class otherwise.
    activation : {"tanh", "relu", "softplus", "silu"}, default "tanh"
        Applied after every hidden layer, but not to the output.
    linear_path : bool, default False
        Whether a linear map of the inputs is added to the outputs. Without hidden layers the network is already linear.

    Returns
    -------
    torch.nn.Sequential or WithLinearPath
        Alternating ``nn.Linear`` and activation modules with the default initial weights of torch, drawn from its
        global generator.

    Raises
    ------
    BnnvizError
        If a width is not a positive integer or the activation is unknown.

    Notes
    -----
    A layer from m to n units has n (m + 1) parameters, so the network 1-25-10-1 has
    25 * 2 + 10 * 26 + 11 = 321.

    Examples
    --------
    >>> from bnnviz import models
    >>> sum(p.numel() for p in models.mlp(1, (25, 10), 1).parameters())
    321
    """
    if activation not in _MODULES:
        raise BnnvizError(
            f"There is no activation {activation!r}: choose one of {', '.join(ACTIVATIONS)}.",
            field="activation",
        )
    widths = [
        _width(inputs, "inputs"),
        *(_width(width, "hidden") for width in hidden),
        _width(outputs, "outputs"),
    ]
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        layers += [nn.Linear(fan_in, fan_out), _MODULES[activation]()]
    body = nn.Sequential(*layers[:-1])
    return WithLinearPath(body, widths[0], widths[-1]) if linear_path and len(widths) > 2 else body


def _width(width: int, field: str) -> int:
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise BnnvizError(f"The width {width!r} in {field} cannot be used: give an integer of at least 1.", field=field)
    return width

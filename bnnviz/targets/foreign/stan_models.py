"""Define a target by a model of Stan, through BridgeStan.

BridgeStan provides a compiled model's log density, including the Jacobians of its transforms, and its gradient in
unconstrained coordinates (Roualdes, Ward, Carpenter, Seyboldt and Axen 2023, https://doi.org/10.21105/joss.05236).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bnnviz import optional
from bnnviz.errors import BnnvizError
from bnnviz.targets.base import Target

_INDEX = re.compile(r"^(.*?)((?:\.\d+)*)$")


class _LogDensity(torch.autograd.Function):
    """U of states, with the gradient from Stan."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, target: StanDensity) -> Tensor:
        value, gradient = target._computed(x)
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return slope[:, None] * gradient, None


class StanDensity(Target):
    """The posterior of a Stan model, compiled by BridgeStan.

    Parameters
    ----------
    model : bridgestan.StanModel, str or Path
        The model with its data, or the path of a ``.stan`` file or of a compiled model.
    data : str, optional
        JSON or the path of a file, if ``model`` is a path.

    Raises
    ------
    BnnvizError
        If BridgeStan is missing, or the model has no parameters.

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.StanDensity.title
    'Stan model'
    """

    title = "Stan model"
    located = False
    compiles = False
    not_compiled = "Stan computes its density"

    def __init__(self, model: Any, data: str | None = None) -> None:
        super().__init__()
        if isinstance(model, str) or hasattr(model, "__fspath__"):
            model = optional.require("bridgestan", "A Stan model needs").StanModel(str(model), data)
        elif data is not None:
            raise BnnvizError("The model already contains its data; use data= only with a path.", "data")
        self._model, self.dim = model, int(model.param_unc_num())
        if not self.dim:
            raise BnnvizError("The Stan model has no parameters to sample.", "target")
        self._free_names = [str(name) for name in model.param_unc_names()]
        self._places = _places([str(name) for name in model.param_names()])

    def _computed(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U (chains,) and its gradient (chains, dim); infinite and nan if Stan rejects a point."""
        points = x.detach().double().cpu().numpy()
        values, gradients = np.empty(len(points)), np.empty_like(points)
        for k, point in enumerate(points):
            try:
                value, gradient = self._model.log_density_gradient(np.ascontiguousarray(point))
                values[k], gradients[k] = -value, -np.asarray(gradient)
            except RuntimeError as error:  # from BridgeStan, where the model is undefined
                self.rejected.add(error)
                values[k], gradients[k] = np.inf, np.nan
        return torch.as_tensor(values).to(x), torch.as_tensor(gradients).to(x)

    def potential(self, x: Tensor) -> Tensor:
        """Return minus the log density (chains,), including Jacobians."""
        return _LogDensity.apply(x, self)

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U (chains,) and its gradient (chains, dim) from Stan."""
        return self._computed(x)

    def gradient_and_product(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and H v, the last as a central difference of gradients."""
        reach = torch.finfo(x.dtype).eps ** (1 / 3) * x.abs().amax(-1, keepdim=True).clamp_min(1)
        h = reach / v.abs().amax(-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
        product = (self._computed(x + h * v)[1] - self._computed(x - h * v)[1]) / (2 * h)
        return *self._computed(x), product

    def named_values(self, x: Tensor) -> dict[str, Tensor]:
        """Return the model's parameters ``(n, *shape)`` by name at x (n, dim)."""
        points = x.detach().double().cpu().numpy()
        flat = np.array([self._model.param_constrain(np.ascontiguousarray(point)) for point in points])
        found = {}
        for name, (shape, columns, indices) in self._places.items():
            made = np.empty((len(points), *shape))
            for column, index in zip(columns, indices, strict=True):
                made[(slice(None), *index)] = flat[:, column]
            found[name] = torch.as_tensor(made).to(x)
        return found

    def names(self) -> list[str]:
        """Return the names of the unconstrained coordinates."""
        return list(self._free_names)

    def describe_value(self) -> str:
        """Return the model's name."""
        named = getattr(self._model, "name", None)
        return str(named()) if callable(named) else self.title


def _places(names: list[str]) -> dict[str, tuple[tuple[int, ...], list[int], list[tuple[int, ...]]]]:
    """Return shape, columns and indices of each parameter, whose elements are named ``theta.1.2``, from 1 on."""
    found: dict[str, tuple[list[int], list[tuple[int, ...]]]] = {}
    for column, label in enumerate(names):
        name, index = _INDEX.match(label).groups()
        columns, indices = found.setdefault(name, ([], []))
        columns.append(column)
        indices.append(tuple(int(part) - 1 for part in index.split(".")[1:]))
    return {
        name: (tuple(max(side) + 1 for side in zip(*indices, strict=True)), columns, indices)
        for name, (columns, indices) in found.items()
    }

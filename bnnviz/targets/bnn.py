"""The posterior of any network on data."""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bnnviz import data as datasets
from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.models import ACTIVATIONS, mlp, parse_hidden
from bnnviz.targets import likelihoods, mlp_kernel
from bnnviz.targets.base import REGISTRY, Target

_JACOBIAN_ROWS = 256
# The toys' own noise (sd 0.015 on the input and the target) makes a posterior too narrow to see.
_TOY_NOISE_SD = 0.05


class BNN(Target):
    """Posterior of the weights of a network given data.

    Parameters
    ----------
    module : torch.nn.Module
        Any module that maps inputs (rows, inputs) to outputs (rows, outputs). It is copied and put
        in evaluation mode; its parameters become views of one flat vector.
    data : tuple of arrays, str, or bnnviz.data.DataSet
        Inputs (rows, ...) and observations (rows,): real numbers for ``gaussian``, 0 or 1 for
        ``bernoulli``, class numbers for ``categorical``. Or a data set of `bnnviz.data`, or its name.
    likelihood : {"gaussian", "bernoulli", "categorical"}
        With ``bernoulli`` the one output is a logit, with ``categorical`` the outputs are.
    prior_sd : float
        Standard deviation of the normal prior of every weight.
    noise_sd : float
        Standard deviation of the observation noise (``gaussian`` only).

    Raises
    ------
    BnnvizError
        If the data do not fit the module or the likelihood, or the module has batch normalisation.
    """

    registered = ""
    title = "Your network"
    emits = frozenset({"prediction"})
    start_at_mode = True

    def __init__(
        self,
        module: nn.Module,
        data: Any,
        likelihood: str = "gaussian",
        prior_sd: float = 1.0,
        noise_sd: float = 1.0,
    ) -> None:
        super().__init__()
        self.module = copy.deepcopy(module).eval()
        self._refuse_batch_norm()
        self.layers = mlp_kernel.read_layers(self.module)
        self.shapes = {name: p.shape for name, p in self.module.named_parameters()}
        self.dim = sum(shape.numel() for shape in self.shapes.values())
        if not prior_sd > 0:
            raise BnnvizError(f"prior_sd = {prior_sd:g} must be above 0.", "prior_sd")
        self.prior_precision = prior_sd**-2
        self.likelihood = likelihoods.make(likelihood, noise_sd)
        data = datasets.load(data) if isinstance(data, str) else data
        self.data_set = data if isinstance(data, datasets.DataSet) else None
        x, y = self._read(data)
        self.x, self.y = self._check_data(x, y)
        self.examples = len(self.x)

    def _refuse_batch_norm(self) -> None:
        for child in self.module.modules():
            if isinstance(child, nn.modules.batchnorm._BatchNorm):
                raise BnnvizError(
                    "The module has batch normalisation, which makes one row's output depend on the others, so there"
                    " is no likelihood of a row; use layer or group normalisation.",
                    "module",
                )

    def _read(self, data: Any) -> tuple[Any, Any]:
        if self.data_set is None:
            if not isinstance(data, tuple | list) or len(data) != 2:
                raise BnnvizError("data is a pair (inputs, observations) or a data set of bnnviz.data.", "data")
            return data[0], data[1]
        scale = self.data_set.standardiser
        return scale.x(self.data_set.x_train), scale.y(self.data_set.y_train)

    def _check_data(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        x, y = torch.as_tensor(np.asarray(x)), torch.as_tensor(np.asarray(y))
        x = (x if x.ndim > 1 else x[:, None]).to(torch.float64)
        y = y.reshape(len(y), -1)
        if len(x) != len(y) or len(x) == 0 or y.shape[1] != 1:
            raise BnnvizError(
                f"data holds {len(x)} inputs and observations of shape {tuple(y.shape)}; give one number a row.",
                "data",
            )
        if not torch.isfinite(x).all() or not torch.isfinite(y.double()).all():
            raise BnnvizError("data holds missing or infinite values; drop or fill those rows.", "data")
        y = y[:, 0].long() if self.likelihood.name == "categorical" else y[:, 0].double()
        self._check_outputs(x, y)
        return x, y

    def _check_outputs(self, x: Tensor, y: Tensor) -> None:
        try:
            with torch.no_grad():
                out = self.module.to(torch.float64)(x[:2])
        except RuntimeError as error:
            raise BnnvizError(f"The module cannot read inputs of shape {tuple(x.shape)}: {error}.", "module") from error
        rows, name = min(2, len(x)), self.likelihood.name
        if out.ndim != 2 or out.shape[0] != rows or (name != "categorical" and out.shape[1] != 1):
            width = "one output" if name != "categorical" else "one output for each class"
            raise BnnvizError(
                f"The module returns shape {tuple(out.shape)} for {rows} rows; a {name} likelihood needs {width}.",
                "module",
            )
        if name == "categorical" and (y.min() < 0 or y.max() >= out.shape[1]):
            raise BnnvizError(
                f"The classes run from {int(y.min())} to {int(y.max())}; with {out.shape[1]} outputs"
                f" they must run from 0 to {out.shape[1] - 1}.",
                "data",
            )
        if name == "bernoulli" and not ((y == 0) | (y == 1)).all():
            raise BnnvizError("A bernoulli likelihood needs observations that are 0 or 1.", "data")

    def to(self, device: torch.device | str, dtype: torch.dtype) -> BNN:
        """Move data and module to a device and precision; return the target."""
        super().to(device, dtype)
        self.module.to(device=self.device, dtype=dtype)
        return self

    def unflatten(self, theta: Tensor) -> dict[str, Tensor]:
        """Return the parameters by name as views of a flat vector (..., dim)."""
        parts = torch.split(theta, [shape.numel() for shape in self.shapes.values()], dim=-1)
        return {
            name: part.view(*theta.shape[:-1], *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor:
        """Return the outputs (chains, rows, outputs) of weights (chains, dim) on inputs (rows, inputs)."""
        if self.layers is not None:
            return mlp_kernel.outputs(self.layers, theta, x)

        def one(flat: Tensor) -> Tensor:
            return torch.func.functional_call(self.module, self.unflatten(flat), (x,))

        return torch.func.vmap(one)(theta)

    def potential(self, x: Tensor) -> Tensor:
        """Return negative log likelihood plus |theta|^2 / (2 prior_sd^2), up to a constant."""
        return self.likelihood.loss(self.outputs(x, self.x), self.y) + self._penalty(x)

    def _penalty(self, theta: Tensor) -> Tensor:
        return 0.5 * self.prior_precision * theta.square().sum(-1)

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and its gradient; by hand for multilayer perceptrons, by autograd for other modules."""
        if self.layers is None:
            return super().gradient(x)
        run = mlp_kernel.forward(self.layers, x, self.x)
        return self._value_and_gradient(x, run)

    def _value_and_gradient(self, theta: Tensor, run: mlp_kernel.Pass) -> tuple[Tensor, Tensor]:
        residual = self.likelihood.residual(run.outputs, self.y)
        gradient = mlp_kernel.backward(self.layers, theta, run, residual)
        gradient.add_(theta, alpha=self.prior_precision)
        return self.likelihood.loss(run.outputs, self.y) + self._penalty(theta), gradient

    def gradient_and_curvature(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and v' H v; by hand for multilayer perceptrons."""
        if self.layers is None:
            return super().gradient_and_curvature(x, v)
        run = mlp_kernel.forward(self.layers, x, self.x)
        first, second = mlp_kernel.directional(self.layers, x, v, run)
        residual = self.likelihood.residual(run.outputs, self.y)
        fit = (residual * second).sum((1, 2)) + self.likelihood.curvature(run.outputs, first)
        return *self._value_and_gradient(x, run), fit + self.prior_precision * v.square().sum(-1)

    def curvature_diagonal(self, x: Tensor) -> Tensor:
        """Return the Gauss-Newton diagonal (dim,) of the negative log likelihood at one point (dim,)."""
        total = torch.zeros_like(x)
        for rows in torch.split(self.x, _JACOBIAN_ROWS):
            jacobian = self._jacobian(x, rows)
            f = self.outputs(x[None], rows)[0]
            total += self._gauss_newton(f, jacobian)
        return total

    def _jacobian(self, theta: Tensor, rows: Tensor) -> Tensor:
        """Return the outputs' derivatives by the weights, (rows, outputs, dim)."""

        def one(flat: Tensor, row: Tensor) -> Tensor:
            return torch.func.functional_call(self.module, self.unflatten(flat), (row[None],))[0]

        return torch.func.vmap(torch.func.jacrev(one), in_dims=(None, 0))(theta, rows)

    def _gauss_newton(self, f: Tensor, jacobian: Tensor) -> Tensor:
        # curvature() of a direction, with one direction for each weight: (dim, rows, outputs).
        directions = jacobian.permute(2, 0, 1)
        return self.likelihood.curvature(f[None], directions)

    def initial(self, chains: int, rng: torch.Generator) -> Tensor:
        """Return starts (chains, dim): normal, scaled by each layer's fan-in so that no unit saturates."""
        parts = []
        for shape in self.shapes.values():
            fan = shape[1:].numel() if len(shape) > 1 else 1
            sd = min(self.prior_precision**-0.5, fan**-0.5)
            noise = torch.randn(chains, shape.numel(), generator=rng, device=rng.device, dtype=self.dtype)
            parts.append(sd * noise)
        return torch.cat(parts, dim=1)

    def names(self) -> list[str]:
        """Return a label for each weight: the parameter's name and its index."""
        return self._names

    @functools.cached_property
    def _names(self) -> list[str]:
        labels = []
        for name, shape in self.shapes.items():
            labels += [f"{name}{list(index)}" for index in np.ndindex(*shape)]
        return labels


@REGISTRY.add
class Network(BNN):
    """Posterior of a multilayer perceptron on a named data set."""

    registered = "network"
    title = "Network on data"
    fixed_dim = None

    data = settings.Choice("toy_c", objects=datasets.names(), doc="The data set.")
    split = settings.Integer(0, bounds=(0, 19), doc="Which of Gal's splits into training and test rows (UCI sets).")
    hidden = settings.Text("50", label="Hidden layers", doc="Units of each hidden layer, such as 50 or 25-10.")
    activation = settings.Choice("tanh", objects=list(ACTIVATIONS), doc="Activation of the hidden layers.")
    prior_sd = settings.Number(
        1.0, bounds=(0.01, 100.0), scale="log", doc="Standard deviation of the normal prior of every weight."
    )
    noise_sd = settings.Number(
        None,
        bounds=(0.001, 10.0),
        scale="log",
        allow_None=True,
        doc="Standard deviation of the observation noise, in standardised units for the UCI sets;"
        " empty: the data set's own (1 on the UCI sets, as in the papers; 0.05 on the toys, ours).",
    )

    def __init__(self, **values: Any) -> None:
        chosen = settings.fill(settings.describe(type(self)), values, self.title)
        data_set = datasets.load(chosen["data"], split=chosen["split"])
        module = mlp(data_set.x_train.shape[1], parse_hidden(chosen["hidden"]), 1, chosen["activation"])
        noise = (1.0 if data_set.standardise else _TOY_NOISE_SD) if chosen["noise_sd"] is None else chosen["noise_sd"]
        super().__init__(module, data_set, "gaussian", chosen["prior_sd"], noise)
        self.param.update(**chosen)

    def describe_value(self) -> str:
        """Return the data and the network in one line."""
        return f"{self.data}, {self.x.shape[1]}-{self.hidden}-1 {self.activation}, {self.dim} weights"

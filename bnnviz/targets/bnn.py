"""The posterior of any network on data."""

from __future__ import annotations

import bisect
import copy
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor, nn

from bnnviz import data as datasets
from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.models import ACTIVATIONS, mlp, parse_hidden
from bnnviz.targets import likelihoods, mlp_gradients, validation
from bnnviz.targets.base import REGISTRY, differentiate, differentiate_twice
from bnnviz.targets.minibatch import Rows, RowTarget

_JACOBIAN_NUMBERS = 10_000_000  # of outputs' derivatives by weights, that are held at once
# Of all rows' derivatives: beyond, the Gauss-Newton diagonal is estimated.
_MOST_JACOBIAN = 400_000_000
# An estimate is the sum over parts of so many rows at most, seen so often that there are 200 terms: its relative
# standard error is a tenth where rows are alike.
_SIGNED_ROWS, _SIGNED_TERMS = 50, 200
# Numbers that a network computes of all rows and chains at once, of which a gradient keeps a few times as many.
_UNIT_NUMBERS = {"cpu": 32_000_000, "cuda": 400_000_000}
# Of convolutions on a CPU, where more leave the cache, and the fewest rows that fill it.
_CONVOLVED_NUMBERS, _CONVOLVED_ROWS = 6_000_000, 40
_FEWEST_ROWS, _MANY = 256, 4  # rows at a time, and how many times as many there have to be for that
_CACHE_BYTES = 500_000  # of one layer's activations, for the chains that are computed at once
NOISES = ("fixed", "learnt")
# The toys' own noise (sd 0.015 on the input and the target) makes a posterior too narrow to see.
_TOY_NOISE_SD = 0.05
DataSets = datasets.DataSet | datasets.ImageSet


class WeightNames(Sequence[str]):
    """Labels of the coordinates of a network, each made when it is asked for: large networks have half a million.

    Parameters
    ----------
    shapes : dict
        The parameters' shapes by name, in their order.
    last : list of str
        Labels of what comes after the parameters.
    """

    def __init__(self, shapes: dict[str, torch.Size], last: Sequence[str] = ()) -> None:
        self._shapes, self._last = list(shapes.items()), list(last)
        self._ends = list(itertools.accumulate(shape.numel() for _, shape in self._shapes))

    def __len__(self) -> int:
        return (self._ends[-1] if self._ends else 0) + len(self._last)

    def __iter__(self) -> Iterator[str]:
        for name, shape in self._shapes:
            yield from (f"{name}{list(index)}" for index in np.ndindex(*shape))
        yield from self._last

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        k = range(len(self))[place]
        owner = bisect.bisect_right(self._ends, k)
        if owner == len(self._ends):
            return self._last[k - len(self) + len(self._last)]
        name, shape = self._shapes[owner]
        index = np.unravel_index(k - self._ends[owner] + shape.numel(), shape)
        return f"{name}{[int(i) for i in index]}"


class BNN(RowTarget):
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
    noise : {"fixed", "learnt"}
        With ``learnt`` the last coordinate is the noise's: ``log sd = log noise_sd + theta[-1] / prior_sd``,
        with the same normal prior as a weight, so that log sd ~ N(log noise_sd, 1).

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
        noise: str = "fixed",
    ) -> None:
        super().__init__()
        # Rows and module are kept in double precision until `to` is called, and so are states.
        self.dtype = torch.float64
        self.module = validation.module(module)
        self.layers = mlp_gradients.read_layers(self.module)
        self.units = mlp_gradients.hidden_layers(self.module)
        self.widest = max((max(layer.inputs, layer.outputs) for layer in self.layers or []), default=1)
        self.shapes = {name: p.shape for name, p in self.module.named_parameters()}
        self.prior_precision = validation.scale("prior_sd", prior_sd) ** -2
        self.likelihood = likelihoods.make(likelihood, validation.scale("noise_sd", noise_sd))
        self.noise_is_learnt = self._learns_noise(noise)
        self.dim = sum(shape.numel() for shape in self.shapes.values()) + self.noise_is_learnt
        data = datasets.load(data) if isinstance(data, str) else data
        self.data_set = data if isinstance(data, DataSets) else None
        self.x, self.y = self._check_rows(*self._read(data))
        self._outputs = self._check_module()
        self._units, self._multiplied = self._count_units()
        self._convolves = any(isinstance(child, nn.modules.conv._ConvNd) for child in self.module.modules())
        self._check_labels(self.y)
        self.examples = len(self.x)

    def replace_rows(self, x: Any, y: Any) -> None:
        """Put other training rows in the place of the present ones, between two steps of a sampler.

        Prior, likelihood and scale stay what they are, so that the weights keep their meaning and a
        chain can go on from where it is.

        Parameters
        ----------
        x, y : array_like
            Inputs (rows, ...) and observations (rows,), in original units. With a data set of
            `bnnviz.data` there may be no rows: the posterior is the prior then.

        Raises
        ------
        BnnvizError
            If they do not fit the module or the likelihood; the target is as before then.
        """
        data = (x, y) if self.data_set is None else self.data_set.with_training(x, y)
        rows = self._check_rows(*((x, y) if self.data_set is None else self._rows_of(data, "train")))
        if rows[0].shape[1:] != self.x.shape[1:]:
            raise BnnvizError(
                f"The new inputs have the shape {tuple(rows[0].shape)}; a row needs {tuple(self.x.shape[1:])}.", "data"
            )
        self._check_labels(rows[1])
        self.x, self.y = (new.to(old) for new, old in zip(rows, (self.x, self.y), strict=True))
        self.examples = len(self.x)
        if self.data_set is not None:
            self.data_set = data

    def _learns_noise(self, noise: str) -> bool:
        if noise not in NOISES:
            raise BnnvizError(f"noise cannot be {noise!r}; choose one of {', '.join(NOISES)}.", "noise")
        if noise == "learnt" and self.likelihood.name != "gaussian":
            raise BnnvizError(
                f"A {self.likelihood.name} likelihood has no noise to learn; leave out noise='learnt'.", "noise"
            )
        return noise == "learnt"

    def _log_noise(self, theta: Tensor) -> Tensor:
        return math.log(self.likelihood.sd) + self.prior_precision**0.5 * theta[:, -1]

    def likelihood_at(self, theta: Tensor) -> likelihoods.Likelihood:
        """Return the likelihood that goes with states (chains, dim): with each one's own noise if that is learnt."""
        return likelihoods.NormalOfEach(self._log_noise(theta)) if self.noise_is_learnt else self.likelihood

    def noise_sd_of(self, theta: Tensor) -> Tensor:
        """Return the sd of the observation noise (draws,) of states (draws, dim), on the scale the network sees.

        Raises
        ------
        BnnvizError
            If the likelihood is not gaussian.
        """
        if self.likelihood.name != "gaussian":
            raise BnnvizError(f"A {self.likelihood.name} likelihood has no observation noise.", "likelihood")
        if self.noise_is_learnt:
            return torch.exp(self._log_noise(theta))
        return torch.full(theta.shape[:1], self.likelihood.sd, dtype=theta.dtype, device=theta.device)

    def _read(self, data: Any) -> tuple[Any, Any]:
        if self.data_set is None:
            if not isinstance(data, tuple | list) or len(data) != 2:
                raise BnnvizError("data is a pair (inputs, observations) or a data set of bnnviz.data.", "data")
            return data[0], data[1]
        return self._rows_of(self.data_set, "train")

    def _rows_of(self, data: DataSets, part: str) -> tuple[Any, Any]:
        """Return inputs and observations of a part of a data set, as the target keeps them."""
        return data.scaled(part)

    def _kept(self, x: Tensor) -> Tensor:
        """Return inputs in the precision that they are kept in until `to` is called."""
        return x.to(torch.float64)

    def seen(self, x: Tensor) -> Tensor:
        """Return inputs (rows, ...) as the network sees them, from what the target keeps; others stay as they are."""
        return x

    def _check_rows(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        x, y = validation.rows("inputs", x), validation.rows("observations", y)
        x = self._kept(x if x.ndim > 1 else x[:, None])
        y = y[:, None] if y.ndim == 1 else y.flatten(1)
        missing = len(x) == 0 and self.data_set is None
        if len(x) != len(y) or missing or y.shape[1] != 1:
            raise BnnvizError(
                f"data holds {len(x)} inputs and observations of shape {tuple(y.shape)}; give one number a row.",
                "data",
            )
        if not torch.isfinite(x).all() or not torch.isfinite(y.double()).all():
            raise BnnvizError("data holds missing or infinite values; drop or fill those rows.", "data")
        if self.likelihood.name != "categorical":
            return x, y[:, 0].double()
        if y.is_floating_point() and (y != y.round()).any():
            raise BnnvizError("A categorical likelihood needs class numbers, which are whole, as observations.", "data")
        return x, y[:, 0].long()

    def _check_module(self) -> int:
        """Return the number of the module's outputs."""
        x = self.x
        try:
            with torch.no_grad():
                out = self.module.to(torch.float64)(self.seen(x[:2]).to(torch.float64))
        except Exception as error:  # whatever the user's own code raises
            raise BnnvizError(f"The module cannot read inputs of shape {tuple(x.shape)}: {error}.", "module") from error
        if not isinstance(out, Tensor):
            raise BnnvizError(
                f"The module returns a {type(out).__name__}; wrap it so that it returns its outputs alone, a tensor"
                " (rows, outputs).",
                "module",
            )
        rows, name = min(2, len(x)), self.likelihood.name
        if out.ndim != 2 or out.shape[0] != rows or (name != "categorical" and out.shape[1] != 1):
            width = "one output" if name != "categorical" else "one output for each class"
            raise BnnvizError(
                f"The module returns shape {tuple(out.shape)} for {rows} rows; a {name} likelihood needs {width}.",
                "module",
            )
        return out.shape[1]

    def _count_units(self) -> tuple[int, int]:
        """Return how many numbers the network computes of one row, which a gradient keeps, and its multiply-adds."""
        counts: list[int] = []
        products: list[int] = []

        def note(child: nn.Module, inputs: Any, output: Any) -> None:
            count = output.numel() if isinstance(output, Tensor) else 0
            counts.append(count)
            if isinstance(child, nn.Linear | nn.modules.conv._ConvNd):
                products.append(count * child.weight[0].numel())

        leaves = [child for child in self.module.modules() if not list(child.children())]
        handles = [leaf.register_forward_hook(note) for leaf in leaves]
        try:
            with torch.no_grad():
                self.module(self.seen(self.x[:1]).to(torch.float64))
        finally:
            for handle in handles:
                handle.remove()
        return max(sum(counts), 1), sum(products)

    @property
    def row_work(self) -> int:
        """Multiply-adds that the network takes of one row, about; a convolution uses a weight many times."""
        return self._multiplied if self._convolves else self.dim

    def _check_labels(self, y: Tensor) -> None:
        name = self.likelihood.name
        if name == "categorical" and len(y) and (y.min() < 0 or y.max() >= self._outputs):
            raise BnnvizError(
                f"The classes run from {int(y.min())} to {int(y.max())}; with {self._outputs} outputs"
                f" they must run from 0 to {self._outputs - 1}.",
                "data",
            )
        if name == "bernoulli" and not ((y == 0) | (y == 1)).all():
            raise BnnvizError("A bernoulli likelihood needs observations that are 0 or 1.", "data")

    def own(self) -> BNN:
        """Return another instance for one run, with a module of its own: a gradient puts weights into it."""
        twin = super().own()
        twin.module = copy.deepcopy(self.module)
        return twin

    def to(self, device: torch.device | str, dtype: torch.dtype) -> BNN:
        """Move data and module to a device and precision; return the target."""
        super().to(device, dtype)
        self.module.to(device=self.device, dtype=dtype)
        return self

    def unflatten(self, theta: Tensor) -> dict[str, Tensor]:
        """Return the module's parameters by name as views of a flat vector (..., dim)."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = torch.split(theta[..., : sum(sizes)], sizes, dim=-1)
        return {
            name: part.view(*theta.shape[:-1], *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor:
        """Return the outputs (draws, rows, outputs) of weights on inputs: predictions of a run's draws at any inputs.

        Parameters
        ----------
        theta : Tensor or array, shape (draws, dim)
            Or (chains, draws, dim), as a run has them, which are put one chain after the other.
        x : Tensor or array, shape (rows, ...)
            As the target was given them; of a data set by name, scaled as `bnnviz.data` scales it.

        Raises
        ------
        BnnvizError
            If there are not ``dim`` weights.
        """
        theta, x = (torch.as_tensor(each, device=self.device) for each in (theta, x))
        if theta.dim() > 2:
            theta = theta.reshape(-1, theta.shape[-1])
        if theta.dim() != 2 or theta.shape[1] != self.dim:
            raise BnnvizError(f"Give weights as (draws, {self.dim}), not of shape {tuple(theta.shape)}.", "theta")
        theta = theta.to(self.dtype)
        pieces = torch.split(x, self._rows_at_once(len(theta)))
        parts = [self._outputs_of(theta, self.seen(part).to(self.dtype)) for part in pieces]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def _outputs_of(self, theta: Tensor, x: Tensor) -> Tensor:
        if self.layers is not None:
            return mlp_gradients.outputs(self.layers, theta, x)
        if self._loops(len(theta)):
            return torch.stack([self._one(flat, x) for flat in theta])
        return torch.func.vmap(self._one, in_dims=(0, None))(theta, x)

    def _rows_at_once(self, chains: int) -> int:
        """Return how many rows are computed at once, so that memory does not grow with the data."""
        if self._convolves and self.device.type == "cpu":
            return max(_CONVOLVED_ROWS, _CONVOLVED_NUMBERS // self._units)
        most = _UNIT_NUMBERS.get(self.device.type, _UNIT_NUMBERS["cpu"])
        return max(1, most // (self._units * max(chains, 1)))

    def _pieces(self, rows: Rows, chains: int) -> Iterator[Rows]:
        """Yield rows as the network sees them, as many as are computed at once; none of them where there are none."""
        own, each = int(rows.y.ndim == 2), self._rows_at_once(chains)
        if rows.y.shape[own] <= each:
            yield rows._replace(x=self.seen(rows.x))
            return
        for x, y in zip(torch.split(rows.x, each, own), torch.split(rows.y, each, own), strict=True):
            yield rows._replace(x=self.seen(x), y=y)

    def _summed(self, compute: Callable[..., tuple[Tensor, ...]], rows: Rows, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the sums over pieces of the rows of what is computed of each."""
        total: tuple[Tensor, ...] = ()
        for piece in self._pieces(rows, len(tensors[0])):
            part = compute(piece, *tensors)
            total = tuple(a.add_(b) for a, b in zip(total, part, strict=True)) if total else part
        return total

    def all_rows(self) -> Rows:
        """Return the training rows."""
        return Rows(self.x, self.y)

    def potential_on(self, theta: Tensor, rows: Rows) -> Tensor:
        """Return weighted negative log likelihood plus |theta|^2 / (2 prior_sd^2), up to a constant."""
        each = 1 if rows.y.ndim == 1 and self._takes_turns(theta) else len(theta)
        loss = sum(self._loss(theta, piece) for piece in self._pieces(rows, each))
        return rows.weight * loss + self._penalty(theta)

    def _loss(self, theta: Tensor, rows: Rows) -> Tensor:
        """Return the negative log likelihood (chains,) of rows as the network sees them, up to a constant."""
        likelihood = self.likelihood_at(theta)
        if rows.y.ndim == 2:
            return likelihood.loss(self._outputs_of_each(theta, rows.x), rows.y)
        each = max(_FEWEST_ROWS, _CACHE_BYTES // (self.widest * self.dtype.itemsize))
        if not self._takes_turns(theta) or len(rows.y) <= _MANY * each:
            return likelihood.loss(self._outputs_of(theta, rows.x), rows.y)
        # What comes between the layers of so many rows would leave the cache for memory and come back.
        parts = list(zip(torch.split(rows.x, each), torch.split(rows.y, each), strict=True))
        return torch.cat(
            [sum(self.likelihood_at(one).loss(self._outputs_of(one, x), y) for x, y in parts) for one in theta.split(1)]
        )

    def _takes_turns(self, theta: Tensor) -> bool:
        """Whether chains may be computed one after another, a few rows at a time."""
        return self.layers is not None and self.device.type == "cpu" and not theta.requires_grad

    def fit_under_masks(self, theta: Tensor, rows: Rows, masks: Sequence[Tensor]) -> Tensor:
        """Return the weighted negative log likelihood (chains,) of a multilayer perceptron whose units are multiplied.

        ``masks`` as in `bnnviz.targets.mlp_gradients.outputs`.
        """
        f = mlp_gradients.outputs(self.layers, theta, self.seen(rows.x), masks)
        return rows.weight * self.likelihood_at(theta).loss(f, rows.y)

    def fit_under_noise(self, mean: Tensor, sd: Tensor, rows: Rows, noise: Sequence[Tensor]) -> Tensor:
        """Return the weighted negative log likelihood (chains,) of a multilayer perceptron with normal weights.

        Each layer's pre-activations are drawn, with ``noise`` as in `bnnviz.targets.mlp_gradients.noisy_outputs`; where
        the observation noise is learnt, it is drawn with the last of them, (chains, 1).
        """
        *layers, last = noise if self.noise_is_learnt else [*noise, noise[-1].new_zeros(len(mean), 1)]
        f = mlp_gradients.noisy_outputs(self.layers, mean, sd, self.seen(rows.x), layers)
        return rows.weight * self.likelihood_at(mean[:, -1:] + sd[:, -1:] * last).loss(f, rows.y)

    def _outputs_of_each(self, theta: Tensor, x: Tensor) -> Tensor:
        """Return the outputs (chains, rows, outputs) where each chain has inputs of its own, (chains, rows, ...)."""
        if self.layers is not None:
            return mlp_gradients.outputs(self.layers, theta, x)
        if self._loops(len(theta)):
            return torch.stack([self._one(flat, own) for flat, own in zip(theta, x, strict=True)])
        return torch.func.vmap(self._one)(theta, x)

    @property
    def compiles(self) -> bool:
        """Whether a step on it is worth compiling: convolutions are the same routines either way."""
        return not self._convolves

    def _loops(self, chains: int) -> bool:
        """Whether so many chains are computed one after another: a CPU convolves faster with one set of weights."""
        return self._convolves and (self.device.type == "cpu" or chains == 1)

    def _one(self, flat: Tensor, x: Tensor) -> Tensor:
        return torch.func.functional_call(self.module, self.unflatten(flat), (x,))

    def _penalty(self, theta: Tensor) -> Tensor:
        return 0.5 * self.prior_precision * theta.square().sum(-1)

    def gradient_on(self, theta: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return U and its gradient; by hand for multilayer perceptrons, by autograd for other modules."""
        if self.layers is None:
            return self._value_and_gradient(rows, theta)
        return self._in_parts(self._value_and_gradient, rows, theta)

    def _in_parts(self, compute: Callable[..., tuple[Tensor, ...]], rows: Rows, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Compute for a few chains at a time, so that on a CPU what comes between stays in its cache."""
        each = self.widest * max(rows.y.shape[-1], 1) * self.dtype.itemsize
        chains = max(1, _CACHE_BYTES // each)
        if tensors[0].device.type != "cpu" or len(tensors[0]) <= chains:
            return compute(rows, *tensors)
        parts = zip(*(torch.split(tensor, chains) for tensor in tensors), strict=True)
        own = rows.y.ndim == 2
        done = [
            compute(rows._replace(x=rows.x[k : k + chains], y=rows.y[k : k + chains]) if own else rows, *part)
            for k, part in zip(range(0, len(tensors[0]), chains), parts, strict=True)
        ]
        return tuple(torch.cat(column) for column in zip(*done, strict=True))

    def _value_and_gradient(self, rows: Rows, theta: Tensor) -> tuple[Tensor, Tensor]:
        loss, gradient = self._summed(self._derived, rows, theta)
        return self._with_prior(theta, rows.weight, loss, gradient)

    def _with_prior(self, theta: Tensor, weight: float, loss: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and its gradient from those of the negative log likelihood, which are overwritten."""
        if weight != 1:
            gradient, loss = gradient.mul_(weight), loss.mul_(weight)
        gradient.add_(theta, alpha=self.prior_precision)
        return loss + self._penalty(theta), gradient

    def _derived(self, rows: Rows, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return the negative log likelihood of rows as the network sees them, and its gradient."""
        if self.layers is not None:
            run = mlp_gradients.forward(self.layers, theta, rows.x)
            return self._derived_by_hand(theta, rows, run, self.likelihood_at(theta).residual(run.outputs, rows.y))
        if not self._loops(len(theta)) or self.noise_is_learnt:
            return differentiate(lambda x: self._loss(x, rows), theta)
        loss, gradient, own = theta.new_empty(len(theta)), torch.empty_like(theta), rows.y.ndim == 2
        for k, flat in enumerate(theta):
            loss[k], parts = self._derived_of_one(flat, *((rows.x[k], rows.y[k]) if own else (rows.x, rows.y)))
            torch.cat([part.flatten() for part in parts], out=gradient[k])
        return loss, gradient

    def _derived_of_one(self, flat: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """Return one chain's negative log likelihood, and its derivatives by each of the module's parameters.

        The parameters themselves are what is differentiated by: through their views of a flat vector each would be
        copied once more, which costs a tenth of a small network's gradient.
        """
        leaves = {name: part.detach().requires_grad_(True) for name, part in self.unflatten(flat).items()}
        with torch.enable_grad():
            f = torch.func.functional_call(self.module, leaves, (x,))
            loss = self.likelihood.loss(f[None], y)[0]
            return loss.detach(), torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)

    def _derived_by_hand(
        self, theta: Tensor, rows: Rows, run: mlp_gradients.Pass, residual: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the negative log likelihood and its gradient from a forward pass and its derivative by the outputs."""
        likelihood = self.likelihood_at(theta)
        gradient = mlp_gradients.backward(self.layers, theta, run, residual)
        if self.noise_is_learnt:
            gradient[:, -1] = self.prior_precision**0.5 * likelihood.slope(run.outputs, rows.y)
        return likelihood.loss(run.outputs, rows.y), gradient

    def curvature_on(self, theta: Tensor, v: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and v' H v; by hand for multilayer perceptrons."""
        if self.layers is None:
            return super().curvature_on(theta, v, rows)
        return self._in_parts(self._all_derivatives, rows, theta, v)

    def _all_derivatives(self, rows: Rows, theta: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        loss, gradient, fit = self._summed(self._derived_twice, rows, theta, v)
        derived = self._with_prior(theta, rows.weight, loss, gradient)
        return *derived, rows.weight * fit + self.prior_precision * v.square().sum(-1)

    def _derived_twice(self, rows: Rows, theta: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return a multilayer perceptron's negative log likelihood, its gradient and its curvature along v."""
        run = mlp_gradients.forward(self.layers, theta, rows.x)
        first, second = mlp_gradients.directional(self.layers, theta, v, run)
        likelihood = self.likelihood_at(theta)
        residual = likelihood.residual(run.outputs, rows.y)
        fit = (residual * second).sum((1, 2)) + likelihood.curvature(run.outputs, first)
        if self.noise_is_learnt:
            fit = fit + likelihood.bend(run.outputs, rows.y, first, self.prior_precision**0.5 * v[:, -1])
        return *self._derived_by_hand(theta, rows, run, residual), fit

    def product_on(self, theta: Tensor, v: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and H v, by automatic differentiation."""
        loss, gradient, product = self._summed(
            lambda piece, x, along: differentiate_twice(lambda at: self._loss(at, piece), x, along), rows, theta, v
        )
        product = product.mul_(rows.weight).add_(v, alpha=self.prior_precision)
        return *self._with_prior(theta, rows.weight, loss, gradient), product

    def curvature_diagonal(self, x: Tensor, part: slice = slice(None)) -> Tensor:
        """Return the Gauss-Newton diagonal of the negative log likelihood at one point (dim,), of a part of it.

        For the noise it is the expected curvature, 2 for each row and unit of log sd. Where the outputs' derivatives
        by all weights would be more than 4e8 numbers over all rows, it is an estimate without bias, made of random
        signs.
        """
        large = len(x[part]) * len(self.x) * self._outputs > _MOST_JACOBIAN
        total = self._signed_diagonal(x)[part] if large else self._exact_diagonal(x, part)
        if self._holds_noise(part):
            total[-1] = 2 * len(self.x) * self.prior_precision
        return total

    def _exact_diagonal(self, x: Tensor, part: slice) -> Tensor:
        total = torch.zeros_like(x[part])
        for jacobian, f in self._jacobians(x, part):
            # curvature() of a direction, with one direction for each weight: (dim, rows, outputs).
            total += self.likelihood_at(x[None]).curvature(f[None], jacobian.permute(2, 0, 1))
        return total

    def _signed_diagonal(self, x: Tensor) -> Tensor:
        """Return an estimate (dim,) of the Gauss-Newton diagonal.

        With H = L L' the Hessian of a row's loss by its outputs, J their derivatives by the weights and z random signs,
        (sum of J' L z over some rows)^2 has the mean sum of diag(J' H J): what two rows have in common cancels.
        """
        rng = torch.Generator(device=x.device).manual_seed(0)
        rows = torch.split(self.x, min(_SIGNED_ROWS, self._rows_at_once(1)))
        times, total = -(-_SIGNED_TERMS // len(rows)), torch.zeros_like(x)
        for part in rows:
            leaves = {name: view.detach().requires_grad_(True) for name, view in self.unflatten(x).items()}
            with torch.enable_grad():
                f = torch.func.functional_call(self.module, leaves, (self.seen(part),))
            root = self.likelihood_at(x[None]).root(f.detach()[None])[0]
            for _ in range(times):
                signs = torch.randint(2, f.shape, generator=rng, device=x.device).to(x.dtype) * 2 - 1
                pull = torch.einsum("rok,rk->ro", root, signs)
                found = torch.autograd.grad(f, list(leaves.values()), pull, retain_graph=True, materialize_grads=True)
                total[: self.dim - self.noise_is_learnt] += torch.cat([one.flatten() for one in found]).square()
        return total / times

    def curvature_matrix(self, x: Tensor, part: slice = slice(None)) -> Tensor:
        """Return the Gauss-Newton matrix of the negative log likelihood at one point (dim,), of a part of it.

        For the noise it is the expected curvature, as in `curvature_diagonal`, which knows of no other weight.
        """
        total = x.new_zeros(len(x[part]), len(x[part]))
        for jacobian, f in self._jacobians(x, part):
            inner = self.likelihood_at(x[None]).hessian(f[None])[0] @ jacobian
            total += torch.einsum("rod,roe->de", jacobian, inner)
        if self._holds_noise(part):
            total[-1, -1] = 2 * len(self.x) * self.prior_precision
        return total

    def _holds_noise(self, part: slice) -> bool:
        return self.noise_is_learnt and part.indices(self.dim)[1] == self.dim

    def last_layer(self) -> slice:
        """Return where the weights of the last layer lie."""
        size = self.groups()[-1 - self.noise_is_learnt][1]
        end = self.dim - self.noise_is_learnt
        return slice(end - size, end)

    def _jacobians(self, theta: Tensor, part: slice) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield for a few rows at a time the outputs' derivatives by a part of the weights, and the outputs.

        They are (rows, outputs, weights) and (rows, outputs).
        """
        first, last, _ = part.indices(self.dim)

        def one(flat: Tensor, row: Tensor) -> Tensor:
            return self._one(torch.cat([theta[:first], flat, theta[last:]]), row[None])[0]

        at_once = max(1, _JACOBIAN_NUMBERS // (max(last - first, self._units) * self._outputs))
        for rows in map(self.seen, torch.split(self.x, at_once) if len(self.x) else ()):
            # Weights of its own for each row, which tell its derivatives apart. Not torch.func.jacrev, which imports
            # torch's compiler: a second and more, for which the first run of a worker would wait.
            with torch.enable_grad():
                own = theta[part].detach().expand(len(rows), -1).clone().requires_grad_(True)
                f = torch.func.vmap(one)(own, rows)
                slopes = [torch.autograd.grad(of_one.sum(), own, retain_graph=True)[0] for of_one in f.unbind(1)]
            yield torch.stack(slopes, 1), f.detach()

    def initial(self, chains: int, rng: torch.Generator) -> Tensor:
        """Return starts (chains, dim): normal, scaled by each layer's fan-in so that no unit saturates."""
        parts = []
        shapes = [*self.shapes.values(), *([torch.Size([1])] if self.noise_is_learnt else [])]
        for shape in shapes:
            fan = shape[1:].numel() if len(shape) > 1 else 1
            sd = min(self.prior_precision**-0.5, fan**-0.5)
            noise = torch.randn(chains, shape.numel(), generator=rng, device=rng.device, dtype=self.dtype)
            parts.append(sd * noise)
        return torch.cat(parts, dim=1)

    def state_dict(self, draw: Tensor) -> dict[str, Tensor]:
        """Return what the module's ``load_state_dict`` takes, with the weights of a draw (dim,)."""
        own = self.module.state_dict()
        weights = {name: part[0].clone() for name, part in self.unflatten(draw[None]).items()}
        return {name: weights.get(name, own[name].clone()) for name in own}

    def remarks(self) -> list[str]:
        """Return a sentence on classes that have no training rows."""
        return [] if self.data_set is None else self.data_set.remarks()

    def held_out(self) -> tuple[Tensor, Tensor]:
        """Return inputs (rows, ...) and observations (rows,) of the test rows, as the target keeps them (see `seen`).

        Without a data set of `bnnviz.data` they are the rows that the network was given.
        """
        if self.data_set is None:
            return self.x, self.y
        kept = zip(self._rows_of(self.data_set, "test"), (self.x, self.y), strict=True)
        x, y = (torch.as_tensor(part, dtype=like.dtype, device=self.device) for part, like in kept)
        return x, y

    @property
    def outputs_per_row(self) -> int:
        """Number of outputs of the module."""
        return self._outputs

    def names(self) -> Sequence[str]:
        """Return a label for each weight, made when it is asked for: the parameter's name and its index."""
        return WeightNames(self.shapes, ["log noise"] if self.noise_is_learnt else [])

    def groups(self) -> list[tuple[str, int]]:
        """Return the parameters' names and number of weights of each layer, and the noise if it is learnt."""
        found = []
        for _, layer in itertools.groupby(self.shapes.items(), lambda item: item[0].rpartition(".")[0] or item[0]):
            names, shapes = zip(*layer, strict=True)
            found.append((", ".join(names), sum(shape.numel() for shape in shapes)))
        return [*found, ("log noise", 1)] if self.noise_is_learnt else found


def _point_rows(points: list[list[float]], data: datasets.DataSet) -> tuple[np.ndarray, np.ndarray]:
    """Return drawn points as inputs (rows, inputs) and observations (rows,)."""
    inputs = {"regression": 1, "classification": 2}[data.task]
    if data.inputs != inputs:
        raise BnnvizError(
            f"{data.title} is a {data.task} with {data.inputs} inputs, which takes no points: points are for regression"
            " with one input and for classification with two.",
            "points",
        )
    table = np.array(points, dtype=float).reshape(len(points), -1 if points else inputs + 1)
    if table.shape[1] != inputs + 1:
        form = "[x, y]" if inputs == 1 else "[x1, x2, class]"
        raise BnnvizError(
            f"The rows of points hold {table.shape[1]} numbers; {data.title} needs rows {form}.",
            "points",
        )
    wrong = [] if data.task == "regression" else table[~np.isin(table[:, -1], np.arange(data.classes)), -1]
    if len(wrong):
        raise BnnvizError(f"A point has the class {wrong[0]:g}; {data.title} has 0 to {data.classes - 1}.", "points")
    return table[:, :-1], table[:, -1]


_TABLES = datasets.names("table")
_ATTACHED = [name for name in _TABLES if datasets.describe(name)["attached"]]
_STANDARDISED = [name for name in _TABLES if datasets.describe(name)["standardised"]]
_VALIDATED = [name for name in _TABLES if datasets.describe(name)["validation"]]
_WITH_WEIGHTS = [name for name in _TABLES if datasets.describe(name)["published_weights"]]
# Whatever may be a regression: of a table of the user's own only the table says.
_REGRESSIONS = [name for name in _TABLES if datasets.describe(name)["task"] != "classification"]


@REGISTRY.add
class Network(BNN):
    """Posterior of a multilayer perceptron on a data set: regression, or classes with one logit or softmax.

    Parameters
    ----------
    attachment : bytes or None
        The packed table of the data set that stands for a file of the user's (`bnnviz.data.OwnTable`).
    values
        The settings, by name.
    """

    registered = "network"
    title = "Network on data"
    fixed_dim = None

    data = settings.Choice("toy_c", objects=_TABLES, hidden=_ATTACHED, doc="The data set.")
    split = settings.Integer(
        0,
        bounds=(0, 19),
        doc="Which split into training and test rows: Gal's for the UCI regressions, made by the same rule elsewhere.",
    )
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
        when={"data": _REGRESSIONS},
        doc="Standard deviation of the observation noise, in standardised units for the UCI sets and your"
        " file, in the target's unit for PMCnet's regressions; empty: the data set's own (1 on the UCI sets, as in the"
        " papers, and on your file; 0.05 on the toys, 4 and 0.003 on PMCnet's protein and naval, ours)."
        " Classes have no such noise.",
    )
    noise = settings.Choice(
        "fixed",
        objects=list(NOISES),
        when={"data": _REGRESSIONS},
        label="Observation noise",
        doc="fixed: its sd is noise_sd; learnt: its sd is one more unknown, whose logarithm is normal around that of"
        " noise_sd with sd 1.",
    )
    scaling = settings.Choice(
        "training",
        objects=["training", "own"],
        when={"data": _STANDARDISED},
        label="Scale of the test rows",
        doc="training: all inputs are standardised by the training rows' mean and standard deviation; own: those of the"
        " test rows by their own, as some published figures are.",
    )
    evaluate = settings.Choice(
        "test",
        objects=["test", "validation"],
        when={"data": _VALIDATED},
        label="Evaluate on",
        doc="The rows that predictions and scores are for. With validation the test rows are not loaded into the target"
        " at all: to choose settings by.",
    )
    initial_weights = settings.Choice(
        "random",
        objects=["random", "published"],
        when={"data": _WITH_WEIGHTS},
        doc="Where chains begin that do not begin at a mode of their own, and from where modes are sought: random, or"
        " the weights that the data set's source has published.",
    )
    points = settings.Points(
        None,
        live=True,
        label="Points",
        doc="Your own points in the place of the training rows, as rows [x, y] for a regression with one input or"
        " [x1, x2, class] for a classification with two, in original units; [] samples the prior; empty: the data"
        " set's own points.",
    )

    def __init__(self, attachment: bytes | None = None, **values: Any) -> None:
        chosen = settings.fill(settings.describe(type(self)), values, self.title)
        data_set = datasets.load(chosen["data"], chosen["split"], attachment)
        if chosen["evaluate"] == "validation":
            data_set = data_set.for_validation()
        data_set = self._original = replace(data_set, own_scales=chosen["scaling"] == "own")
        if chosen["points"] is not None:
            data_set = data_set.with_training(*_point_rows(chosen["points"], data_set))
        outputs = data_set.classes if data_set.classes > 2 else 1
        module = mlp(data_set.inputs, parse_hidden(chosen["hidden"]), outputs, chosen["activation"])
        noise = _noise_of(data_set) if chosen["noise_sd"] is None else chosen["noise_sd"]
        learns = chosen["noise"] if data_set.task == "regression" else "fixed"
        super().__init__(module, data_set, _likelihood(data_set), chosen["prior_sd"], noise, learns)
        self.param.update(**chosen)
        self._published = self._read_published() if chosen["initial_weights"] == "published" else None

    def _read_published(self) -> Tensor:
        """Return the published weights (weights,); refuse those of another network."""
        network, theta = datasets.published_weights(self.data)
        if (parse_hidden(self.hidden), self.activation) != (parse_hidden(network.hidden), network.activation):
            raise BnnvizError(
                f"The published weights on {self.data} are of a network with hidden={network.hidden} and"
                f" activation={network.activation}: set these, or initial_weights=random.",
                "initial_weights",
            )
        return torch.as_tensor(theta)

    def initial(self, chains: int, rng: torch.Generator) -> Tensor:
        """Return starts (chains, dim): random ones as of any network, or all at the published weights."""
        x = super().initial(chains, rng)
        if self._published is not None:
            x[:, : len(self._published)] = self._published.to(x)
        return x

    def change(self, settings: dict[str, Any]) -> None:
        """Become the posterior given other points (the one setting that may change while a run goes on)."""
        self.with_points(settings["points"])

    def with_points(self, points: list[list[float]] | None) -> None:
        """Put points in the place of the training rows, between two steps; a live run calls this on an edit.

        Parameters
        ----------
        points : list of rows or None
            As the setting `points`; None goes back to the data set's own rows.

        Raises
        ------
        BnnvizError
            If they do not fit the data set; the target is as before then.
        """
        setting = next(s for s in settings.describe(type(self)) if s["name"] == "points")
        points = settings.check(setting, points, self.title)
        own = self._original
        self.replace_rows(*((own.x_train, own.y_train) if points is None else _point_rows(points, own)))
        self.points = points

    def describe_value(self) -> str:
        """Return the data and the network in one line."""
        drawn = "" if self.points is None else f" with {len(self.points)} drawn points"
        sizes = f"{self.x.shape[1]}-{self.hidden}-{self._outputs}"
        noise = " and the noise" if self.noise_is_learnt else ""
        weights = self.dim - self.noise_is_learnt
        return f"{self.data_set.name}{drawn}, {sizes} {self.activation}, {weights} weights{noise}"


def _noise_of(data: datasets.DataSet) -> float:
    """Return the sd of the observation noise that is assumed where none is given."""
    if data.noise_sd is not None:
        return data.noise_sd
    return 1.0 if data.standardise else _TOY_NOISE_SD


def _likelihood(data: datasets.DataSet) -> str:
    if data.task == "regression":
        return "gaussian"
    return "bernoulli" if data.classes == 2 else "categorical"

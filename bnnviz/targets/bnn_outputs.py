r"""Compute the outputs :math:`f_\theta(x)` of a network for many draws :math:`\theta`, with bounded memory."""

from __future__ import annotations

import bisect
import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from bnnviz.errors import BnnvizError
from bnnviz.targets import mlp_gradients
from bnnviz.targets.minibatch import Rows, RowTarget
from bnnviz.targets.modules import calls, check
from bnnviz.targets.modules.calls import CallRules
from bnnviz.targets.modules.names import trainable
from bnnviz.targets.weight_priors import WeightPrior

# Values that a network computes at once over rows and chains; a gradient stores a few times as many.
_UNIT_NUMBERS = {"cpu": 32_000_000, "cuda": 400_000_000}
# For convolutions on a CPU: values that fit in the cache, and the minimum rows.
_CONVOLVED_NUMBERS, _CONVOLVED_ROWS = 6_000_000, 40


class WeightNames(Sequence[str]):
    """Labels of the coordinates of a network, created on access: large networks have half a million."""

    def __init__(self, shapes: dict[str, torch.Size], last: Sequence[str] = ()) -> None:
        self._shapes, self._last = list(shapes.items()), list(last)
        self._ends = list(itertools.accumulate(shape.numel() for _, shape in self._shapes))

    def __len__(self) -> int:
        return (self._ends[-1] if self._ends else 0) + len(self._last)

    def __iter__(self) -> Iterator[str]:
        for name, shape in self._shapes:
            yield from (f"{name}{list(index)}" for index in np.ndindex(*shape))
        yield from self._last

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


class NetworkOutputs(RowTarget):
    """A target whose states are the concatenated weights of a module."""

    module: nn.Module
    layers: list[mlp_gradients.LinearLayer] | None  # of a perceptron, which is computed by hand
    shapes: dict[str, torch.Size]  # of the parameters to sample by name, in order
    aliases: dict[str, str]  # for each name that the module has for a parameter, its name in ``shapes``
    frozen: int  # weights that keep their values
    rules: CallRules = CallRules()
    likelihood_dim: int = 0  # parameters of the likelihood, the last coordinates
    own_names: Sequence[str] = ()  # of these
    y: Tensor
    trial: tuple[Tensor, Tensor] | None = None  # inputs of a few rows, and outputs in double precision
    scale_names: Sequence[str] = ()  # of the learned scales, whose coordinates follow the weights
    whole: bool = False  # whether the network takes integers, as an embedding does
    prior_precision: float
    weight_prior: WeightPrior | None = None  # unless all weights have the prior of the coordinates
    outputs_per_row: int
    _units: int
    _multiplied: int
    _convolves: bool = False

    def clone(self) -> Self:
        """Return a copy for one run, with a copy of the module, since gradients write weights into it."""
        found = super().clone()
        found.module = calls.copied(self.module)
        return found

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Self:
        """Move data and module to a device and precision; return the target."""
        super().to(device, dtype)
        calls.move(self.module, self.device, dtype)
        if self.weight_prior is not None:
            self.weight_prior = self.weight_prior.to(self.device, dtype)
        if self.trial is not None:
            check.check_precision(self.module, *self.trial, dtype, self.rules)
        return self

    def fed(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return inputs (rows, ...) in the network's type: a floating precision, or integers."""
        return self.seen(x).long() if self.whole else self.seen(x).to(dtype)

    def seen(self, x: Tensor) -> Tensor:
        """Return inputs (rows, ...) in the network's form, from the target's stored form; by default unchanged."""
        return x

    @property
    def weights(self) -> int:
        """Number of weights to sample."""
        return sum(shape.numel() for shape in self.shapes.values())

    def weights_of(self, theta: Tensor) -> Tensor:
        """Return the weights of states (..., dim), which differ from them only under a prior of the weights."""
        return theta if self.weight_prior is None else self.weight_prior.weights(theta)

    def unflatten(self, theta: Tensor) -> dict[str, Tensor]:
        """Return the module's sampled parameters by name at a state (..., dim)."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = torch.split(self.weights_of(theta)[..., : sum(sizes)], sizes, dim=-1)
        return {
            name: part.view((*theta.shape[:-1], *shape))
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor:
        """Return the outputs (draws, rows, outputs) of weights on inputs, such as predictions of a run's draws.

        Parameters
        ----------
        theta : Tensor or array, shape (draws, dim)
            Or (chains, draws, dim), as in a run; chains are then concatenated.
        x : Tensor or array, shape (rows, ...)
            In the target's original form; for a data set by name, scaled as `bnnviz.data` scales it.

        Raises
        ------
        BnnvizError
            If ``theta`` does not have ``dim`` weights.
        """
        theta, x = (torch.as_tensor(each, device=self.device) for each in (theta, x))
        if theta.dim() > 2:
            theta = theta.reshape(-1, theta.shape[-1])
        if theta.dim() != 2 or theta.shape[1] != self.dim:
            raise BnnvizError(f"Give weights of shape (draws, {self.dim}), not {tuple(theta.shape)}.", "theta")
        theta = theta.to(self.dtype)
        pieces = torch.split(x, self._rows_at_once(len(theta)))
        parts = [self._outputs_of(theta, self.fed(part, self.dtype)) for part in pieces]
        found = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        # A forward that differentiates by its inputs needs recorded operations.
        differentiable = torch.is_grad_enabled() and (theta.requires_grad or x.requires_grad)
        return found.detach() if found.requires_grad and not differentiable else found

    def _outputs_of(self, theta: Tensor, x: Tensor, chainwise: bool = False) -> Tensor:
        """Return the outputs (chains, rows, outputs) for the same inputs (rows, ...), or for those of each chain."""
        if self.layers is not None:
            return mlp_gradients.outputs(self.layers, self.weights_of(theta), x)
        if self._loops(len(theta)):
            return torch.stack([self._one(flat, x[k] if chainwise else x) for k, flat in enumerate(theta)])
        return torch.func.vmap(self._one, in_dims=(0, 0 if chainwise else None))(theta, x)

    def _one(self, flat: Tensor, x: Tensor) -> Tensor:
        return calls.call(self.module, self.unflatten(flat), x, self.rules)

    def _loops(self, chains: int) -> bool:
        """Return whether chains take turns: some modules require it, and a CPU convolves one set of weights faster."""
        return self.rules.one_by_one or self._convolves and (self.device.type == "cpu" or chains == 1)

    @property
    def not_compiled(self) -> str:
        """The reason why a step on it is not compiled; empty if it is."""
        if self.rules.one_by_one:
            return "its forward is computed for one chain after another"
        return "convolutions are the same routines either way" if self._convolves else ""

    def _rows_at_once(self, chains: int) -> int:
        """Return the number of rows per piece, so that memory does not grow with the data."""
        if self._convolves and self.device.type == "cpu":
            return max(_CONVOLVED_ROWS, _CONVOLVED_NUMBERS // self._units)
        most = _UNIT_NUMBERS.get(self.device.type, _UNIT_NUMBERS["cpu"])
        return max(1, most // (self._units * max(chains, 1)))

    def _pieces(self, rows: Rows, chains: int) -> Iterator[Rows]:
        """Yield pieces of the rows in the network's form; empty rows yield one empty piece."""
        axis, each = int(self._chainwise(rows)), self._rows_at_once(chains)
        if rows.y.shape[axis] <= each:
            yield rows._replace(x=self.seen(rows.x))
            return
        for x, y in zip(torch.split(rows.x, each, axis), torch.split(rows.y, each, axis), strict=True):
            yield rows._replace(x=self.seen(x), y=y)

    def _chainwise(self, rows: Rows) -> bool:
        """Whether each chain has separate rows."""
        return rows.y.ndim > self.y.ndim

    def count(self, rows: Rows) -> int:
        """Return the number of rows per chain."""
        return rows.y.shape[int(self._chainwise(rows))]

    def _summed(self, compute: Callable[..., tuple[Tensor, ...]], rows: Rows, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the sums of a function's results over pieces of the rows."""
        total: tuple[Tensor, ...] = ()
        for piece in self._pieces(rows, len(tensors[0])):
            part = compute(piece, *tensors)
            total = tuple(a.add_(b) for a, b in zip(total, part, strict=True)) if total else part
        return total

    @property
    def row_work(self) -> int:
        """Approximate multiply-adds of the network per row; a convolution uses a weight many times."""
        return self._multiplied if self._convolves else self.dim

    def state_dict(self, draw: Tensor) -> dict[str, Any]:
        """Return a state dict for the module's ``load_state_dict`` with the weights of a draw (dim,).

        Tied parameters have the draw's weights under each of their names. Frozen ones and buffers are the module's.

        Raises
        ------
        BnnvizError
            If the draw does not have ``dim`` weights.
        """
        draw = torch.as_tensor(draw)
        if draw.shape != (self.dim,):
            raise BnnvizError(f"Give the weights of one draw, ({self.dim},), not {tuple(draw.shape)}.", "draw")
        weights, names = self.unflatten(draw), self.aliases
        return {
            name: weights[names[name]].clone() if name in names else copy.deepcopy(held)
            for name, held in self.module.state_dict().items()
        }

    def point(self, weights: Mapping[str, Any] | None = None) -> Tensor:
        """Return the state (dim,), float64, with the module's own weights, or those of a ``state_dict``.

        Learned scales and the likelihood's parameters are at the centre of their priors.

        Raises
        ------
        BnnvizError
            If a name or a shape does not match the module, or frozen parameters have other values.
        """
        own = {name: p.detach() for name, p in trainable(self.module).items()}
        found = own if weights is None else own | self._loaded(weights)
        flat = torch.cat([found[name].double().flatten() for name in self.shapes])
        flat = flat if self.weight_prior is None else self.weight_prior.coordinates(flat)
        return torch.nn.functional.pad(flat, (0, self.dim - len(flat)))

    def _loaded(self, weights: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the sampled parameters by name from a state dict."""
        held, found = self.module.state_dict(), {}
        for name in {*held, *weights} - ({*held} & {*weights}):
            what = "has no" if name in weights else "needs"
            raise BnnvizError(f"The module {what} {name}, or the start has another name for it.", "start")
        for name, given in weights.items():
            value = torch.as_tensor(given).detach().to(held[name].device)
            if value.shape != held[name].shape or not torch.isfinite(value).all():
                raise BnnvizError(
                    f"{name} of the start has shape {tuple(value.shape)} or non-finite numbers; the module has shape"
                    f" {tuple(held[name].shape)}.",
                    "start",
                )
            if name in self.aliases:
                found[self.aliases[name]] = value
            elif not torch.allclose(value.to(held[name]), held[name]):
                raise BnnvizError(
                    f"{name} is not sampled, but the start has other values for it than the module; load the state dict"
                    " into the module first.",
                    "start",
                )
        return found

    def names(self) -> Sequence[str]:
        """Return a label for each weight, created on access: the parameter's name and its index."""
        return WeightNames(self.shapes, [*self.scale_names, *self.own_names])

    def groups(self) -> list[tuple[str, int]]:
        """Return names and number of weights of each layer, followed by further coordinates."""
        found = self._layers()
        found += [("log scales", len(self.scale_names))] if self.scale_names else []
        if not self.likelihood_dim:
            return found
        name = self.own_names[0] if self.likelihood_dim == 1 else "likelihood"
        return [*found, (name, self.likelihood_dim)]

    def _layers(self) -> list[tuple[str, int]]:
        found = []
        for _, layer in itertools.groupby(self.shapes.items(), lambda item: item[0].rpartition(".")[0] or item[0]):
            names, shapes = zip(*layer, strict=True)
            found.append((", ".join(names), sum(shape.numel() for shape in shapes)))
        return found

    def last_layer(self) -> slice:
        """Return the slice of the last layer's weights."""
        end = self.weights
        return slice(end - self._layers()[-1][1], end)

r"""Compute the outputs :math:`f_\theta(x)` of a network for many draws :math:`\theta`, in pieces of bounded memory."""

from __future__ import annotations

import bisect
import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, overload

import numpy as np
import torch
from torch import Tensor, nn

from bnnviz.errors import BnnvizError
from bnnviz.targets import mlp_gradients, modules, weight_scales
from bnnviz.targets.minibatch import Rows, RowTarget

# Numbers that a network computes of all rows and chains at once, of which a gradient keeps a few times as many.
_UNIT_NUMBERS = {"cpu": 32_000_000, "cuda": 400_000_000}
# Of convolutions on a CPU, where more leave the cache, and the fewest rows that fill it.
_CONVOLVED_NUMBERS, _CONVOLVED_ROWS = 6_000_000, 40


class WeightNames(Sequence[str]):
    """Labels of the coordinates of a network, each made when it is asked for: large networks have half a million."""

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


class NetworkOutputs(RowTarget):
    """A target whose states are the weights of a module, one after another.

    Attributes
    ----------
    module : torch.nn.Module
    layers : list of LinearLayer or None
        Those of a multilayer perceptron, which is computed by hand; None of any other module.
    shapes : dict
        The shapes of the parameters to sample by name, in their order.
    aliases : dict
        Under which of these names a parameter stands, for each name that the module has for it.
    frozen : int
        How many weights are frozen: they stay what the module has.
    rules : CallRules
        What the module needs when it is called.
    likelihood_dim : int
        How many of the last coordinates are the likelihood's own parameters.
    own_names : sequence of str
        What these are called.
    trial : Trial or None
        What the module gave when it was tried; None of one that was not.
    scale_names : list of str
        What the learned scales of weights are called, whose coordinates come after those of the weights.
    whole : bool
        Whether the network reads whole numbers, as an embedding does.
    """

    module: nn.Module
    layers: list[mlp_gradients.LinearLayer] | None
    shapes: dict[str, torch.Size]
    aliases: dict[str, str]
    frozen: int
    rules: modules.CallRules = modules.CallRules()
    likelihood_dim: int = 0
    own_names: Sequence[str] = ()
    y: Tensor
    trial: modules.Trial | None = None
    scale_names: Sequence[str] = ()
    whole: bool = False
    prior_precision: float
    _scale: Tensor | None = None
    _scale_group: Tensor | None = None
    _scale_segments: Sequence[weight_scales.ScaledSegment] = ()
    _outputs: int
    _units: int
    _multiplied: int
    _convolves: bool = False

    def clone(self) -> Self:
        """Return a copy for one run, with a copy of the module: a gradient puts weights into it."""
        found = super().clone()
        found.module = modules.copied(self.module)
        return found

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Self:
        """Move data and module to a device and precision; return the target."""
        super().to(device, dtype)
        modules.move(self.module, self.device, dtype)
        if self.trial is not None:
            modules.check_precision(self.module, self.trial, dtype, self.rules)
        return self

    def fed(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return inputs (rows, ...) as the network takes them: real ones in a precision, or whole ones."""
        return self.seen(x).long() if self.whole else self.seen(x).to(dtype)

    def seen(self, x: Tensor) -> Tensor:
        """Return inputs (rows, ...) as the network sees them, from what the target keeps; others stay as they are."""
        return x

    @property
    def weights(self) -> int:
        """Number of weights to sample."""
        return sum(shape.numel() for shape in self.shapes.values())

    def _factor(self, theta: Tensor) -> Tensor:
        """Return what the coordinates of the weights are multiplied by, where the prior has scales."""
        rate = self.prior_precision**0.5
        return weight_scales.factors(theta, self._scale, self._scale_group, len(self.scale_names), rate)

    def weights_of(self, theta: Tensor) -> Tensor:
        """Return the weights that states (..., dim) stand for: these themselves where the prior has no scales."""
        return theta if self._scale is None else theta[..., : self.weights] * self._factor(theta)

    def unflatten(self, theta: Tensor) -> dict[str, Tensor]:
        """Return the module's parameters to sample by name that a state (..., dim) stands for."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = torch.split(self.weights_of(theta)[..., : sum(sizes)], sizes, dim=-1)
        return {
            name: part.view((*theta.shape[:-1], *shape))
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
        parts = [self._outputs_of(theta, self.fed(part, self.dtype)) for part in pieces]
        found = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        # A forward that takes derivatives by its inputs has its own recorded, whether its caller wants that or not.
        wanted = torch.is_grad_enabled() and (theta.requires_grad or x.requires_grad)
        return found.detach() if found.requires_grad and not wanted else found

    def _outputs_of(self, theta: Tensor, x: Tensor) -> Tensor:
        if self.layers is not None:
            return mlp_gradients.outputs(self.layers, self.weights_of(theta), x)
        if self._loops(len(theta)):
            return torch.stack([self._one(flat, x) for flat in theta])
        return torch.func.vmap(self._one, in_dims=(0, None))(theta, x)

    def _outputs_of_each(self, theta: Tensor, x: Tensor) -> Tensor:
        """Return the outputs (chains, rows, outputs) where each chain has inputs of its own, (chains, rows, ...)."""
        if self.layers is not None:
            return mlp_gradients.outputs(self.layers, self.weights_of(theta), x)
        if self._loops(len(theta)):
            return torch.stack([self._one(flat, rows) for flat, rows in zip(theta, x, strict=True)])
        return torch.func.vmap(self._one)(theta, x)

    def _one(self, flat: Tensor, x: Tensor) -> Tensor:
        return modules.call(self.module, self.unflatten(flat), x, self.rules)

    def _loops(self, chains: int) -> bool:
        """Whether so many chains are computed one after another.

        Some modules cannot be computed otherwise, and a CPU convolves faster with one set of weights.
        """
        return self.rules.one_by_one or self._convolves and (self.device.type == "cpu" or chains == 1)

    @property
    def jumps(self) -> bool:
        """Whether outputs jump as weights move."""
        return self.rules.jumps

    @property
    def compiles(self) -> bool:
        """Whether a step on it pays to be compiled."""
        return not self.not_compiled

    @property
    def not_compiled(self) -> str:
        """Why a step on it is not compiled; nothing where it is."""
        if self.rules.one_by_one:
            return "its forward is computed for one chain after another"
        return "convolutions are the same routines either way" if self._convolves else ""

    def _rows_at_once(self, chains: int) -> int:
        """Return how many rows are computed at once, so that memory does not grow with the data."""
        if self._convolves and self.device.type == "cpu":
            return max(_CONVOLVED_ROWS, _CONVOLVED_NUMBERS // self._units)
        most = _UNIT_NUMBERS.get(self.device.type, _UNIT_NUMBERS["cpu"])
        return max(1, most // (self._units * max(chains, 1)))

    def _pieces(self, rows: Rows, chains: int) -> Iterator[Rows]:
        """Yield rows as the network sees them, as many as are computed at once; none of them where there are none."""
        axis, each = int(self._chainwise(rows)), self._rows_at_once(chains)
        if rows.y.shape[axis] <= each:
            yield rows._replace(x=self.seen(rows.x))
            return
        for x, y in zip(torch.split(rows.x, each, axis), torch.split(rows.y, each, axis), strict=True):
            yield rows._replace(x=self.seen(x), y=y)

    def _chainwise(self, rows: Rows) -> bool:
        """Whether each chain has rows of its own."""
        return rows.y.ndim > self.y.ndim

    def count(self, rows: Rows) -> int:
        """Return how many rows each chain has."""
        return rows.y.shape[int(self._chainwise(rows))]

    def _summed(self, compute: Callable[..., tuple[Tensor, ...]], rows: Rows, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the sums over pieces of the rows of what is computed of each."""
        total: tuple[Tensor, ...] = ()
        for piece in self._pieces(rows, len(tensors[0])):
            part = compute(piece, *tensors)
            total = tuple(a.add_(b) for a, b in zip(total, part, strict=True)) if total else part
        return total

    @property
    def row_work(self) -> int:
        """Multiply-adds that the network takes of one row, about; a convolution uses a weight many times."""
        return self._multiplied if self._convolves else self.dim

    @property
    def outputs_per_row(self) -> int:
        """Number of outputs of the module."""
        return self._outputs

    def state_dict(self, draw: Tensor) -> dict[str, Any]:
        """Return what the module's ``load_state_dict`` takes, with the weights of a draw (dim,).

        Tied parameters have the draw's weights under each of their names. Frozen ones and buffers are the module's.

        Raises
        ------
        BnnvizError
            If there are not ``dim`` weights.
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
        """Return the state (dim,), float64, that has the module's own weights, or those of a ``state_dict``.

        Learned scales and the likelihood's own parameters are at the middle of their priors.

        Raises
        ------
        BnnvizError
            If a name or a shape is not the module's, or what is frozen has other numbers.
        """
        own = {name: p.detach() for name, p in modules.trainable(self.module).items()}
        found = own if weights is None else own | self._loaded(weights)
        flat = torch.cat([found[name].double().flatten() for name in self.shapes])
        flat = flat if self._scale is None else flat / self._scale.to(flat)
        return torch.nn.functional.pad(flat, (0, self.dim - len(flat)))

    def _loaded(self, weights: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the parameters to sample by name from a state dict."""
        held, found = self.module.state_dict(), {}
        for name in {*held, *weights} - ({*held} & {*weights}):
            what = "has no" if name in weights else "needs"
            raise BnnvizError(f"The module {what} {name}, or the start has another name for it.", "start")
        for name, given in weights.items():
            value = torch.as_tensor(given).detach().to(held[name].device)
            if value.shape != held[name].shape or not torch.isfinite(value).all():
                raise BnnvizError(
                    f"{name} of the start has the shape {tuple(value.shape)} or numbers that are not finite; the module"
                    f" has {tuple(held[name].shape)}.",
                    "start",
                )
            if name in self.aliases:
                found[self.aliases[name]] = value
            elif not torch.allclose(value.to(held[name]), held[name]):
                raise BnnvizError(
                    f"{name} is not sampled, and the start has other numbers for it than the module; load the state"
                    " dict into the module before it is given.",
                    "start",
                )
        return found

    def names(self) -> Sequence[str]:
        """Return a label for each weight, made when it is asked for: the parameter's name and its index."""
        return WeightNames(self.shapes, [*self.scale_names, *self.own_names])

    def groups(self) -> list[tuple[str, int]]:
        """Return the parameters' names and number of weights of each layer, then what else is learned."""
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
        """Return where the weights of the last layer lie."""
        end = self.weights
        return slice(end - self._layers()[-1][1], end)

r"""Define a target by a function of named parameters, each with a shape and a constraint.

Samplers need an unconstrained space, so each parameter is a transform :math:`x = T(y)` of unconstrained coordinates y,
and with U the potential of the parameters

.. math:: U(T(y)) - \log |\det T'(y)|

is that of y (Stan Reference Manual, chapter on constraint transforms). The transforms are those of
``torch.distributions.biject_to``: the exponential for positive parameters, the logistic function between two bounds,
and stick breaking for the simplex.
"""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Transform, biject_to, constraints
from torch.distributions.constraints import Constraint

from bnnviz.errors import BnnvizError
from bnnviz.targets.base import Callable

#: The shape of a parameter; an integer is the length of a vector.
Shape = int | tuple[int, ...]


class Parameter:
    """A parameter with a shape and a constraint.

    Parameters
    ----------
    constraint : torch.distributions.constraints.Constraint
        Constraint for which torch provides a bijection with a Jacobian, such as ``corr_cholesky``.
    shape : int or tuple of int
        Shape of the parameter. Use () for a scalar.

    Attributes
    ----------
    shape : tuple of int
    free_shape : tuple of int
        Shape of the unconstrained coordinates.

    Raises
    ------
    BnnvizError
        If the shape is invalid for the constraint, or torch provides no bijection.

    Examples
    --------
    >>> import bnnviz
    >>> from torch.distributions import constraints
    >>> bnnviz.Parameter(constraints.corr_cholesky, (3, 3)).size
    3
    """

    def __init__(self, constraint: Constraint = constraints.real, shape: Shape = ()) -> None:
        self.constraint, self.shape = constraint, _shape(shape)
        try:
            transform = self.transform
            self.free_shape = tuple(transform.inverse_shape(self.shape))
            free = torch.zeros(1, *self.free_shape, dtype=torch.float64)
            value = transform(free)
            transform.log_abs_det_jacobian(free, value)
            fits = tuple(value.shape[1:]) == self.shape
        except NotImplementedError as error:
            raise BnnvizError(
                f"torch has no bijection with a Jacobian for the constraint {constraint}; use other parameters.",
                "parameters",
            ) from error
        except (ValueError, IndexError, RuntimeError) as error:
            raise BnnvizError(_UNFIT.format(self.shape, constraint), "parameters") from error
        if not fits or 0 in self.free_shape:
            raise BnnvizError(_UNFIT.format(self.shape, constraint), "parameters")

    @property
    def transform(self) -> Transform:
        """The transform from unconstrained coordinates."""
        return biject_to(self.constraint)

    @property
    def size(self) -> int:
        """Number of unconstrained coordinates."""
        return math.prod(self.free_shape)

    def labels(self, name: str) -> list[str]:
        """Return a label for each unconstrained coordinate."""
        free = "" if self.constraint is constraints.real else " (unbounded)"
        places = np.ndindex(*self.free_shape)
        return [name + (f"[{', '.join(map(str, place))}]" if place else "") + free for place in places]

    def value(self, free: Tensor) -> tuple[Tensor, Tensor]:
        """Return values ``(n, *shape)`` of unconstrained coordinates (n, size), and ``log |det T'|`` (n,)."""
        transform, free = self.transform, free.reshape(len(free), *self.free_shape)
        value = transform(free)
        jacobian = transform.log_abs_det_jacobian(free, value)
        return value, jacobian.flatten(1).sum(1) if jacobian.ndim > 1 else jacobian


_UNFIT = "A parameter of shape {} cannot satisfy the constraint {}; give it another shape."


def _shape(given: Any) -> tuple[int, ...]:
    sides = given if isinstance(given, tuple | list | torch.Size) else (given,)
    whole = all(isinstance(side, int | np.integer) and not isinstance(side, bool) and side > 0 for side in sides)
    if not whole:
        raise BnnvizError(
            f"A parameter's shape must be a positive integer, or a tuple of such, not {given!r:.60}.", "parameters"
        )
    return tuple(int(side) for side in sides)


def positive(shape: Shape = ()) -> Parameter:
    """Return a parameter above 0.

    Examples
    --------
    >>> import bnnviz
    >>> given = {"x": bnnviz.positive()}
    >>> run = bnnviz.sample(lambda p: p["x"], "nuts", parameters=given, draws=20, warmup=20, chains=2)
    >>> bool((run.parameters()["x"] > 0).all())
    True
    """
    return Parameter(constraints.positive, shape)


def above(low: float, shape: Shape = ()) -> Parameter:
    """Return a parameter above a bound.

    Examples
    --------
    >>> import bnnviz
    >>> bnnviz.above(2.0, 3).size
    3
    """
    return Parameter(constraints.greater_than(_bound(low)), shape)


def below(high: float, shape: Shape = ()) -> Parameter:
    """Return a parameter below a bound.

    Examples
    --------
    >>> import bnnviz
    >>> bnnviz.below(0.0).shape
    ()
    """
    return Parameter(constraints.less_than(_bound(high)), shape)


def interval(low: float, high: float, shape: Shape = ()) -> Parameter:
    """Return a parameter between two bounds.

    Raises
    ------
    BnnvizError
        If the lower bound is not below the upper bound.

    Examples
    --------
    >>> import bnnviz
    >>> bnnviz.interval(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    low, high = _bound(low), _bound(high)
    if not low < high:
        raise BnnvizError(
            f"The lower bound of an interval must be below the upper, not {low} and {high}.", "parameters"
        )
    return Parameter(constraints.interval(low, high), shape)


def simplex(count: int, shape: Shape = ()) -> Parameter:
    """Return a parameter ``(*shape, count)`` of positive numbers that sum to 1.

    Examples
    --------
    >>> import bnnviz
    >>> shares = bnnviz.simplex(3)
    >>> shares.shape, shares.size
    ((3,), 2)
    """
    return Parameter(constraints.simplex, (*_shape(shape), *_shape(count)))


def _bound(given: Any) -> float:
    known = isinstance(given, int | float | np.number) and not isinstance(given, bool) and math.isfinite(given)
    if not known:
        raise BnnvizError(f"A parameter's bound must be a finite number, not {given!r:.60}.", "parameters")
    return float(given)


class _Part(NamedTuple):
    """A parameter, and the slice of its coordinates."""

    parameter: Parameter
    place: slice


class ParameterDensity(Callable):
    """Density defined by a function U of named parameters.

    Parameters
    ----------
    function : callable
        Function in torch that maps a dict of tensors ``(chains, *shape)`` to the negative log density (chains,). The
        density refers to the constrained parameters and must not include log-Jacobians.
    parameters : mapping of str to Parameter, int or tuple of int
        Shapes of the parameters, or constraints such as `positive()`, `interval(low, high)` and `simplex(count)`.

    Raises
    ------
    BnnvizError
        If a parameter is invalid.

    Examples
    --------
    >>> import bnnviz
    >>> gamma = bnnviz.ParameterDensity(lambda p: p["x"] - 2 * p["x"].log(), {"x": bnnviz.positive()})
    >>> gamma.dim
    1
    """

    def __init__(self, function: Function[[dict[str, Tensor]], Tensor], parameters: Mapping[str, Any]) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise BnnvizError(
                f"parameters must be a dict of shapes or constraints by name, not {parameters!r:.60}.", "parameters"
            )
        self._parts: dict[str, _Part] = {}
        dim = 0
        for name, given in parameters.items():
            if not isinstance(name, str) or not name:
                raise BnnvizError(f"A parameter's name must be a string, not {name!r:.60}.", "parameters")
            parameter = given if isinstance(given, Parameter) else Parameter(shape=given)
            self._parts[name] = _Part(parameter, slice(dim, dim + parameter.size))
            dim += parameter.size
        super().__init__(function, dim)

    def _value(self, x: Tensor) -> Tensor:
        found = {name: parameter.value(x[:, place]) for name, (parameter, place) in self._parts.items()}
        value = self.checked(self.called(x, {name: values for name, (values, _) in found.items()}), x)
        return value - sum(jacobian for _, jacobian in found.values())

    def _put(self, name: str, parameter: Parameter) -> None:
        """Replace a parameter by another of the same size."""
        self._parts[name] = self._parts[name]._replace(parameter=parameter)

    def named_values(self, x: Tensor) -> dict[str, Tensor]:
        """Return the parameters ``(n, *shape)`` by name at x (n, dim)."""
        return {name: parameter.value(x[:, place])[0] for name, (parameter, place) in self._parts.items()}

    def free_points(self, values: Mapping[str, Any] | list[Mapping[str, Any]]) -> Tensor:
        """Return the unconstrained coordinates (n, dim) of one or several points, in float64.

        Parameters
        ----------
        values : mapping of str to array_like, or list of such
            Values with the shapes of the parameters, optionally with a leading axis of points, or a list of such
            mappings.

        Raises
        ------
        BnnvizError
            If a name is missing or unknown, or a value violates its constraint.
        """
        if isinstance(values, list):
            return torch.cat([self.free_points(each) for each in values])
        for name in {*values, *self._parts} - ({*values} & {*self._parts}):
            what = "has no parameter" if name in values else "needs a value of the parameter"
            raise BnnvizError(f"The density {what} {name}; its parameters are {', '.join(self._parts)}.", "start")
        parts = {name: self._free(name, values[name]) for name in self._parts}
        count = max(map(len, parts.values()))
        if any(len(part) not in (1, count) for part in parts.values()):
            raise BnnvizError("start needs one value of each parameter, or one per chain of each.", "start")
        return torch.cat([part.expand(count, -1) for part in parts.values()], 1)

    def _free(self, name: str, given: Any) -> Tensor:
        """Return the coordinates (n, size) of a parameter's values."""
        parameter = self._parts[name].parameter
        try:
            value = torch.as_tensor(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise BnnvizError(f"The value of {name} is not an array of numbers ({error}).", "start") from error
        value = value[None] if value.shape == parameter.shape else value
        if value.shape[1:] != parameter.shape or not len(value):
            raise BnnvizError(
                f"The value of {name} has shape {tuple(value.shape)}; give {parameter.shape}, or one such value per"
                " chain.",
                "start",
            )
        free = parameter.transform.inv(value) if bool(parameter.constraint.check(value).all()) else value * torch.nan
        if not bool(torch.isfinite(free).all()):
            raise BnnvizError(f"The value of {name} violates its constraint or is on its boundary.", "start")
        return free.reshape(len(value), parameter.size)

    def groups(self) -> list[tuple[str, int]]:
        """Return name and number of coordinates of each parameter."""
        return [(name, parameter.size) for name, (parameter, _) in self._parts.items()]

    def names(self) -> list[str]:
        """Return a label for each coordinate."""
        return [label for name, (parameter, _) in self._parts.items() for label in parameter.labels(name)]

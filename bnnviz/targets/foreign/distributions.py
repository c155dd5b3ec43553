r"""Define a target by a distribution of ``torch.distributions``.

Samplers move through all of space, so a distribution on a part of it is taken in the coordinates of ``biject_to`` of
its support. Of a ``TransformedDistribution``, whose support may be narrower than it says, :math:`x = T(u)` is taken in
the coordinates of its base's support, the transforms after them.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import torch
from torch import Tensor
from torch.distributions import (
    ComposeTransform,
    Distribution,
    Independent,
    MixtureSameFamily,
    Transform,
    TransformedDistribution,
    biject_to,
)
from torch.distributions.constraints import Constraint

from bnnviz.errors import BnnvizError
from bnnviz.targets.parameters import Parameter, ParameterDensity

NAME = "x"
_LINKS = ("_inv", "_cached_x_y")  # of a transform: what it was called on last


class _OfDistribution(Parameter):
    """A variable with a distribution, by its bijection from coordinates without bounds."""

    def __init__(self, distribution: Distribution) -> None:
        self._bijection = _bijection(distribution)
        super().__init__(_support(distribution), (*distribution.batch_shape, *distribution.event_shape))

    @property
    def transform(self) -> Transform:
        """The bijection."""
        return self._bijection


class DistributionDensity(ParameterDensity):
    """The density of a distribution of ``torch.distributions``; its variable is called x.

    Parameters
    ----------
    distribution : torch.distributions.Distribution
        Continuous: of one variable or several, a mixture, transformed, with any support that ``biject_to`` knows. Of
        a batch all are sampled together, independent of each other.

    Raises
    ------
    BnnvizError
        If it is discrete, or torch knows no bijection to its support.

    Examples
    --------
    >>> import bnnviz
    >>> import torch
    >>> gamma = torch.distributions.Gamma(torch.tensor(3.0), torch.tensor(1.0))
    >>> run = bnnviz.sample(gamma, "nuts", draws=20, warmup=20, chains=2)
    >>> bool((run.parameters()["x"] > 0).all())
    True
    """

    title = "Your distribution"

    def __init__(self, distribution: Distribution) -> None:
        if not isinstance(distribution, Distribution):
            raise BnnvizError(
                f"Give a distribution of torch.distributions, not {type(distribution).__name__}.", "target"
            )
        self._given = self._own = _moved(distribution, lambda held: held.detach())
        super().__init__(self._minus_log, {NAME: self._variable()})

    def _variable(self) -> Parameter:
        kind = type(self._given).__name__
        try:
            discrete = bool(self._own.support.is_discrete)
        except NotImplementedError as error:
            raise BnnvizError(
                f"The {kind} names no support, so that it is not known where x may lie; give a function U with"
                " parameters=.",
                "target",
            ) from error
        if discrete:
            raise BnnvizError(
                f"The {kind} is discrete, and samplers move real numbers; sum its values out of the density.", "target"
            )
        try:
            return _OfDistribution(self._own)
        except (BnnvizError, NotImplementedError) as error:
            raise BnnvizError(
                f"torch knows no bijection to the support of the {kind}, {self._own.support}; give a function U with"
                " parameters=.",
                "target",
            ) from error

    def _minus_log(self, given: dict[str, Tensor]) -> Tensor:
        found = self._own.log_prob(given[NAME])
        return -(found.flatten(1).sum(1) if found.ndim > 1 else found)

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Self:
        """Move the distribution to a device and precision; return the target."""
        super().to(device, dtype)
        self._own = _moved(self._given, lambda held: held.to(device, dtype if held.is_floating_point() else held.dtype))
        self.function = self._minus_log
        self._put(NAME, self._variable())
        return self

    def clone(self) -> Self:
        """Return a copy for one run."""
        made = super().clone()
        made.function, made._parts = made._minus_log, dict(self._parts)
        return made

    def describe_value(self) -> str:
        """Return the distribution's class and its shape."""
        shape = (*self._given.batch_shape, *self._given.event_shape)
        return f"{type(self._given).__name__}{list(shape) if shape else ''}"


def _bijection(distribution: Distribution) -> Transform:
    """Return the bijection from coordinates without bounds to what a distribution is of."""
    if isinstance(distribution, Independent):
        return _bijection(distribution.base_dist)
    # Of the absolute value, as a half-normal has it, no inverse is known; its support says enough.
    if isinstance(distribution, TransformedDistribution) and all(each.bijective for each in distribution.transforms):
        return ComposeTransform([_bijection(distribution.base_dist), *distribution.transforms])
    return biject_to(_support(distribution))


def _support(distribution: Distribution) -> Constraint:
    """Return where a variable lies; of a mixture where the variables of all its components do."""
    found = distribution.support
    if not isinstance(distribution, MixtureSameFamily):
        return found
    inner = getattr(found, "base_constraint", found)
    made = copy.copy(inner)
    for name, bound in vars(inner).items():
        if isinstance(bound, Tensor) and bound.ndim:
            if not bool((bound == bound.flatten()[0]).all()):
                raise BnnvizError("The components of the mixture have different supports.", "target")
            made.__dict__[name] = bound.flatten()[0]
    return made


def _moved(held: Any, move: Any) -> Any:
    """Return a copy of a distribution, of a transform or of what one is made of, with each tensor moved."""
    if isinstance(held, Tensor):
        return move(held)
    if isinstance(held, list | tuple):
        return type(held)(_moved(each, move) for each in held) if type(held) in (list, tuple) else held
    if isinstance(held, dict):
        return {name: _moved(each, move) for name, each in held.items()}
    if not isinstance(held, Distribution | Transform | Constraint):
        return held
    made = copy.copy(held)
    for name, value in list(vars(held).items()):
        made.__dict__[name] = value if name in _LINKS else _moved(value, move)
    if isinstance(held, Transform):
        made._inv, made._cached_x_y = None, (None, None)
    if isinstance(held, Distribution):
        made._validate_args = False  # it would look at numbers at every step
    return made

r"""Define a target by a distribution of ``torch.distributions``.

Samplers need an unconstrained space, so a distribution with a constrained support is sampled in the coordinates of
``biject_to`` of the support. A ``TransformedDistribution`` may declare too wide a support, so :math:`x = T(u)` uses the
coordinates of its base's support, followed by the transforms.
"""

from __future__ import annotations

import copy
import math
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
    VonMises,
    biject_to,
    constraints,
)
from torch.distributions.constraints import Constraint

from bnnviz.errors import BnnvizError
from bnnviz.targets.parameters import Parameter, ParameterDensity

NAME = "x"
_ANGLES = 721  # grid for the minimum of a density of angles
_DRAWS, _INSIDE = 256, 0.9  # number of exact draws to check, and the share that must be in the support
_FARTHEST, _LOOKS, _MOST_AXES = 4, 16, 50  # decades outwards, points of each, axes
_RISE = 0.1  # minimum rise of U per decade
_LINKS = ("_inv", "_cached_x_y")  # of a transform: its last arguments


class _OfDistribution(Parameter):
    """A variable with a distribution, mapped by its bijection from unconstrained coordinates."""

    def __init__(self, distribution: Distribution) -> None:
        self._bijection = _bijection(distribution)
        super().__init__(_support(distribution), (*distribution.batch_shape, *distribution.event_shape))

    @property
    def transform(self) -> Transform:
        """The bijection."""
        return self._bijection


class DistributionDensity(ParameterDensity):
    """Density of a distribution from ``torch.distributions``. Its variable is named x.

    Parameters
    ----------
    distribution : torch.distributions.Distribution
        Continuous distribution, including mixtures and transformed distributions. Its support must be supported by
        ``biject_to``. The elements of a batch are independent variables.

    Raises
    ------
    BnnvizError
        If the distribution is discrete, or torch provides no bijection to its support.

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
        variable = self._variable()
        super().__init__(self._minus_log, {NAME: variable})
        kind = type(self._given).__name__
        _check_draws(self._own, kind, variable)
        if not has_integral(self.potential, self.dim, _precision(self._given)):
            raise BnnvizError(
                f"The density of the {kind} has no integral over its declared support, {self._own.support}: it does"
                " not decrease in some direction; give a function U with parameters=.",
                "target",
            )

    def _variable(self) -> Parameter:
        kind = type(self._given).__name__
        try:
            discrete = bool(self._own.support.is_discrete)
        except NotImplementedError as error:
            raise BnnvizError(
                f"The {kind} declares no support, so the range of x is unknown; give a function U with parameters=.",
                "target",
            ) from error
        if discrete:
            raise BnnvizError(
                f"The {kind} is discrete, but samplers need continuous variables; marginalise it.", "target"
            )
        try:
            return _OfDistribution(self._own)
        except (BnnvizError, NotImplementedError) as error:
            raise BnnvizError(
                f"torch has no bijection to the support of the {kind}, {self._own.support}; give a function U with"
                " parameters=.",
                "target",
            ) from error

    def _minus_log(self, given: dict[str, Tensor]) -> Tensor:
        found = self._own.log_prob(given[NAME])
        return -(found.flatten(1).sum(1) if found.ndim > 1 else found)

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Self:
        """Move the distribution to a device and precision and return the target."""
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
        """Return the class and shape of the distribution."""
        shape = (*self._given.batch_shape, *self._given.event_shape)
        return f"{type(self._given).__name__}{list(shape) if shape else ''}"


def has_integral(potential: Any, dim: int, dtype: torch.dtype) -> bool:
    """Return whether U rises outwards in all tested directions: the axes, their sum, and a few others."""
    rng = torch.Generator().manual_seed(0)
    axes = torch.eye(dim, dtype=torch.float64)[:_MOST_AXES]
    others = torch.cat([torch.ones(1, dim), torch.randn(8, dim, generator=rng)]).double()
    for way in torch.cat([axes, -axes, others, -others]):
        lengths = torch.rand(_FARTHEST, _LOOKS, generator=rng, dtype=torch.float64) + torch.arange(_FARTHEST)[:, None]
        points = 10.0 ** lengths.flatten()[:, None] * way
        with torch.no_grad():
            found = potential(points.to(dtype)).double().view(_FARTHEST, _LOOKS)
        least = torch.where(torch.isnan(found), torch.inf, found).amin(1)
        rises = least[torch.isfinite(least)].diff()
        if len(rises) >= 3 and float(rises.max()) < _RISE:
            return False
    return True


def _bijection(distribution: Distribution) -> Transform:
    """Return the bijection from unconstrained coordinates to the support of a distribution."""
    if isinstance(distribution, Independent):
        return _bijection(distribution.base_dist)
    if _is_angle(distribution):
        return _around(distribution)
    support = distribution.support
    if getattr(support, "base_constraint", support) is constraints.simplex:  # its transforms may not be bijections
        return biject_to(constraints.simplex)
    # Absolute values, as in a half-normal, have no known inverse; the declared support suffices.
    if isinstance(distribution, TransformedDistribution) and all(each.bijective for each in distribution.transforms):
        return ComposeTransform([_bijection(distribution.base_dist), *distribution.transforms])
    return biject_to(_support(distribution))


class _Wrapped(Transform):
    """Wrap angles around a centre, from -pi to pi as in torch's draws."""

    domain = codomain = constraints.real
    bijective, sign = True, 1

    def __init__(self, centre: Tensor) -> None:
        super().__init__()
        self.centre = centre

    def _call(self, x: Tensor) -> Tensor:
        return torch.remainder(x + math.pi, 2 * math.pi) - math.pi

    def _inverse(self, y: Tensor) -> Tensor:
        return self.centre + torch.remainder(y - self.centre + math.pi, 2 * math.pi) - math.pi

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return zeros: a turn changes no volume."""
        return torch.zeros_like(x)


def _is_angle(distribution: Distribution) -> bool:
    """Return whether a distribution is of angles, whose density torch repeats periodically."""
    inner = distribution.component_distribution if isinstance(distribution, MixtureSameFamily) else distribution
    return isinstance(inner, VonMises)


def _around(distribution: Distribution) -> Transform:
    """Return the bijection to a full turn that starts and ends at the minimum of a density of angles."""
    like = next(held for held in vars(distribution).values() if isinstance(held, Tensor | Distribution))
    like = like if isinstance(like, Tensor) else distribution.component_distribution.loc
    grid = torch.linspace(-math.pi, math.pi, _ANGLES, dtype=like.dtype, device=like.device)
    grid = grid.view(-1, *[1] * len(distribution.batch_shape)).expand(-1, *distribution.batch_shape)
    least = distribution.log_prob(grid).argmin(0)
    centre = grid[:, *[0] * len(distribution.batch_shape)][least] + math.pi
    turn = constraints.interval(centre - math.pi, centre + math.pi)
    return ComposeTransform([biject_to(turn), _Wrapped(centre)])


def _precision(held: Any) -> torch.dtype:
    """Return the precision of the first real tensor in a distribution or transform. Float32 without one."""
    for value in vars(held).values():
        if isinstance(value, Tensor) and value.is_floating_point():
            return value.dtype
        if isinstance(value, Distribution):
            return _precision(value)
    return torch.float32


def _check_draws(distribution: Distribution, kind: str, parameter: Parameter) -> None:
    """Raise if a distribution's exact draws are outside the sampled region, or its density has no integral."""
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            draws = distribution.sample((_DRAWS,))
            there = parameter.transform.inv(draws)
            log_density = distribution.log_prob(draws)
    except (NotImplementedError, RuntimeError, ValueError, AssertionError):
        return  # no draws, or none close enough to an edge to be mapped back
    flat, again = there.reshape(_DRAWS, -1), parameter.transform(there)
    inside = torch.isclose(again, draws, rtol=1e-2, atol=1e-3).reshape(_DRAWS, -1).all(1)
    finite = torch.isfinite(log_density).reshape(_DRAWS, -1).all(1)
    known = torch.isfinite(flat).all(1)
    if float((inside & finite)[known].double().mean()) < _INSIDE:
        raise BnnvizError(
            f"Draws from the {kind}'s sample() are outside its support or have no density, so it cannot be sampled;"
            " give a function U with parameters=.",
            "target",
        )


def _support(distribution: Distribution) -> Constraint:
    """Return the support of a variable. For a mixture, that of all components."""
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
    """Return a copy of a distribution, of a transform or of their parts, with each tensor moved."""
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
        # An inverse is defined by its original.
        inverse = type(held).__name__ == "_InverseTransform"
        made._inv, made._cached_x_y = _moved(held._inv, move) if inverse else None, (None, None)
    if isinstance(held, Distribution):
        made._validate_args = False  # validation would read values at every step
    return made

r"""Define a target: a density :math:`\pi(x) \propto e^{-U(x)}` that samplers explore, with derivatives of U."""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Callable as Function
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import param
import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.messages import Message
from bnnviz.registry import Registry
from bnnviz.targets.native import NativeGradient
from bnnviz.targets.tape import Tape, record
from bnnviz.targets.traced import is_traced
from bnnviz.targets.user_code import first_line, is_of_precision, recorded

REGISTRY = Registry("target")

#: U of (chains, dim), as (chains,).
Potential = Function[[Tensor], Tensor]

_EXACT_DIAGONAL, _PROBES = 1000, 100
_LONG = 100  # operations of U, from which on PyTorch takes milliseconds for its gradient

#: Raised for a matrix without a factorisation, an invalid distribution parameter, or an undefined value.
DOMAIN_ERRORS = (torch.linalg.LinAlgError, ValueError, ArithmeticError)


class RejectedPoints:
    """Count the points at which a density raised a domain error."""

    def __init__(self, count: int = 0, first: str = "") -> None:
        self.count, self.first = count, first

    def add(self, error: Exception) -> None:
        """Count a point."""
        self.first = self.first or f"{type(error).__name__}: {textwrap.shorten(str(error), 160, placeholder='...')}"
        self.count += 1

    def message(self) -> Message | None:
        """Return the number of such points and the first error, or None."""
        return Message("rejected_points", count=self.count, first=self.first) if self.count else None


class Target(param.Parameterized):
    """Base class of densities proportional to exp(-U(x)). Subclasses define `potential` and `dim`.

    Attributes
    ----------
    dim : int
        Dimension of a state.
    examples : int
        Number of data rows per gradient, which is its cost in per-example evaluations.
    prior_precision : float or None
        Precision of an isotropic normal prior that is part of U, or None if there is no such prior.
    units : list of layers
        Layers whose hidden units can be permuted without changing the density (`bnnviz.diagnostics.canonical`).
    not_compiled : str
        Reason why samplers are not compiled for this target, or empty if they are.
    mode_overfits : bool
        Whether scales of noise or prior are learned, so that the mode overfits and is far from typical draws.
    located : bool
        Whether random initial points are near the typical set.
    jumps : bool
        Whether U is known to be discontinuous.
    descent_rows : int or None
        Number of random data rows per step of the optimisation, or None for all rows.
    descent_rate : float
        Initial learning rate of the optimisation.
    rejected : RejectedPoints
        Points at which `potential` raised a domain error.

    Examples
    --------
    >>> from bnnviz import targets
    >>> import torch
    >>> class Laplacian(targets.Target):
    ...     registered, title, dim = "", "Laplace", 1
    ...     def potential(self, x):
    ...         return x.abs().sum(-1)
    >>> potential, gradient = Laplacian().gradient(torch.tensor([[2.0], [-3.0]]))
    >>> gradient.flatten().tolist()
    [1.0, -1.0]
    """

    registered: ClassVar[str] = ""
    title: ClassVar[str] = ""
    emits: ClassVar[frozenset[str]] = frozenset()
    presets: ClassVar[list[dict[str, Any]]] = []

    dim: int = 0
    examples: int = 1
    prior_precision: float | None = None
    units: Sequence[Any] = ()
    start_at_mode: bool = False
    mode_overfits: bool = False
    located: bool = True
    not_compiled: str = ""
    jumps: bool = False
    descent_rows: int | None = None
    descent_rate: float = 0.02

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.device, self.dtype = torch.device("cpu"), torch.float32
        self.rejected = RejectedPoints()

    def clone(self) -> Target:
        """Return a copy for one run."""
        made = copy.copy(self)
        made.rejected = RejectedPoints()
        return made

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Target:
        """Move the tensors of the target to a device and precision and return the target."""
        self.device, self.dtype = torch.device(device), dtype
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                kind = dtype if value.is_floating_point() else value.dtype
                setattr(self, name, value.to(device=self.device, dtype=kind))
        return self

    def use_native(self, waits: bool) -> None:
        """Compute derivatives in C++ if available; ``waits`` for the compiler, which takes seconds on first use."""

    def native_gradient(self, x: Tensor) -> NativeGradient | None:
        """Return U and its gradient at states shaped like x (chains, dim) as a C function, or None if unavailable."""
        return None

    def change(self, live: dict[str, Any]) -> None:
        """Change ``live`` settings during a run."""
        raise NotImplementedError

    def potential(self, x: Tensor) -> Tensor:
        """Return U, up to a constant: (chains, dim) -> (chains,)."""
        raise NotImplementedError

    def defined_potential(self, x: Tensor) -> Tensor:
        """Return U (chains,), infinite where `potential` raises a domain error."""
        return evaluated(self.potential, x, self.rejected)

    @property
    def row_work(self) -> int:
        """Approximate multiply-adds of U per data row: by default one per coordinate."""
        return self.dim

    @property
    def data_rows(self) -> int | None:
        """Number of data rows in the sum U, or None if U is not a sum over rows."""
        return None

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U (chains,) and its gradient (chains, dim), computed using automatic differentiation by default."""
        return differentiate(self.defined_potential, x)

    def gradient_and_curvature(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U (chains,), its gradient (chains, dim) and the curvature v' H v along v (chains,)."""
        potential, gradient, product = self.gradient_and_product(x, v)
        return potential, gradient, (product * v).sum(-1)

    def gradient_and_product(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U (chains,), its gradient and the product H v with the Hessian, both (chains, dim)."""
        return differentiate_twice(self.defined_potential, x, v)

    def quadratic(self) -> tuple[Tensor, Tensor] | None:
        """Return centre (dim,) and precision (dim, dim) if U is quadratic, else None."""
        return None

    def curvature_diagonal(self, x: Tensor, part: slice = slice(None)) -> Tensor:
        """Return part of the diagonal of the Hessian (or Gauss-Newton) at one point (dim,), without the prior."""
        return self.hessian_diagonal(x)[part]

    def curvature_matrix(self, x: Tensor, part: slice = slice(None)) -> Tensor:
        """Return a block of the Hessian (or Gauss-Newton matrix) at one point (dim,), without the prior."""
        basis = torch.eye(self.dim, dtype=x.dtype, device=x.device)
        parts = [self.gradient_and_product(x.expand(len(v), -1), v)[2] for v in torch.split(basis[part], _PROBES)]
        hessian = torch.cat(parts)[:, part]
        return hessian - (self.prior_precision or 0.0) * torch.eye(len(hessian), dtype=x.dtype, device=x.device)

    def last_layer(self) -> slice | None:
        """Return the slice of the last layer's weights, or None without layers."""
        return None

    def hessian_diagonal(self, x: Tensor) -> Tensor:
        r"""Return the diagonal (dim,) of the Hessian of U at one point (dim,), without the prior.

        The result is exact for up to 1,000 dimensions. Otherwise it is Hutchinson's estimate :math:`E[z \odot H z]`
        from 100 vectors of random signs z (Bekas, Kokiopoulou and Saad 2007,
        https://doi.org/10.1016/j.apnum.2007.01.003).
        """
        if self.dim <= _EXACT_DIAGONAL:
            basis = torch.eye(self.dim, dtype=x.dtype, device=x.device)
            parts = [self.gradient_and_curvature(x.expand(len(z), -1), z)[2] for z in torch.split(basis, _PROBES)]
            return torch.cat(parts) - (self.prior_precision or 0.0)
        rng = torch.Generator(device=x.device).manual_seed(0)
        total = torch.zeros_like(x)
        for _ in range(_PROBES):
            sign = torch.randint(2, (1, self.dim), generator=rng, device=x.device, dtype=x.dtype) * 2 - 1
            total += (sign * self.gradient_and_product(x[None], sign)[2])[0]
        return total / _PROBES - (self.prior_precision or 0.0)

    def hessian_row_sums(self, x: Tensor) -> Tensor:
        """Return the row sums (dim,) of the Hessian at one point (dim,), without the prior."""
        ones = torch.ones_like(x)[None]
        return self.gradient_and_product(x[None], ones)[2][0] - (self.prior_precision or 0.0)

    def initial(self, chains: int, rng: torch.Generator) -> Tensor:
        """Return random initial positions (chains, dim), overdispersed if the scale of the density is known."""
        noise = torch.randn(chains, self.dim, generator=rng, device=rng.device, dtype=self.dtype)
        if self.mean() is None:
            return noise
        spread = torch.as_tensor(np.sqrt(np.diag(self.cov())), dtype=self.dtype, device=self.device)
        return torch.as_tensor(self.mean(), dtype=self.dtype, device=self.device) + spread * noise

    def mean(self) -> np.ndarray | None:
        """Return the exact mean (dim,), or None if unknown."""
        return None

    def cov(self) -> np.ndarray | None:
        """Return the exact covariance (dim, dim), or None if unknown."""
        return None

    def exact_draws(self, count: int, seed: int = 0) -> np.ndarray | None:
        """Return independent exact draws (count, dim), or None if unavailable."""
        return None

    def window(self) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Return the plotting window ((x lo, x hi), (y lo, y hi)) of the first two coordinates, if known."""
        if self.mean() is None:
            return None
        mean, sd = self.mean(), np.sqrt(np.diag(self.cov()))
        sides = [(float(m - 3.5 * s), float(m + 3.5 * s)) for m, s in zip(mean[:2], sd[:2], strict=True)]
        return sides[0], sides[-1]

    def groups(self) -> list[tuple[str, int]]:
        """Return names and sizes of groups of consecutive coordinates, such as layers."""
        return [("all", self.dim)]

    def remarks(self) -> list[Message]:
        """Return notes for users."""
        return []

    def names(self) -> Sequence[str]:
        """Return a label for each coordinate."""
        return [f"x{i + 1}" for i in range(self.dim)]

    def named_values(self, x: Tensor) -> dict[str, Tensor]:
        """Return the named parameters of coordinates x (n, dim), ``(n, *shape)`` each, or empty without names."""
        return {}

    def describe_value(self) -> str:
        """Return a title that includes the settings of the target."""
        return self.title or type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.describe_value()}: {self.dim:,} coordinate{'' if self.dim == 1 else 's'}>"

    def __str__(self) -> str:
        # That of param shows a running number.
        return repr(self)


def differentiate(potential: Potential, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return a potential (chains,) at x (chains, dim) and its gradient, by automatic differentiation."""
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        value = _followed(potential(x))
        (gradient,) = torch.autograd.grad(value.sum(), x)
    return value.detach(), gradient


def _followed(value: Tensor) -> Tensor:
    """Return U, after checking that automatic differentiation has tracked it."""
    if not value.requires_grad:
        raise BnnvizError(
            "U does not depend on its argument in a differentiable way; compute it in torch from the argument, without"
            " detach, torch.no_grad or NumPy.",
            "target",
        )
    return value


def differentiate_twice(potential: Potential, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a potential (chains,) at x (chains, dim), its gradient and H v, by automatic differentiation.

    If H v is not finite although the gradient is, as for ``torch.logaddexp`` at distant arguments, use a difference of
    two gradients.
    """
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        value = _followed(potential(x))
        (gradient,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        along = (gradient * v).sum()
        product = torch.autograd.grad(along, x, allow_unused=True)[0] if along.requires_grad else None
    gradient = gradient.detach()
    product = torch.zeros_like(gradient) if product is None else product.detach()
    return value.detach(), gradient, _finite(potential, x.detach(), v, gradient, product)


def _finite(potential: Potential, x: Tensor, v: Tensor, gradient: Tensor, product: Tensor) -> Tensor:
    """Return H v, with non-finite values replaced by differences if the gradient is finite."""
    lost = torch.isfinite(gradient) & ~torch.isfinite(product)
    captured = x.is_cuda and torch.cuda.is_current_stream_capturing()
    if captured or is_traced():  # nothing may depend on values
        return torch.where(lost, 0, product)
    return torch.where(lost, gradients_apart(potential, x, v), product) if lost.any() else product


def gradients_apart(potential: Potential, x: Tensor, v: Tensor) -> Tensor:
    r"""Return H v (chains, dim) by a central difference, :math:`(g(x + h v) - g(x - h v)) / 2h`.

    The step h v is the cube root of the precision, times max(1, the largest coordinate of x).
    """
    reach = torch.finfo(x.dtype).eps ** (1 / 3) * x.abs().amax(-1, keepdim=True).clamp_min(1)
    h = reach / v.abs().amax(-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    return (differentiate(potential, x + h * v)[1] - differentiate(potential, x - h * v)[1]) / (2 * h)


def evaluated(function: Function[[Tensor], Any], x: Tensor, rejected: RejectedPoints) -> Any:
    """Return a function's values (chains,) at x (chains, dim), infinite where it raises a domain error.

    Samplers reject such a point, as Stan does. To find it in a batch, the batch is halved repeatedly.
    """
    try:
        return function(x)
    except BnnvizError:
        raise
    except DOMAIN_ERRORS as error:
        if len(x) < 2:
            rejected.add(error)
            return torch.inf * (1 + 0 * x.sum(-1))
    half = len(x) // 2
    return torch.cat([evaluated(function, part, rejected) for part in (x[:half], x[half:])])


class Callable(Target):
    """Density defined by a function U of states (chains, dim) in torch.

    Examples
    --------
    >>> from bnnviz import targets
    >>> import torch
    >>> round_one = targets.Callable(lambda x: x.square().sum(-1) / 2, dim=3)
    >>> round_one.potential(torch.ones(2, 3)).tolist()
    [1.5, 1.5]
    """

    title = "Your function"
    located = False

    def __init__(self, function: Any, dim: int) -> None:
        super().__init__()
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
            raise BnnvizError(f"dim is the dimension of a state, a positive integer, not {dim!r}.", "dim")
        self.function, self.dim = function, int(dim)
        self._tape: Tape | None = None

    def use_native(self, waits: bool) -> None:
        """Compute U and its gradient in C++ if U consists of many operations that can be traced."""
        self._tape = None
        if self.device.type == "cpu" and self._is_long():
            gradient = partial(differentiate, self.potential)
            self._tape = record(self._value, gradient, self.dim, self.dtype, waits)

    def _is_long(self) -> bool:
        """Return whether automatic differentiation follows many operations."""
        x = torch.zeros(1, self.dim, dtype=self.dtype, requires_grad=True)
        try:
            with torch.enable_grad():
                return len(recorded(self._value(x), _LONG)) >= _LONG
        except Exception:  # noqa: BLE001 - the run raises it where it evaluates U
            return False

    def native_gradient(self, x: Tensor) -> NativeGradient | None:
        """Return U and its gradient as a C function, or None if unavailable."""
        return self._tape.function() if self._tape is not None and self._tape.suits(x) else None

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U (chains,) and its gradient (chains, dim), in C++ or by automatic differentiation."""
        if self._tape is not None and self._tape.suits(x):
            return self._tape.gradient(x)
        return super().gradient(x)

    def potential(self, x: Tensor) -> Tensor:
        """Return the value of the function after checking its shape, or infinite if it raises a domain error."""
        return evaluated(self._value, x, self.rejected)

    def _value(self, x: Tensor) -> Tensor:
        return self.checked(self.called(x, x), x)

    def called(self, x: Tensor, given: Any) -> object:
        """Return the value of the function for an argument at x (chains, dim), and explain its errors."""
        try:
            return self.function(given)
        except DOMAIN_ERRORS:
            raise
        except (RuntimeError, IndexError, TypeError) as error:
            name = str(x.dtype).removeprefix("torch.")
            if "in-place" in str(error):
                raise BnnvizError(
                    "U modifies its argument, or another tensor that derivatives need, in place"
                    f" ({first_line(error)}); create new tensors, as in x = 2 * x.",
                    "target",
                ) from error
            if not is_of_precision(error):
                self._refuse_single(x, given, error)
                raise
            raise BnnvizError(
                f"U cannot compute in {name} ({first_line(error)}): its own tensors have another precision; cast"
                " them to x.dtype, or pass their precision by dtype='float32' or 'float64'.",
                "dtype",
            ) from error

    def _refuse_single(self, x: Tensor, given: Any, error: Exception) -> None:
        """Raise if the function rejects states (chains, dim) but returns one number for a single state."""
        one = {name: each[0] for name, each in given.items()} if isinstance(given, dict) else given[0]
        try:
            value = self.function(one)
        except Exception:  # noqa: BLE001 - whatever the caller's own code raises
            return
        if not isinstance(value, Tensor) or value.numel() != 1:
            return
        try:
            torch.func.vmap(self.function)(given)
            remedy = "torch.func.vmap(function)"
        except Exception:  # noqa: BLE001 - of what vmap cannot compute, such as a branch on a value
            remedy = "lambda x: torch.stack([function(each) for each in x])"
        raise BnnvizError(
            f"Your function takes a single state: for the states of all chains, shape {tuple(x.shape)}, it raises"
            f" {type(error).__name__} ({first_line(error)}); use {remedy} instead.",
            "target",
        ) from error

    def checked(self, value: Any, x: Tensor) -> Tensor:
        """Return values at x (chains, dim) after checking that they are real, with shape (chains,)."""
        if not isinstance(value, Tensor) or value.shape != x.shape[:1]:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise BnnvizError(
                f"Your function returned {shape} for an input of shape {tuple(x.shape)};"
                f" it must return one value per chain, shape ({x.shape[0]},). A row of the input is a chain's"
                " state: use x[..., 0] for the first coordinate and .sum(-1) for sums, or pass"
                " torch.func.vmap(function) if your function takes a single state.",
                "target",
            )
        if value.is_complex():
            raise BnnvizError(
                "Your function returned complex numbers, but U must be real; return the real part, as in value.real.",
                "target",
            )
        if value.is_floating_point() and torch.finfo(value.dtype).eps > torch.finfo(x.dtype).eps:
            rough, fine = (str(each.dtype).removeprefix("torch.") for each in (value, x))
            other = ", or sample with dtype='float32'" if value.dtype == torch.float32 else ""
            raise BnnvizError(
                f"Your function returned {rough} for states of {fine}; moves are accepted by differences of U, which"
                f" this rounds too much. Compute in x.dtype{other}.",
                "dtype",
            )
        return value

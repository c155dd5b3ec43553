"""Use any function of outputs and observations as a log likelihood, after trials."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor

from bnnviz.errors import BnnvizError
from bnnviz.targets.likelihoods.base import Likelihood
from bnnviz.targets.user_code import blaming, check_rows, close

log = logging.getLogger(__name__)

_FAR = (10.0, 100.0, 1000.0)  # distances by which outputs are moved, in random directions
_GAIN = 10.0  # increase of a row's log likelihood far away that indicates a wrong sign
_BEYOND = 50.0  # distance from the tried outputs that a run may reach
_UNDEFINED = (
    "The log likelihood is not finite at the output {} and the observation {}; it must be finite for every output, and"
    " positive parameters are f.exp() or softplus(f)."
)
_STEEP = (
    "The gradient of the log likelihood is not finite at the output {} and the observation {}, although its value is:"
    " with torch.where, both branches need valid arguments, as in torch.where(ok, f, 1).log()."
)


class OwnLikelihood(Likelihood):
    """Likelihood defined by a function that returns one log density per row.

    Parameters
    ----------
    function : callable
        Function in torch that maps outputs (rows, outputs) and observations (rows,) or (rows, columns) to log densities
        (rows,). Integer observations are not converted.

    Examples
    --------
    >>> import torch
    >>> from bnnviz.targets import likelihoods
    >>> own = likelihoods.OwnLikelihood(lambda f, y: -(y - f[:, 0]).abs())
    >>> own.log_density(torch.zeros(2, 3, 1), torch.ones(3)).tolist()
    [[-1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]]
    """

    name = "callable"
    task = "outputs"

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.function = function
        self._one_by_one = False
        if inspect.isclass(function):
            raise BnnvizError(
                f"log_likelihood is the class {function.__name__}; give an instance, or a function.", "likelihood"
            )

    def fitted(self, y: Tensor) -> Self:
        """Return the likelihood with the number of observed columns."""
        made = type(self)(self.function)
        made.columns = y.shape[1]
        return made

    def kept(self, y: Tensor) -> Tensor:
        """Return integers unchanged, and other numbers in double precision."""
        y = y.double() if y.is_floating_point() else y.long()
        return y[:, 0] if self.columns == 1 else y

    def width(self) -> tuple[int | None, str]:
        """Return the number of outputs, which is arbitrary."""
        return None, "(rows, outputs)"

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log densities (chains, rows), or nan for non-finite outputs."""
        own_rows = y.ndim > (1 if self.columns == 1 else 2)
        finite = torch.isfinite(f).all(-1)
        f = torch.where(finite[..., None], f, 0.0)
        if self._one_by_one or len(f) == 1:
            found = torch.stack([self.function(one, y[k] if own_rows else y) for k, one in enumerate(f)])
        else:
            found = torch.func.vmap(self.function, in_dims=(0, 0 if own_rows else None))(f, y)
        return torch.where(finite, found, torch.nan)

    def tried(self, f: Tensor, y: Tensor) -> None:
        """Refuse the function, or find how to vectorise it, by trials at outputs (draws, rows, outputs)."""
        one, count = f[0], f.shape[1]
        shapes = f"outputs of shape {tuple(one.shape)} and observations of shape {tuple(y.shape)}"
        with blaming(f"The log likelihood cannot be called on {shapes}: {{}}.", "likelihood"), torch.no_grad():
            found = self.function(one, y)
        if not isinstance(found, Tensor) or found.shape != (count,) or not found.is_floating_point():
            given = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise BnnvizError(
                f"The log likelihood returned {given} for {count} rows; it must return one real number per row, shape"
                f" ({count},), not a sum or mean over rows.",
                "likelihood",
            )
        check_rows("The log likelihood", lambda k: self.function(one[k], y[k])[:, None], count, "likelihood")
        for number, at in enumerate((*f, one - _BEYOND, one + _BEYOND)):
            value, slope = self._with_slope(at, y)
            # An observation may be impossible at other outputs, and far out a density may be undefined.
            allowed = value.isfinite() | (number > 0) & value.isneginf() | (number >= len(f))
            steep = value.isfinite() & ~slope.isfinite().flatten(1).all(1)
            for wrong, sentence in ((~allowed, _UNDEFINED), (steep, _STEEP)):
                if bool(wrong.any()):
                    row = int(wrong.nonzero()[0, 0])
                    raise BnnvizError(sentence.format(at[row].tolist(), y[row].tolist()), "likelihood")
            if number == 0 and not slope.any():
                raise BnnvizError(
                    "The log likelihood does not depend on the outputs in a differentiable way; compute it from them"
                    " in torch, without detach, torch.no_grad or NumPy.",
                    "likelihood",
                )
        self._one_by_one = not self._maps(f, y)

    def _with_slope(self, f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values (rows,) and their derivatives by the outputs."""
        with torch.enable_grad():
            at = f.detach().requires_grad_(True)
            value = self.function(at, y)
            if not value.requires_grad:
                return value, torch.zeros_like(f)
            return value.detach(), torch.autograd.grad(value.sum(), at, materialize_grads=True)[0]

    def is_loss(self, f: Tensor, y: Tensor) -> bool:
        """Return whether the likelihood increases far from given outputs (rows, outputs)."""
        away = torch.randn(f.shape, generator=torch.Generator().manual_seed(0)).to(f)
        for side in (-1.0, 1.0):
            with torch.no_grad():
                means = torch.stack([self.function(f + side * size * away, y).double().mean() for size in _FAR])
            if not bool((means.diff() > 0).all()) or float(means[-1] - means[0]) < _GAIN:
                return False
        return True

    def _maps(self, f: Tensor, y: Tensor) -> bool:
        """Return whether `torch.func.vmap` gives the same results as single calls."""
        with torch.no_grad():
            single = torch.stack([self.function(one, y) for one in f])
            try:
                mapped = torch.func.vmap(self.function, in_dims=(0, None))(f, y)
            except Exception:  # not supported by vmap, such as a branch on a value
                log.debug("The log likelihood is computed for one chain after another.", exc_info=True)
                return False
        return mapped.shape == single.shape and close(mapped, single)

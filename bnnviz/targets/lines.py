r"""Check along lines whether a function changes as its gradient predicts.

Between two points a and b

.. math:: f(b) - f(a) = \int_0^1 \nabla f(a + t (b - a)) \cdot (b - a) \, dt,

unless f jumps between them, or the gradient is wrong. Each line is halved repeatedly, keeping the half with the larger
mismatch: a mismatch that persists is a jump; one that falls with the length is spread along the line.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import torch
from torch import Tensor

_POINTS = 48  # of the midpoint rule; half as many for its error estimate
_OFF, _UNSETTLED = 0.05, 2.0  # tolerances: share of the total variation of f; factor on the error estimate
_HALVINGS = 12
_STAYS = 0.02  # share of a mismatch that remains at a jump (one of several); otherwise it falls to 1/4096
_POLE = 10.0
_ROUNDING = 20.0  # of f, in units of its precision


class Fit(Enum):
    """How a function changes along a line: as its gradient predicts, with an additional jump, or otherwise."""

    RIGHT = "right"
    JUMP = "jump"
    OTHERWISE = "otherwise"


Differentiated = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From points (n, dim) to values (n,) and gradients (n, dim)."""


def fits(function: Differentiated, start: Tensor, end: Tensor, least: float) -> list[Fit]:
    """Return how a function changes along each line from start (n, dim) to end (n, dim)."""
    return [_fit(function, a, b, least) for a, b in zip(start, end, strict=True)]


def _fit(function: Differentiated, a: Tensor, b: Tensor, least: float) -> Fit:
    whole = part = _mismatch(function, a, b)
    if not whole.is_off or abs(whole.size) < least:
        return Fit.RIGHT
    for _ in range(_HALVINGS):
        middle = (a + b) / 2
        halves = [(_mismatch(function, *ends), ends) for ends in ((a, middle), (middle, b))]
        part, (a, b) = max(halves, key=lambda half: abs(half[0].size))
    if part.largest > _POLE * (whole.largest + abs(whole.size)):
        return Fit.RIGHT  # up to quadrature: f has a pole
    if abs(part.size) > _STAYS * abs(whole.size):
        return Fit.JUMP
    return Fit.OTHERWISE if part.is_off else Fit.RIGHT


class _Mismatch(NamedTuple):
    """The change not explained by the gradient, whether it exceeds quadrature and rounding errors, and max |f|."""

    size: float
    is_off: bool
    largest: float


def _mismatch(function: Differentiated, a: Tensor, b: Tensor) -> _Mismatch:
    way = b - a
    shares = torch.cat([(torch.arange(n, dtype=a.dtype, device=a.device) + 0.5) / n for n in (_POINTS, _POINTS // 2)])
    points = torch.cat([torch.stack([a, b]), a + shares[:, None] * way])
    values, slopes = (part.double() for part in function(points))
    rates = (slopes[2:] * way).sum(-1)
    if not (torch.isfinite(values[:2]).all() and torch.isfinite(rates).all()):
        return _Mismatch(0.0, False, 0.0)
    fine, coarse, change = rates[:_POINTS].mean(), rates[_POINTS:].mean(), values[1] - values[0]
    scale = rates[:_POINTS].abs().mean() + change.abs()
    off = (change - fine).abs()
    rounding = _ROUNDING * torch.finfo(a.dtype).eps * values[:2].abs().max()
    quadrature = _OFF * scale + _UNSETTLED * (fine - coarse).abs()
    is_off = bool((off > quadrature) & (off > rounding))
    return _Mismatch(float(change - fine), is_off, float(values.abs().max()))

r"""Record a function of a point as a list of operations on numbers, and compute it with its gradient in C++.

A function that loops over a time series has thousands of operations on a few numbers each. PyTorch takes microseconds
for each, and more for its derivative; C++ takes nanoseconds. To record a function, it is called once with a tensor of
operation numbers instead of values. Recording fails if the function reads a value, as an ``if`` on a tensor does, or
uses an unsupported operation; PyTorch then computes it.

Private interfaces of PyTorch, tested with torch 2.13: ``Tensor._make_wrapper_subclass``,
``torch._C._disabled_torch_function_impl``, ``OpOverload.decompose``, ``torch.utils._pytree``,
``Distribution._validate_args``.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.utils._pytree import tree_leaves

from bnnviz import cpp
from bnnviz.targets.native import NativeGradient
from bnnviz.targets.traced import is_traced

log = logging.getLogger(__name__)

_SOURCE = Path(__file__).with_suffix(".cpp")
# In the order of the C++ code.
_OPERATIONS = (
    *("add", "sub", "mul", "div", "pow", "maximum", "minimum", "atan2", "lt", "le", "eq", "where"),
    *("neg", "abs", "sign", "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "sigmoid", "atan", "erf"),
    *("lgamma", "digamma"),
)
_VIEWS = {
    *("alias", "clone", "detach", "diagonal", "expand", "flip", "gather", "index", "index_select", "permute", "repeat"),
    *("roll", "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold"),
    *("unsqueeze", "_unsafe_view", "view", "_reshape_alias"),
}
_CONSTANTS = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
_IN_PLACE = {"add_", "sub_", "mul_", "div_", "neg_", "exp_"}
_MOST = 200_000  # maximum number of operations
# Number of operations per point that C++ computes in the overhead of a PyTorch call with its derivative.
_PER_CALL = 500
_POINTS = 6  # for the comparison with PyTorch


class NotRecordedError(Exception):
    """The function cannot be recorded."""


class _Recorded(Tensor):
    """A tensor of operation numbers, which represent the results of operations."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, recorder: _Recorder, numbers: Tensor, dtype: torch.dtype) -> _Recorded:
        made = Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=dtype)
        made.recorder, made.numbers = recorder, numbers
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        recorder = next(each.recorder for each in tree_leaves((args, kwargs)) if isinstance(each, _Recorded))
        return recorder.call(func, args, kwargs or {})


class _Recorder:
    """The operations of a function of one point; constants have negative numbers."""

    def __init__(self, dim: int) -> None:
        self.calls, self.count = 0, dim
        self.constants: dict[float, int] = {}
        self.rows: list[Tensor] = []  # (operations, 4): operation and arguments

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Record a call of PyTorch, without the calls inside it."""
        count = self.calls + 1
        found = self._call(func, args, kwargs)
        self.calls = count
        return found

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func.__name__.split(".")[0]
        own = isinstance(args[0], _Recorded)
        if name in _COMPOSITES:
            return _COMPOSITES[name](*args, **kwargs)
        if name in _OPERATIONS:
            return self.operation(name, *args, **kwargs)
        if name in _IN_PLACE and own:
            # Views of a tensor are views of its numbers, so writes work as well.
            args[0].numbers.copy_(self.operation(name[:-1], *args[:2], **kwargs).numbers)
            return args[0]
        if name == "copy_" and own:
            args[0].numbers.copy_(self.numbers(args[1]))
            return args[0]
        if name in _VIEWS and own:
            found = func(args[0].numbers, *args[1:], **kwargs)
            if isinstance(found, Tensor):
                return _Recorded(self, found, args[0].dtype)
            return [_Recorded(self, each, args[0].dtype) for each in found]
        if name in ("cat", "stack"):
            found = func([self.numbers(part) for part in args[0]], *args[1:], **kwargs)
            return _Recorded(self, found, functools.reduce(torch.promote_types, (part.dtype for part in args[0])))
        if name == "_to_copy":
            return self._cast(args[0], kwargs.get("dtype") or args[0].dtype)
        if name in _CONSTANTS:
            found = func(torch.empty(args[0].shape, dtype=args[0].dtype), *args[1:], **kwargs)
            return _Recorded(self, self.numbers(found), found.dtype)
        found = func.decompose(*args, **kwargs)
        if found is NotImplemented:
            raise NotRecordedError(name)
        return found

    def operation(self, name: str, *args: Any, alpha: float = 1, **kwargs: Any) -> _Recorded:
        """Record an elementwise operation on tensors."""
        if kwargs:
            raise NotRecordedError(f"{name} with {', '.join(kwargs)}")
        args = args if alpha == 1 else (args[0], args[1] * alpha)
        kinds = args[-2:]
        dtype = torch.bool if name in ("lt", "le", "eq") else torch.result_type(kinds[0], kinds[-1])
        numbers = torch.broadcast_tensors(*(self.numbers(each) for each in args))
        size = numbers[0].numel()
        row = torch.zeros(size, 4, dtype=torch.int64)
        row[:, 0] = _OPERATIONS.index(name)
        for column, each in enumerate(numbers, 1):
            row[:, column] = each.reshape(-1)
        self.rows.append(row)
        made = torch.arange(self.count, self.count + size).reshape(numbers[0].shape)
        self.count += size
        if self.count > _MOST:
            raise NotRecordedError("too many operations")
        return _Recorded(self, made, dtype)

    def numbers(self, value: Any) -> Tensor:
        """Return the operation numbers of a tensor or a number."""
        if isinstance(value, _Recorded):
            return value.numbers
        if not isinstance(value, Tensor):
            value = torch.tensor(value, dtype=torch.float64)
        if value.is_complex():
            raise NotRecordedError("a complex number")
        known = self.constants
        found = [known.setdefault(each, ~len(known)) for each in value.detach().double().reshape(-1).tolist()]
        return torch.tensor(found, dtype=torch.int64).reshape(value.shape)

    def _cast(self, value: _Recorded, dtype: torch.dtype) -> _Recorded:
        if not dtype.is_floating_point and dtype != value.dtype:
            raise NotRecordedError("a cast that rounds")
        return _Recorded(self, value.numbers.clone(), dtype)


def _fold(name: str, nothing: float, x: Tensor, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Tensor:
    """Reduce the elements along axes by an operation, in a binary tree."""
    axes = sorted((axis % x.ndim for axis in ([dim] if isinstance(dim, int) else dim or range(x.ndim))), reverse=True)
    for axis in axes:
        x = x.movedim(axis, 0)
        while len(x) > 1:
            half = len(x) // 2
            both = getattr(torch, name)(x[:half], x[half : 2 * half])
            x = torch.cat([both, x[2 * half :]]) if len(x) % 2 else both
        x = (x if len(x) else x.new_full((1, *x.shape[1:]), nothing)).movedim(0, axis)
    return x if keepdim else functools.reduce(Tensor.squeeze, axes, x)


def _mean(x: Tensor, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Tensor:
    found = torch.sum(x, dim, keepdim=keepdim)
    return found * (max(found.numel(), 1) / x.numel())


def _power(x: Any, exponent: Any) -> Tensor:
    powers = {
        1: lambda: x * 1,
        2: lambda: x * x,
        3: lambda: x * x * x,
        0.5: lambda: torch.sqrt(x),
        -1: lambda: torch.reciprocal(x),
    }
    if isinstance(exponent, int | float) and exponent in powers:
        return powers[exponent]()
    return (x if isinstance(x, _Recorded) else exponent).recorder.operation("pow", x, exponent)


def _clamp(x: Tensor, least: Any = None, most: Any = None, **limits: Any) -> Tensor:
    least, most = limits.get("min", least), limits.get("max", most)
    x = x if least is None else torch.maximum(x, torch.as_tensor(least, dtype=x.dtype))
    return x if most is None else torch.minimum(x, torch.as_tensor(most, dtype=x.dtype))


def _log_sum_exp(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    most = torch.amax(x, dim, keepdim=True)
    most = torch.where(most.abs() == math.inf, 0.0, most)
    found = torch.log(torch.sum(torch.exp(x - most), dim, keepdim=True)) + most
    return found if keepdim else torch.sum(found, dim)  # over axes of length one


def _soft_plus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    x = x * beta
    return (torch.clamp(x, min=0.0) + torch.log1p(torch.exp(-x.abs()))) / beta


def _variance(x: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    off = torch.sum(torch.square(x - torch.mean(x, dim, keepdim=True)), dim, keepdim=keepdim)
    count = x.numel() / max(off.numel(), 1)
    return off / (count - (1 if correction is None else correction))


def _cumulate(name: str, x: Tensor, dim: int, **kwargs: Any) -> Tensor:
    return torch.stack(list(itertools.accumulate(torch.unbind(x, dim), getattr(torch, name))), dim)


def _pad(x: Any, widths: list[int], value: float = 0.0) -> Tensor:
    numbers = torch.nn.functional.pad(x.numbers, widths, value=int(x.recorder.numbers(value)))
    return _Recorded(x.recorder, numbers, x.dtype)


def _log_add_exp(a: Tensor, b: Tensor) -> Tensor:
    return torch.logsumexp(torch.stack(torch.broadcast_tensors(a, b)), 0)


_COMPOSITES: dict[str, Callable[..., Any]] = {
    "sum": functools.partial(_fold, "add", 0.0),
    "prod": functools.partial(_fold, "mul", 1.0),
    "amax": functools.partial(_fold, "maximum", -math.inf),
    "amin": functools.partial(_fold, "minimum", math.inf),
    "mean": _mean,
    "var": _variance,
    "cumsum": functools.partial(_cumulate, "add"),
    "cumprod": functools.partial(_cumulate, "mul"),
    "pow": _power,
    "rsub": lambda a, b, alpha=1: -a * alpha + b,
    "reciprocal": lambda x: x.recorder.operation("div", 1.0, x),
    "rsqrt": lambda x: torch.reciprocal(torch.sqrt(x)),
    "erfc": lambda x: 1 - torch.erf(x),
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": lambda x, most: _clamp(x, None, most),
    "relu": lambda x: _clamp(x, 0.0),
    "addcmul": lambda x, a, b, value=1: x + value * a * b,
    "addcdiv": lambda x, a, b, value=1: x + value * a / b,
    "gt": lambda a, b: torch.lt(torch.as_tensor(b), a),
    "ge": lambda a, b: torch.le(torch.as_tensor(b), a),
    "ne": lambda a, b: torch.logical_not(torch.eq(a, b)),
    "logical_not": lambda a: torch.eq(a, 0),
    "bitwise_not": lambda a: torch.eq(a, 0),
    "logical_and": lambda a, b: a * b,
    "bitwise_and": lambda a, b: a * b,
    "logical_or": torch.maximum,
    "bitwise_or": torch.maximum,
    "logsumexp": _log_sum_exp,
    "logaddexp": _log_add_exp,
    "_log_softmax": lambda x, dim, _: x - torch.logsumexp(x, dim, keepdim=True),
    "_softmax": lambda x, dim, _: torch.exp(x - torch.logsumexp(x, dim, keepdim=True)),
    "softplus": _soft_plus,
    "log_sigmoid_forward": lambda x: (-_soft_plus(-x), x),
    "xlogy": lambda a, b: torch.where(torch.eq(a, 0), 0.0, a * torch.log(b)),
    "constant_pad_nd": _pad,
    "masked_fill": lambda x, mask, value: torch.where(mask, value, x),
    "mm": lambda a, b: torch.sum(a[:, :, None] * b, 1),
    "bmm": lambda a, b: torch.sum(a[:, :, :, None] * b[:, None], 2),
    "mv": lambda a, b: torch.sum(a * b, 1),
    "dot": lambda a, b: torch.sum(a * b),
    "addmm": lambda x, a, b: x + torch.mm(a, b),
}


class _Operations(ctypes.Structure):
    """``Tape`` of tape.cpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("dim", "constants", "operations", "in_float64")),
        *((name, ctypes.c_void_p) for name in ("constant", "operation", "arguments")),
    ]


class Tape:
    """The operations of a function (points, dim) -> (points,), and its gradient in C++."""

    def __init__(self, recorder: _Recorder, result: _Recorded, dim: int, dtype: torch.dtype, library: Any) -> None:
        constants, rows = list(recorder.constants), torch.cat(recorder.rows)
        # The numbers of constants follow those of coordinates; the function's value is the last operation.
        numbers = rows[:, 1:]
        numbers = torch.where(numbers < 0, dim + ~numbers, numbers + (numbers >= dim) * len(constants))
        self._constants = torch.tensor(constants, dtype=torch.float64)
        self._operation, self._arguments = rows[:, 0].int().contiguous(), numbers.int().contiguous()
        self._dim, self._dtype, self.calls = dim, dtype, recorder.calls
        places = (each.data_ptr() for each in (self._constants, self._operation, self._arguments))
        self._operations = _Operations(dim, len(constants), len(rows), dtype == torch.float64, *places)
        self._derive = library.derive_tape
        self._derive.restype = None
        self._derive.argtypes = [ctypes.POINTER(_Operations), ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 5]

    def __reduce__(self) -> tuple:
        return type(None), ()  # copies of a target use PyTorch until a run records them

    def suits(self, x: Tensor) -> bool:
        """Return whether C++ can compute the gradient at x (points, dim), and no slower than PyTorch."""
        return (
            x.dtype is self._dtype
            and x.device.type == "cpu"
            and x.shape[1] == self._dim
            and self._operations.operations * len(x) <= _PER_CALL * self.calls
            and type(x) is Tensor
            and not x.requires_grad
            and not is_traced()
        )

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the function's value (points,) and its gradient (points, dim)."""
        x = x.contiguous()
        value, gradient = x.new_empty(len(x)), torch.empty_like(x)
        places = (each.data_ptr() for each in (value, gradient))
        self._derive(self._operations, None, len(x), x.data_ptr(), None, *places, None)
        return value, gradient

    def function(self) -> NativeGradient:
        """Return value and gradient as a C function of the points."""
        made = NativeGradient(ctypes.cast(self._derive, ctypes.c_void_p), ctypes.addressof(self._operations), None)
        made.held = self
        return made


def record(
    function: Callable[[Tensor], Tensor],
    differentiated: Callable[[Tensor], tuple[Tensor, Tensor]],
    dim: int,
    dtype: torch.dtype,
    waits: bool,
) -> Tape | None:
    """Return a function's tape; None if it cannot be recorded, is not faster, or differs from PyTorch."""
    recorder = _Recorder(dim)
    x = torch.randn(_POINTS, dim, dtype=dtype, generator=torch.Generator().manual_seed(0))
    x *= torch.logspace(-2, 1, _POINTS)[:, None]
    try:
        with torch.no_grad(), _without_checks():
            result = function(_Recorded(recorder, torch.arange(dim)[None], dtype)) + 0.0
        known = differentiated(x)
    except Exception as error:  # noqa: BLE001 - whatever a function may raise of a tensor without values
        log.debug("PyTorch computes the function, because its operations cannot be recorded: %s", error)
        return None
    if not isinstance(result, _Recorded) or recorder.count > _PER_CALL * recorder.calls:
        return None
    library = (cpp.library if waits else cpp.library_if_kept)(_SOURCE)
    if library is None:
        return None
    tape = Tape(recorder, result, dim, dtype, library)
    if not all(map(_agree, tape.gradient(x), known)):
        log.debug("PyTorch computes the function, because the derivatives of its recorded operations differ.")
        return None
    return tape


@contextmanager
def _without_checks() -> Iterator[None]:
    """Disable the parameter checks of distributions; invalid parameters then give nan."""
    checks = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(checks)


def _agree(one: Tensor, other: Tensor) -> bool:
    """Return whether values or gradients at points (points, ...) are equal up to rounding."""
    tolerance = torch.finfo(one.dtype).eps ** (1 / 3)
    one, other = one.reshape(_POINTS, -1), other.reshape(_POINTS, -1)
    sizes = other.nan_to_num(0.0, 0.0, 0.0).abs().amax(1, keepdim=True)
    close = torch.isclose(one, other, equal_nan=True) | ((one - other).abs() <= tolerance * sizes)
    return bool(close.all())

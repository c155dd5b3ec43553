"""Compute the derivatives of a small multilayer perceptron's posterior in C++, in one call for all chains.

The equations are those of `bnnviz.targets.mlp_gradients`, with likelihood and prior. PyTorch's overhead for dozens of
small operations exceeds their arithmetic: fifteen times for one input, 50 units and one output.
"""

from __future__ import annotations

import ctypes
import logging
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bnnviz import cpp
from bnnviz.targets import likelihoods
from bnnviz.targets.minibatch import Rows
from bnnviz.targets.native import NativeGradient
from bnnviz.targets.traced import is_traced

log = logging.getLogger(__name__)

_SOURCE = Path(__file__).with_suffix(".cpp")
_HEADERS = (Path(__file__).with_name("mlp_vectors.hpp"),)
_ACTIVATIONS = ("identity", "tanh", "relu", "sigmoid", "silu")  # in the order of the C++
_GAUSSIAN, _GAUSSIAN_LEARNED, _BERNOULLI, _CATEGORICAL = range(4)
# Above, PyTorch's matrix products are as fast.
_WIDEST = 256
# Multiply-adds of a gradient above which several threads are faster than one.
_THREADED_WORK = 10_000_000
_COMPARED = 50  # rows
_WHOLE, _REAL, _PLACE = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p


class _NativeLayer(ctypes.Structure):
    _fields_ = [(name, _WHOLE) for name in ("inputs", "outputs", "weight", "bias", "activation", "path")]


class _NativeNetwork(ctypes.Structure):
    _fields_ = [
        ("layers", ctypes.POINTER(_NativeLayer)),
        *((name, _WHOLE) for name in ("count", "weights", "learned", "dim", "likelihood", "in_float64")),
        *((name, _REAL) for name in ("precision", "log_sd", "prior_precision")),
        ("scale", _PLACE),
        ("group", _PLACE),
    ]


class _NativeRows(ctypes.Structure):
    _fields_ = [("count", _WHOLE), ("each", _WHOLE), ("weight", _REAL), ("x", _PLACE), ("y", _PLACE)]


class NativeDerivatives:
    """U of a network's weights, its gradient and directional curvature, in C++."""

    def __init__(self, target: Any, library: ctypes.CDLL) -> None:
        self._dtype, self._inputs, self._dim = target.dtype, target.layers[0].inputs, target.dim
        kind = likelihood_number(target.likelihood)
        self._y_dtype = torch.int64 if kind == _CATEGORICAL else target.dtype
        prior = target.weight_prior
        self._scale, self._group = (None, None) if prior is None else (prior.scale, prior.group)
        self.curves = self._group is None
        layers = [
            _NativeLayer(
                each.inputs,
                each.outputs,
                each.weight,
                -1 if each.bias is None else each.bias,
                _ACTIVATIONS.index(each.activation),
                -1 if each.path is None else each.path,
            )
            for each in target.layers
        ]
        sd = target.likelihood.scales[0] if kind in (_GAUSSIAN, _GAUSSIAN_LEARNED) else 1.0
        self._layers = (_NativeLayer * len(layers))(*layers)
        self._network = _NativeNetwork(
            self._layers,
            len(layers),
            target.weights,
            len(target.scale_names),
            target.dim,
            kind,
            target.dtype == torch.float64,
            sd**-2,
            math.log(sd),
            target.prior_precision,
            None if self._scale is None else self._scale.data_ptr(),
            None if self._group is None else self._group.data_ptr(),
        )
        self._derive = library.derive_perceptron
        self._derive.restype = None
        places = [_PLACE] * 5
        self._derive.argtypes = [ctypes.POINTER(_NativeNetwork), ctypes.POINTER(_NativeRows), _WHOLE, *places]

    def __reduce__(self) -> tuple:
        return type(None), ()  # copies of a target use PyTorch until a run calls `use_native`

    def suit(self, theta: Tensor, rows: Rows) -> bool:
        """Return whether derivatives at states (chains, dim) are available, which tracing prevents, and not slower."""
        x, y = rows.x, rows.y
        return (
            theta.dtype is x.dtype is self._dtype
            and y.dtype is self._y_dtype
            and theta.device.type == "cpu"
            and not theta.requires_grad
            and theta.shape[1] == self._dim
            and x.shape[-1] == self._inputs
            and x.ndim == y.ndim + 1
            and (torch.get_num_threads() == 1 or len(theta) * y.shape[-1] * self._dim < _THREADED_WORK)
            and not is_traced()
            and _has_memory(theta)
        )

    def gradient(self, theta: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """Return U (chains,) and its gradient (chains, dim)."""
        theta = theta.contiguous()
        potential, gradient = theta.new_empty(len(theta)), torch.empty_like(theta)
        self._call(rows, theta, None, potential, gradient, None)
        return potential, gradient

    def curvature(self, theta: Tensor, v: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
        """Return U (chains,), its gradient (chains, dim) and v' H v (chains,)."""
        theta, v = theta.contiguous(), v.contiguous()
        potential, curvature = theta.new_empty(2, len(theta)).unbind()
        gradient = torch.empty_like(theta)
        self._call(rows, theta, v, potential, gradient, curvature)
        return potential, gradient, curvature

    def function(self, rows: Rows) -> NativeGradient:
        """Return U and its gradient as a C function of the states, with these rows."""
        rows = Rows(rows.x.contiguous(), rows.y.contiguous(), rows.weight)
        seen = _seen(rows)
        derive = ctypes.cast(self._derive, _PLACE)
        made = NativeGradient(derive, ctypes.addressof(self._network), ctypes.addressof(seen))
        made.held = self, rows, seen
        return made

    def _call(self, rows: Rows, theta: Tensor, v: Tensor | None, *found: Tensor | None) -> None:
        rows = Rows(rows.x.contiguous(), rows.y.contiguous(), rows.weight)
        seen = _seen(rows)
        places = [None if each is None else each.data_ptr() for each in (theta, v, *found)]
        self._derive(self._network, seen, len(theta), *places)


def _has_memory(theta: Tensor) -> bool:
    """Return whether a tensor has storage; tensors inside torch.func transformations do not."""
    try:
        return type(theta) is Tensor and theta.data_ptr() is not None
    except RuntimeError:
        return False


def _seen(rows: Rows) -> _NativeRows:
    """Return pointers to contiguous rows."""
    count = rows.y.shape[-1]
    return _NativeRows(count, count if rows.y.ndim > 1 else 0, rows.weight, rows.x.data_ptr(), rows.y.data_ptr())


def likelihood_number(likelihood: likelihoods.Likelihood) -> int | None:
    """Return the number of a likelihood in the C++ code, or None."""
    if type(likelihood) is likelihoods.Normal and likelihood.columns == 1:
        return _GAUSSIAN_LEARNED if likelihood.parameters else _GAUSSIAN
    return {likelihoods.Bernoulli: _BERNOULLI, likelihoods.Categorical: _CATEGORICAL}.get(type(likelihood))


def derivatives(target: Any, waits: bool) -> NativeDerivatives | None:
    """Return the derivatives of a target in C++, or None."""
    if (
        target.layers is None
        or target.widest > _WIDEST
        or target.device.type != "cpu"
        or target.dtype not in (torch.float32, torch.float64)
        or likelihood_number(target.likelihood) is None
    ):
        return None
    found = library(waits)
    made = None if found is None else NativeDerivatives(target, found)
    return made if made is not None and _agree(made, target) else None


def _agree(made: NativeDerivatives, target: Any) -> bool:
    """Return whether C++ and PyTorch derivatives agree on a few rows, to detect compiler errors."""
    x, y, weight = target.all_rows()
    rows = Rows(x[:_COMPARED], y[:_COMPARED], weight)
    theta = torch.randn(2, target.dim, dtype=target.dtype, generator=torch.Generator().manual_seed(0))
    if not made.suit(theta, rows):
        return True  # it will not be used
    tolerance = math.sqrt(torch.finfo(target.dtype).eps)
    for one, other in zip(made.gradient(theta, rows), target.gradient_on(theta, rows), strict=True):
        if not float((one - other).abs().max()) <= tolerance * float(other.abs().max()):
            log.warning("The derivatives of %s differ from PyTorch's, which are used instead.", _SOURCE.name)
            return False
    return True


def library(waits: bool) -> ctypes.CDLL | None:
    """Return the compiled C++ library, or None; ``waits`` as in `derivatives`."""
    return (cpp.library if waits else cpp.library_if_kept)(_SOURCE, _HEADERS, _options())


def _options() -> list[str]:
    """Return compiler options, with the vector extensions that PyTorch has detected."""
    vectors = ["-mavx2", "-mfma"] if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512") else []
    return ["-ffp-contract=fast", *vectors]

"""Wrap the private interfaces of PyTorch that compiled steps need. No other module of the package uses any.

Tested with torch 2.13. They are:

- ``torch.fx.experimental.proxy_tensor.make_fx``, which traces a function operation by operation;
- ``torch._inductor.aot_compile``, which compiles a traced program to a shared library;
- the C functions ``AOTInductorModelContainer*`` of that library;
- the C functions ``aoti_torch_*`` of PyTorch, which the library is linked to.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

from bnnviz.targets.traced import tracing

_HANDLE, _WHOLE = ctypes.c_void_p, ctypes.c_int64


def traced(function: Callable[..., list[Tensor]], examples: Sequence[Tensor]) -> fx.GraphModule:
    """Return the operations of a function of tensors as a program."""
    from torch.fx.experimental.proxy_tensor import make_fx  # takes a second

    with tracing():
        return make_fx(function)(*examples)


def compile_library(source: Path, threads: int, path: Path) -> None:
    """Compile a file with a traced program and examples of its inputs to a shared library, for a number of threads."""
    from torch._inductor import aot_compile  # before the program is read, which needs it

    program, examples = torch.load(source, weights_only=False)
    exported = torch.export.export(program, tuple(examples), strict=False).module()
    aot_compile(exported, tuple(examples), options={"aot_inductor.output_path": str(path), "cpp.threads": threads})


class Interface(ctypes.Structure):
    """The C functions that loops over steps call: ``Interface`` of program.hpp."""

    _fields_ = [(name, _HANDLE) for name in ("run", "share", "address", "drop")]


class Program:
    """A compiled program, called by its C interface."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._types: dict[torch.dtype, int] = {}
        self.container = _HANDLE()
        one = ctypes.c_size_t(1)
        self._call("AOTInductorModelContainerCreateWithDevice", ctypes.byref(self.container), one, b"cpu", None)
        # Not at the exit of the process, which destroys PyTorch too.
        weakref.finalize(self, self._library.AOTInductorModelContainerDelete, self.container).atexit = False
        names = (
            "AOTInductorModelContainerRunSingleThreaded",
            "aoti_torch_new_tensor_handle",
            "aoti_torch_get_data_ptr",
            "aoti_torch_delete_tensor_object",
        )
        self.interface = Interface(*(ctypes.cast(self._function(name), _HANDLE) for name in names))

    def _function(self, name: str) -> Any:
        try:
            return getattr(self._library, name)
        except AttributeError as error:
            raise OSError(f"This version of PyTorch has no {name}.") from error

    def _call(self, name: str, *args: Any) -> None:
        if self._function(name)(*args):
            raise OSError(f"{name} failed.")

    def handle(self, tensor: Tensor) -> int:
        """Return a handle of a contiguous tensor; the caller keeps its memory alive and drops the handle."""
        made = _HANDLE()
        if tensor.dtype not in self._types:
            name = str(tensor.dtype).removeprefix("torch.")
            self._types[tensor.dtype] = self._function(f"aoti_torch_dtype_{name}")()
        sizes, strides = ((_WHOLE * tensor.ndim)(*each) for each in (tensor.shape, tensor.stride()))
        where = _HANDLE(tensor.data_ptr()), _WHOLE(tensor.ndim), sizes, strides, _WHOLE(0)
        kind = self._types[tensor.dtype], self._library.aoti_torch_device_type_cpu(), 0
        self._call("aoti_torch_create_tensor_from_blob", *where, *kind, ctypes.byref(made))
        return made.value

    def address(self, handle: int) -> int:
        """Return the address of a handle's numbers."""
        data = _HANDLE()
        self._call("aoti_torch_get_data_ptr", _HANDLE(handle), ctypes.byref(data))
        return data.value

    def drop(self, handles: Iterable[int | None]) -> None:
        """Delete handles; None are skipped."""
        for handle in filter(None, handles):
            self._library.aoti_torch_delete_tensor_object(_HANDLE(handle))


class Handles:
    """Handles of contiguous tensors, which this object keeps alive."""

    def __init__(self, program: Program, tensors: Iterable[Tensor]) -> None:
        self._tensors = list(tensors)
        self.array = (_HANDLE * len(self._tensors))(*map(program.handle, self._tensors))
        weakref.finalize(self, program.drop, self.array).atexit = False


def size_of(tensor: Tensor) -> int:
    """Return the bytes of a tensor's numbers."""
    return math.prod(tensor.shape) * tensor.element_size()

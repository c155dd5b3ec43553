"""Call a compiled program by its C interface, many steps at once, with no Python between them.

A package holds beside the program a loop, which the same compiler has made: over its steps (``step_loop.cpp``), or over
those of a sampler that has a part of its step compiled, and the rest in C++ (``native_step.hpp``).
"""

from __future__ import annotations

import ctypes
import math
import os
import tempfile
import weakref
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bnnviz import cpp

_LOOP = "extra/loop.so"  # in the package
SOURCE = Path(__file__).with_name("step_loop.cpp")
HEADER = Path(__file__).with_name("native_step.hpp")
_WHOLE, _HANDLE = ctypes.c_int64, ctypes.c_void_p
_HANDLES = ctypes.POINTER(_HANDLE)


def add_loop(package: Path, source: Path, compiler: str) -> None:
    """Compile a loop over steps, and add it to the package of a program."""
    with tempfile.TemporaryDirectory(dir=package.parent) as work:
        made = cpp.compiled_library(source, Path(work), compiler, ["-I", str(HEADER.parent), "-march=native"])
        with zipfile.ZipFile(package, "a") as archive:
            # All that PyTorch reads of an archive lies in one folder.
            archive.write(made, f"{archive.namelist()[0].partition('/')[0]}/{_LOOP}")


class Interface(ctypes.Structure):
    """The functions of PyTorch and of a program that the loop calls."""

    _fields_ = [(name, _HANDLE) for name in ("run", "share", "address", "drop")]


class Drawn(ctypes.Structure):
    """Random numbers of every step, and where the program reads those of one."""

    _fields_ = [("numbers", _HANDLE), ("stride", _WHOLE), ("bytes", _WHOLE), ("read_at", _HANDLE)]


class Kept(ctypes.Structure):
    """What is kept of an output: a row for each step."""

    _fields_ = [("output", _WHOLE), ("bytes", _WHOLE), ("rows", _HANDLE)]


class Loop(ctypes.Structure):
    """What the loop needs."""

    _fields_ = [
        ("torch", Interface),
        ("program", _HANDLE),
        *((name, _WHOLE) for name in ("states", "others", "outputs", "drawn", "kept")),
        *((name, _HANDLES) for name in ("state", "taken", "returned")),
        ("draws", ctypes.POINTER(Drawn)),
        ("rows", ctypes.POINTER(Kept)),
        *((name, _WHOLE) for name in ("ends", "ends_from", "ends_to")),
    ]


class KeptVector(ctypes.Structure):
    """A vector of the state that is kept after each step in C++, as a row."""

    _fields_ = [("numbers", _HANDLE), ("rows", _HANDLE), ("bytes", _WHOLE)]


class ToldPart(ctypes.Structure):
    """Where a step in C++ writes a part of what happened."""

    _fields_ = [("rows", _HANDLE), ("stride", _WHOLE)]


class NativeSteps(ctypes.Structure):
    """What steps in C++ need: ``Steps`` of native_step.hpp."""

    _fields_ = [
        ("torch", Interface),
        ("program", _HANDLE),
        *((name, _WHOLE) for name in ("chains", "dim", "in_float64", "inputs", "outputs", "kept", "randoms")),
        *((name, _HANDLES) for name in ("state", "results", "given")),
        *((name, _HANDLE) for name in ("uniforms", "numbers")),
        ("told", ctypes.POINTER(ToldPart)),
        ("rows", ctypes.POINTER(KeptVector)),
        *((name, _HANDLES) for name in ("taken", "returned")),
        ("scale", _HANDLE),
    ]


class NativeProgram:
    """A program and the loop over its steps."""

    def __init__(self, package: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="bnnviz-") as work, zipfile.ZipFile(package) as archive:
            names = archive.namelist()
            programs = [name for name in names if name.endswith(".so") and not name.endswith(_LOOP)]
            loops = [name for name in names if name.endswith(_LOOP)]
            if len(programs) != 1 or len(loops) != 1 or f"{programs[0].removesuffix('.so')}.json" in names:
                raise OSError(f"{package} has no loop over its steps.")
            # What is loaded stays there when its file is gone.
            self._library, self._loop = (ctypes.CDLL(archive.extract(name, work)) for name in (programs[0], loops[0]))
        self.in_cpp = hasattr(self._loop, "take_native")
        self._take = self._loop.take_native if self.in_cpp else self._loop.take_steps
        self._take.restype = _WHOLE
        rest = [_HANDLES, _WHOLE, _WHOLE, _WHOLE] if self.in_cpp else [_HANDLES, _HANDLES, _WHOLE, _WHOLE]
        self._take.argtypes = [ctypes.POINTER(NativeSteps if self.in_cpp else Loop), *rest]
        self._types: dict[torch.dtype, int] = {}
        self._program = _HANDLE()
        one = ctypes.c_size_t(1)
        self._call("AOTInductorModelContainerCreateWithDevice", ctypes.byref(self._program), one, b"cpu", None)
        # Not at the end of the process, when PyTorch is taken down too.
        weakref.finalize(self, self._library.AOTInductorModelContainerDelete, self._program).atexit = False
        self._interface = Interface(
            *(
                ctypes.cast(self._function(name), _HANDLE)
                for name in (
                    "AOTInductorModelContainerRunSingleThreaded",
                    "aoti_torch_new_tensor_handle",
                    "aoti_torch_get_data_ptr",
                    "aoti_torch_delete_tensor_object",
                )
            )
        )

    def _function(self, name: str) -> Any:
        """Return a function of the program, or of PyTorch, which it is linked to."""
        try:
            return getattr(self._library, name)
        except AttributeError as error:
            raise OSError(f"This version of PyTorch has no {name}.") from error

    def _call(self, name: str, *args: Any) -> None:
        if self._function(name)(*args):
            raise OSError(f"{name} failed.")

    def loop(self, **parts: Any) -> Loop:
        """Return what the loop needs, with these parts."""
        return Loop(torch=self._interface, program=self._program, **parts)

    def steps(self, **parts: Any) -> NativeSteps:
        """Return what steps in C++ need, with these parts."""
        return NativeSteps(torch=self._interface, program=self._program, **parts)

    def take_native(self, steps: NativeSteps, inputs: Any, first: bool, row: int, count: int) -> int:
        """Take up to so many steps in C++, fewer where a move ends; return how many."""
        return _told(self._take(ctypes.byref(steps), inputs, first, row, count))

    def take_steps(self, loop: Loop, first: Any, later: Any, row: int, steps: int) -> int:
        """Take up to so many steps, fewer where a move ends; return how many."""
        return _told(self._take(ctypes.byref(loop), first, later, row, steps))

    def call(self, inputs: list[Tensor], like: list[Tensor]) -> list[Tensor]:
        """Return what the program makes of contiguous inputs, in tensors like these."""
        outputs = [torch.empty_like(part, memory_format=torch.contiguous_format) for part in like]
        handles, count = Handles(self, inputs), len(outputs)
        kept = (Kept * count)(*(Kept(at, size_of(part), part.data_ptr()) for at, part in enumerate(outputs)))
        taken, returned = (_HANDLE * len(inputs))(), (_HANDLE * count)()
        loop = self.loop(
            others=len(inputs), outputs=count, kept=count, taken=taken, returned=returned, rows=kept, ends=-1
        )
        self.take_steps(loop, handles.array, handles.array, 0, 1)
        return outputs

    def handle(self, tensor: Tensor) -> int:
        """Return a handle of a contiguous tensor's numbers, which have to stay where they are."""
        dims, made = tensor.ndim, _HANDLE()
        if tensor.dtype not in self._types:
            name = str(tensor.dtype).removeprefix("torch.")
            self._types[tensor.dtype] = self._function(f"aoti_torch_dtype_{name}")()
        sizes, strides = (_WHOLE * dims)(*tensor.shape), (_WHOLE * dims)(*tensor.stride())
        where = _HANDLE(tensor.data_ptr()), _WHOLE(dims), sizes, strides, _WHOLE(0)
        kind = self._types[tensor.dtype], self._library.aoti_torch_device_type_cpu(), 0
        self._call("aoti_torch_create_tensor_from_blob", *where, *kind, ctypes.byref(made))
        return made.value

    def drop(self, handle: int) -> None:
        """Give up a handle."""
        self._library.aoti_torch_delete_tensor_object(_HANDLE(handle))

    def address(self, handle: int) -> int:
        """Return where a handle's numbers lie."""
        data = _HANDLE()
        self._call("aoti_torch_get_data_ptr", _HANDLE(handle), ctypes.byref(data))
        return data.value


class Handles:
    """Handles of contiguous tensors, which it keeps."""

    def __init__(self, program: NativeProgram, tensors: Iterable[Tensor]) -> None:
        self._tensors = list(tensors)
        self.array = (_HANDLE * len(self._tensors))(*map(program.handle, self._tensors))
        weakref.finalize(self, drop_all, program, self.array).atexit = False


def size_of(tensor: Tensor) -> int:
    """Return how many bytes a tensor's numbers take."""
    return math.prod(tensor.shape) * tensor.element_size()


def drop_all(program: NativeProgram, handles: Any) -> None:
    """Give up the handles in an array; there may be none in a place."""
    for handle in filter(None, handles):
        program.drop(handle)


def _told(taken: int) -> int:
    if taken < 0:
        raise RuntimeError("The compiled step has failed.")
    return taken


def loaded(package: Path) -> NativeProgram | None:
    """Return the program of a package with the loop over its steps; None where there is none, or no such system."""
    if os.name != "posix":
        return None
    try:
        return NativeProgram(package)
    except (OSError, zipfile.BadZipFile):
        return None

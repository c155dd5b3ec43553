"""Hand the gradient of a target in C++ to steps that are C++ too."""

from __future__ import annotations

import ctypes


class NativeGradient(ctypes.Structure):
    """A function of C, and what it needs: ``Gradient`` of ``bnnviz/engine/compilation/native_step.hpp``.

    Whoever has it keeps alive what it points to, by ``held``.
    """

    _fields_ = [(name, ctypes.c_void_p) for name in ("derive", "network", "rows")]
    held: object = None

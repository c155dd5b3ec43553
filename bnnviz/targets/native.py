"""Provide the gradient of a target in C++ to steps in C++."""

from __future__ import annotations

import ctypes


class NativeGradient(ctypes.Structure):
    """A C function and its context: ``Gradient`` of ``bnnviz/engine/compilation/native_step.hpp``."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("derive", "network", "rows")]
    held: object = None  # keeps the referenced memory alive

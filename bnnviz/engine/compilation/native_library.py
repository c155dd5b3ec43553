"""Call the C++ of a step.

Whether it can be compiled is decided before the first step, so that a run takes all its steps in the same way.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

from bnnviz import cpp
from bnnviz.engine.compilation.native_program import HEADER, NativeSteps
from bnnviz.targets.native import NativeGradient


class HeldChains:
    """Chains whose steps are taken in halves, between which the caller evaluates what depends on the target."""

    def __init__(self, library: ctypes.CDLL, chains: int) -> None:
        self._before, self._after = library.before_native, library.after_native
        self._chains = ctypes.c_void_p(chains)

    def before(self, first: bool) -> None:
        """Do what comes before; ``first`` tells whether something was drawn beforehand."""
        self._before(self._chains, first)

    def after(self, row: int) -> bool:
        """Do what comes after, and keep the step in a row; return whether a move has ended."""
        return self._after(self._chains, row) != 0


class NativeLibrary:
    """The C++ of a step."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.hold_native.restype = ctypes.c_void_p
        library.hold_native.argtypes = [ctypes.POINTER(NativeSteps)]
        library.before_native.restype = library.drop_native.restype = None
        library.before_native.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        library.after_native.restype = ctypes.c_int64
        library.after_native.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        library.drop_native.argtypes = [ctypes.c_void_p]
        library.take_whole.restype = whole = ctypes.c_int64
        library.take_whole.argtypes = [ctypes.POINTER(NativeSteps), ctypes.POINTER(NativeGradient), whole, whole, whole]

    def take_whole(self, steps: NativeSteps, gradient: NativeGradient, first: bool, row: int, count: int) -> int:
        """Take up to so many steps around a gradient, fewer where a move ends; return how many."""
        return self._library.take_whole(ctypes.byref(steps), ctypes.byref(gradient), first, row, count)

    @contextlib.contextmanager
    def held(self, steps: NativeSteps) -> Iterator[HeldChains]:
        """Read where everything lies that steps need, for as long as they are taken."""
        chains = self._library.hold_native(ctypes.byref(steps))
        try:
            yield HeldChains(self._library, chains)
        finally:
            self._library.drop_native(chains)


def library_of(source: Path) -> NativeLibrary | None:
    """Return the library of a step's C++, which is compiled where there is none; None where there is no compiler."""
    # For any processor of its kind: what this one alone can do would not make the few sums faster.
    found = cpp.library(source, [HEADER])
    return None if found is None else NativeLibrary(found)

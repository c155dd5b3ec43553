"""Build the C++ of a step as a library that needs nothing of PyTorch, keep it on disk, and call it.

It is built once, in a second or two, by the compiler of the system. Whether there is one is decided before the first
step, so that a run takes all its steps in the same way.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bnnviz import paths
from bnnviz.engine.compilation.native_program import HEADER, NativeSteps, compiled_loop, remove_oldest
from bnnviz.errors import BnnvizError

log = logging.getLogger(__name__)

_COMPILERS = ("g++", "clang++")
_KEPT = 8  # libraries on disk


class HeldChains:
    """Chains whose steps are taken in halves, between which the caller evaluates what depends on the target.

    Parameters
    ----------
    library : ctypes.CDLL
    chains : int
        Where they lie.
    """

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
    """The C++ of a step.

    Parameters
    ----------
    path : Path

    Raises
    ------
    OSError
        If it cannot be loaded.
    """

    def __init__(self, path: Path) -> None:
        self._library = library = ctypes.CDLL(str(path))
        library.hold_native.restype = ctypes.c_void_p
        library.hold_native.argtypes = [ctypes.POINTER(NativeSteps)]
        library.before_native.restype = library.drop_native.restype = None
        library.before_native.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        library.after_native.restype = ctypes.c_int64
        library.after_native.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        library.drop_native.argtypes = [ctypes.c_void_p]

    @contextlib.contextmanager
    def held(self, steps: NativeSteps) -> Iterator[HeldChains]:
        """Read where everything lies that steps need, for as long as they are taken."""
        chains = self._library.hold_native(ctypes.byref(steps))
        try:
            yield HeldChains(self._library, chains)
        finally:
            self._library.drop_native(chains)


@functools.cache
def library_of(source: Path) -> NativeLibrary | None:
    """Return the library of a step's C++, which is built where there is none; None where there is no compiler."""
    if os.name != "posix":
        return None
    try:
        path = paths.compiled() / f"{_key(source)}.so"
        if not path.is_file():
            _build(source, path)
        return NativeLibrary(path)
    except (OSError, subprocess.CalledProcessError, BnnvizError) as error:  # the last where there is no home folder
        log.debug("%s could not be built: %s", source.name, error)
        return None


def _key(source: Path) -> str:
    """Return a name for a library: the same C++ for the same kind of processor has the same one."""
    text = repr(
        [path.read_text(encoding="utf-8") for path in (source, HEADER)] + [platform.system(), platform.machine()]
    )
    return f"step-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _build(source: Path, path: Path) -> None:
    compiler = os.environ.get("CXX") or next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise FileNotFoundError("no C++ compiler")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bnnviz-", dir=path.parent) as work:
        # For any processor of its kind: what this one alone can do would not make the few sums faster.
        compiled_loop(source, Path(work), compiler).replace(path)
    with contextlib.suppress(OSError):  # another process may do the same
        remove_oldest(path.parent, "*.so", _KEPT)

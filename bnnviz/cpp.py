"""Compile C++ to a library independent of PyTorch, cache it on disk, and load it.

The system's compiler compiles it once, in a few seconds.
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
import threading
from collections.abc import Sequence
from pathlib import Path

from bnnviz import paths
from bnnviz.errors import BnnvizError

log = logging.getLogger(__name__)

_COMPILERS = ("g++", "clang++")
_KEPT = 8  # maximum number of cached libraries
_begun: set[Path] = set()  # compilations in threads of this process


def compiler() -> str | None:
    """Return the C++ compiler of this system, or the one named by ``CXX``; None if not found."""
    return os.environ.get("CXX") or next(filter(None, map(shutil.which, _COMPILERS)), None)


@functools.cache
def version(compiler: str) -> str:
    """Return the version string of a compiler, which is part of the names of its libraries."""
    try:
        found = subprocess.run([compiler, "--version"], check=False, capture_output=True, text=True)
    except OSError:  # compiling reports it
        return ""
    return found.stdout.partition("\n")[0]


def library(source: Path, headers: Sequence[Path] = (), options: Sequence[str] = ()) -> ctypes.CDLL | None:
    """Return the library of a C++ file, compiled if necessary; None if that fails."""
    return _library(source, tuple(headers), tuple(options))


@functools.cache
def _library(source: Path, headers: tuple[Path, ...], options: tuple[str, ...]) -> ctypes.CDLL | None:
    if os.name != "posix":
        return None
    try:
        path = _place(source, headers, options)
        if path.is_file():
            try:
                return ctypes.CDLL(str(path))
            except OSError as error:
                log.warning("The library %s could not be loaded (%s); it is compiled again.", path, error)
        _compile(source, path, [*(f"-I{folder}" for folder in {header.parent for header in headers}), *options])
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.CalledProcessError, BnnvizError) as error:  # BnnvizError without a home folder
        log.debug("%s could not be compiled: %s", source.name, error)
        return None


def library_if_kept(source: Path, headers: Sequence[Path] = (), options: Sequence[str] = ()) -> ctypes.CDLL | None:
    """Return the library if it is cached; otherwise start compiling it in the background and return None."""
    try:
        place = _place(source, tuple(headers), tuple(options))
    except (OSError, BnnvizError):
        return None
    if place.is_file():
        return library(source, headers, options)
    if place not in _begun:
        _begun.add(place)
        threading.Thread(target=library, args=(source, headers, options), name="compiler", daemon=True).start()
    return None


def remove_oldest(place: Path, pattern: str, kept: int) -> None:
    """Delete all but the ``kept`` most recently used matching files of a folder."""
    files = sorted(place.glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[kept:]:
        path.unlink(missing_ok=True)


def _place(source: Path, headers: tuple[Path, ...], options: tuple[str, ...]) -> Path:
    """Return the path of a library: one for each source, compiler and kind of processor."""
    text = [path.read_text(encoding="utf-8") for path in (source, *headers)]
    found = compiler()
    key = repr([*text, *options, platform.system(), platform.machine(), found and version(found)])
    return paths.compiled() / f"{source.stem}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"


def _compile(source: Path, path: Path, options: list[str]) -> None:
    found = compiler()
    if found is None:
        raise FileNotFoundError("no C++ compiler")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bnnviz-", dir=path.parent) as work:
        made = Path(work) / path.name
        usual = ["-std=c++17", "-O3", "-shared", "-fPIC"]
        subprocess.run([found, *usual, *options, str(source), "-o", str(made)], check=True, capture_output=True)
        made.replace(path)
    with contextlib.suppress(OSError):  # another process may do the same
        remove_oldest(path.parent, "*.so", _KEPT)

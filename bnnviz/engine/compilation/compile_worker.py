"""Compile a step in a process of its own.

``python -m bnnviz.engine.compilation.compile_worker PROGRAM OUT THREADS SOURCE``
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

NO_COMPILER = 3  # exit status
_NICE = 5  # whoever plays comes first


def compile_program(program: str, out: str, threads: int, source: str) -> None:
    """Compile a traced program and its examples, in a file, to a package for so many threads, with a loop in C++."""
    import torch
    from torch._inductor import aoti_compile_and_package
    from torch._inductor.cpp_builder import get_cpp_compiler

    from bnnviz.engine.compilation import native_program

    # A file that the parent process has just written, in a folder of its own.
    traced, examples = torch.load(program, weights_only=False)
    exported = torch.export.export(traced, tuple(examples), strict=False)
    aoti_compile_and_package(exported, package_path=out, inductor_configs={"cpp.threads": threads})
    # Here first: with some C++ libraries reading it ends the process, which must not be the one that samples.
    made = torch._C._aoti.AOTIModelPackageLoader(out, "model", False, 1, -1).run(list(examples))
    with contextlib.suppress(OSError, subprocess.CalledProcessError):  # then each step is called from Python
        native_program.add_loop(Path(out), Path(source), get_cpp_compiler())
    native = native_program.loaded(Path(out))
    if native is not None and not native.in_cpp:
        native.call(list(examples), made)


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    """Compile what the command line names."""
    program, out, threads, source = sys.argv[1:]
    if hasattr(os, "nice"):
        os.nice(_NICE)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if not _has_compiler():
        sys.exit(NO_COMPILER)
    compile_program(program, out, int(threads), source)


def _has_compiler() -> bool:
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        return bool(get_cpp_compiler())
    except (InvalidCxxCompiler, RuntimeError):
        return False


if __name__ == "__main__":
    main()

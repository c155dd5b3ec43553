"""Compiles a step, in a process of its own: ``python -m bnnviz.engine.compiler PROGRAM OUT THREADS``."""

from __future__ import annotations

import os
import sys
import threading

_NICE = 10  # whoever plays comes first


def compile_program(program: str, out: str, threads: int) -> None:
    """Compile an exported program to a package for so many threads."""
    import torch
    from torch._inductor import aoti_compile_and_package

    loaded = torch.export.load(program)
    aoti_compile_and_package(loaded, package_path=out, inductor_configs={"cpp.threads": threads})


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    """Compile what the command line names."""
    program, out, threads = sys.argv[1:]
    if hasattr(os, "nice"):
        os.nice(_NICE)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    compile_program(program, out, int(threads))


if __name__ == "__main__":
    main()

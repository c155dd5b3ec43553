"""Compile a traced program in a separate process, which does not block the interpreter of the run.

``python -m bnnviz.engine.compilation.compile_worker PROGRAM OUT THREADS``
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

_NICE = 5  # the run comes first


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    """Compile the program named on the command line."""
    source, out, threads = sys.argv[1:]
    if hasattr(os, "nice"):
        os.nice(_NICE)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from bnnviz.engine.compilation.torch_internals import Program, compile_library

    compile_library(Path(source), int(threads), Path(out))
    # Load it here first: some C++ libraries end the process that loads them.
    Program(Path(out))


if __name__ == "__main__":
    main()

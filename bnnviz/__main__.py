"""Run the program ``bnnviz``: Ctrl-C and a lack of memory, also while it is imported, end it with one line."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

_NO_MEMORY = ("cannot allocate memory", "failed to map segment", "unable to allocate", "without exception set")


def main() -> None:
    """Run the command line and exit."""
    signal.signal(signal.SIGINT, _stop)
    try:
        from bnnviz.cli.main import main as run

        run()
    except (MemoryError, ImportError, OSError, RuntimeError, SystemError) as error:
        if not any(_is_out_of_memory(each) for each in _chain(error)):
            raise
        sys.exit("bnnviz: The process may use too little memory; raise its limit (ulimit -v), or free memory.")


def _stop(number: int, frame: Any) -> None:
    """End the process while modules are imported: an exception there becomes another one, or is printed."""
    os.write(2, b"bnnviz: stopped.\n")
    os._exit(130)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_out_of_memory(error: BaseException) -> bool:
    known = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    return known or any(words in str(error).lower() for words in _NO_MEMORY)


if __name__ == "__main__":
    main()

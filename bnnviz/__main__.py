"""Run the program ``bnnviz``: Ctrl-C and a lack of memory, also while it is imported, end it with one line."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

# With less, libraries abort or wait forever while they are imported; PyTorch alone maps most of it.
LEAST_ADDRESS_SPACE = 900 << 20
_NO_MEMORY = ("cannot allocate memory", "failed to map segment", "unable to allocate", "without exception set")


def main() -> None:
    """Run the command line and exit."""
    signal.signal(signal.SIGINT, _stop)
    limit = _address_space()
    if limit is not None and limit < LEAST_ADDRESS_SPACE:
        sys.exit(
            f"bnnviz: The process may use {limit >> 20} MiB of address space and needs {LEAST_ADDRESS_SPACE >> 20} MiB;"
            " raise the limit (ulimit -v)."
        )
    try:
        from bnnviz.cli.main import main as run

        run()
    except (MemoryError, ImportError, OSError, RuntimeError, SystemError) as error:
        known = (
            isinstance(each, MemoryError) or getattr(each, "errno", None) == errno.ENOMEM for each in _chain(error)
        )
        named = (words in str(each).lower() for each in _chain(error) for words in _NO_MEMORY)
        if not (any(known) or any(named)):
            raise
        sys.exit("bnnviz: The process may use too little memory; raise its limit (ulimit -v), or free memory.")


def _address_space() -> int | None:
    """Return the limit of the address space in bytes; None without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _stop(number: int, frame: Any) -> None:
    """End the process while modules are imported: an exception there becomes another one, or is printed."""
    os.write(2, b"bnnviz: stopped.\n")
    os._exit(130)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


if __name__ == "__main__":
    main()

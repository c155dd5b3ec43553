"""Measure free memory, and refuse work that does not fit before the system would kill the process."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path

from bnnviz.errors import BnnvizError

_UNASKED = 1 << 28  # bytes below which free memory is not checked
_CONTROL_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available() -> int | None:
    """Return the bytes available to this process, within its machine and container; None if unknown."""
    known = [size for size in (_of_machine(), *(_of_group(*paths) for paths in _CONTROL_GROUPS)) if size is not None]
    return max(0, min(known)) if known else None


def check(size: float, what: str, remedy: str, field: str, free: int | None = None) -> None:
    """Raise if ``size`` bytes are not available."""
    if size <= _UNASKED:
        return
    free = available() if free is None else free
    if free is not None and size > free:
        raise BnnvizError(
            f"{what} would take {size / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free: {remedy}.", field
        )


def give_back() -> None:
    """Return free memory to the system, which glibc otherwise keeps for this process."""
    # Windows cannot open a library without a name, and other systems lack the function.
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):  # not Linux
        return None
    sizes = {line.partition(":")[0]: line.split()[1] for line in lines if len(line.split()) > 1}
    try:
        return 1024 * (int(sizes["MemAvailable"]) + int(sizes.get("SwapFree", 0)))
    except (KeyError, ValueError):
        return None


def _of_group(limit: str, used: str) -> int | None:
    """Return the memory available to a container, including reclaimable file caches."""
    try:
        most, now = Path(limit).read_text(encoding="ascii").strip(), int(Path(used).read_text(encoding="ascii"))
        if most == "max":
            return None
        caches = dict(line.split() for line in Path(limit).with_name("memory.stat").read_text("ascii").splitlines())
        return int(most) - now + int(caches.get("inactive_file", 0)) + int(caches.get("active_file", 0))
    except (OSError, ValueError):
        return None

"""Choose the device of a run, time its work there, and check its memory."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from bnnviz import memory
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from bnnviz.samplers import Sampler
    from bnnviz.targets import Target

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's mallopt
_KEPT_FREE, _LARGE = 32 << 20, 4 << 20  # bytes
_ROW_BYTES = 4  # of the random number per row for minibatches
# Multiply-adds of one gradient below which a second thread does not pay.
_THREADED_WORK = 50_000_000


class Clock:
    """Add the time of a stretch of work to a run, and set the run's number of threads.

    Device time is that of the thread on a CPU, and on a GPU from the first to the last kernel, after synchronisation.
    """

    def __init__(self, run: Any) -> None:
        self.run, self.worked = run, 0.0

    def __enter__(self) -> None:
        self._threads = using_threads(self.run.threads)
        self._threads.__enter__()
        self._wall, self._cpu = time.perf_counter(), time.thread_time()
        self._mark = _mark(self.run.device)

    def __exit__(self, *_: object) -> None:
        self._threads.__exit__(None, None, None)
        spent = None if self._mark is None else _since(self._mark, self.run.device)
        seconds, cpu = time.perf_counter() - self._wall, time.thread_time() - self._cpu
        self.worked = cpu if spent is None else seconds
        self.run.seconds += seconds
        self.run.cpu_seconds += cpu
        self.run.device_seconds += cpu if spent is None else spent


def computing_time(device: torch.device) -> Callable[[], float]:
    """Return a clock of computing time, which other processes do not use up: that of the thread, or of the GPU."""
    return time.perf_counter if device.type == "cuda" else time.thread_time


def threads_for(work: int) -> int:
    """Return the number of threads for a gradient of ``work`` multiply-adds."""
    return 1 if work < _THREADED_WORK else torch.get_num_threads()


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Set the number of PyTorch's threads temporarily."""
    before = torch.get_num_threads()
    if before == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _mark(device: torch.device) -> torch.cuda.Event | None:
    """Mark the position in a GPU's queue of work; None on a CPU."""
    if device.type != "cuda":
        return None
    mark = torch.cuda.Event(enable_timing=True)
    mark.record(torch.cuda.current_stream(device))
    return mark


def _since(mark: torch.cuda.Event, device: torch.device) -> float:
    """Wait until the GPU has emptied its queue, and return the seconds since a mark."""
    end = _mark(device)
    end.synchronize()
    return mark.elapsed_time(end) / 1000


def choose_device(name: str) -> torch.device:
    """Return the torch device of a name; ``auto`` is the first GPU if available."""
    if name == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    available = ["cpu"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    requested = "cuda:0" if name == "cuda" else name
    if requested not in available:
        raise BnnvizError(f"There is no device {name!r} here; choose auto or one of {', '.join(available)}.", "device")
    return torch.device(requested)


@functools.cache
def keep_freed() -> bool:
    """Keep freed memory up to 32 MB for the next step; return whether this C library supports it.

    By default glibc returns blocks from 128 kB on to the system, which clears each page again: for steps that need the
    same few blocks repeatedly that takes longer than the arithmetic.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_FREE)) and bool(mallopt(_MMAP_THRESHOLD, _LARGE))


def check_state(sampler: Sampler, target: Target, chains: int, dtype: torch.dtype, device: torch.device) -> None:
    """Raise for chains that exceed the memory, including the memory of one step."""
    free = free_memory(device)
    width = type(sampler).width  # some samplers know it only after preparation
    numbers = (width if isinstance(width, int) else 1) * chains * target.dim
    memory.check(
        2 * numbers * dtype.itemsize,
        f"{chains:,} chains in {target.dim:,} dimensions",
        "take fewer chains, or a smaller target",
        "chains",
        free,
    )
    if getattr(sampler, "batch_size", None) is not None:
        rows = getattr(target, "examples", 0)
        memory.check(
            _ROW_BYTES * chains * rows,
            f"Batches of {rows:,} rows for {chains:,} chains",
            "take fewer chains or rows",
            "chains",
            free,
        )


def free_memory(device: torch.device) -> int | None:
    """Return the free bytes of a GPU; None for a CPU."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None

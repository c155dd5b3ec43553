"""Choose the device of a run, time its work there, and check its memory."""

from __future__ import annotations

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

_ROW_BYTES = 4  # of the random number per row for minibatches
# Multiply-adds of one gradient below which a second thread does not pay.
_THREADED_WORK = 50_000_000


@contextmanager
def clocked(run: Any) -> Iterator[None]:
    """Add the time of some work to a run, on a GPU up to its last kernel, and set the number of threads."""
    with using_threads(run.threads):
        wall, cpu, mark = time.perf_counter(), time.thread_time(), _mark(run.device)
        try:
            yield
        finally:
            spent = None
            if mark is not None:
                end = _mark(run.device)
                end.synchronize()  # until the GPU has emptied its queue
                spent = mark.elapsed_time(end) / 1000
            cpu = time.thread_time() - cpu
            run.seconds += time.perf_counter() - wall
            run.cpu_seconds += cpu
            run.device_seconds += cpu if spent is None else spent


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


def choose_device(name: str) -> torch.device:
    """Return the torch device of a name; ``auto`` is the first GPU if available."""
    if name == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    available = ["cpu"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    requested = "cuda:0" if name == "cuda" else name
    if requested not in available:
        raise BnnvizError(f"There is no device {name!r} here; choose auto or one of {', '.join(available)}.", "device")
    return torch.device(requested)


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

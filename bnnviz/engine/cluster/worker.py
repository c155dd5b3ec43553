"""Prepare a worker (``dask worker --preload bnnviz.engine.cluster.worker``), so that its first run starts fast.

A worker joins the cluster only after `dask_setup`, so whoever sees it can use it at once.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import sys
import threading
import time
from typing import Any

log = logging.getLogger(__name__)

_SILENT_SCHEDULER = "Failed to communicate with scheduler during heartbeat"  # as Dask says it

_COMES_S = 10.0  # a worker that gets a run gets it by then
_STARTS_S = 60.0  # looking for a start takes longer for large networks only

_warming: threading.Thread | None = None
_ending = threading.Event()


def dask_setup(worker: Any) -> None:
    """Import what a run needs, and take a first gradient."""
    _take_gpu(worker.name)
    _close_pages(worker)
    logging.getLogger("distributed.worker").addFilter(_in_a_sentence)
    import torch

    from bnnviz.specs.run import Spec

    # one thread each: several workers share the machine, and draws depend on the number of threads
    torch.set_num_threads(int(os.environ.get("BNNVIZ_THREADS", "1")))
    # the event loop gets the interpreter from a busy sampler after 1 ms instead of 5: frames come sooner
    sys.setswitchinterval(0.001)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.ones(4, 2, device=device, requires_grad=True)
    torch.autograd.grad((x @ x.T).tanh().sum(), x)
    module, name = Spec.factory.split(":")
    run_class = getattr(importlib.import_module(module), name)
    # What is imported stays: a look for garbage in it held up all runs of this worker for .3 s.
    gc.collect()
    gc.freeze()
    global _warming
    _warming = threading.Thread(target=_warm_up, args=(run_class,), name="bnnviz-warm-up", daemon=True)
    _warming.start()


def _in_a_sentence(record: logging.LogRecord) -> bool:
    """Let the log say that the scheduler does not answer, without a traceback: after Ctrl-C it has ended first."""
    if record.getMessage().startswith(_SILENT_SCHEDULER):
        record.exc_info = None
    return True


def _warm_up(run_class: Any) -> None:
    """Do once what imports much at its first time: it would hold up all runs of this worker later.

    A first run looks for its start before: somebody waits for that.
    """
    from bnnviz.engine.drive import drive
    from bnnviz.specs.run import Spec

    _let_first_run_start()
    if _ending.is_set():
        return
    try:
        run = run_class(Spec(draws=20, warmup=0).checked())
        drive(run, 0.02)
        run.frame(run.scene()["emits"])
    except Exception:
        log.exception("the warm-up failed; the first run will start slowly")


def _let_first_run_start() -> None:
    from bnnviz.engine.cluster import loop

    begun = time.monotonic()
    while not _ending.wait(0.1):
        waited = time.monotonic() - begun
        if waited > _STARTS_S or not (loop.starting() or (waited < _COMES_S and not loop.census())):
            return


def dask_teardown(worker: Any) -> None:
    """Save the live runs of a worker that is shut down in order."""
    from bnnviz.engine.cluster import loop

    _ending.set()
    loop.close()
    if _warming is not None:
        _warming.join()  # a thread inside torch when the process ends would abort it


def devices() -> list[str]:
    """Return the devices of this worker, as a spec names them."""
    import torch

    found = ["cpu"]
    if torch.cuda.is_available():
        found.append("cuda")
    return found


def _close_pages(worker: Any) -> None:
    """Close the port of a worker's own pages where it has none: Dask opens it all the same."""
    import dask

    if not dask.config.get("distributed.worker.http.routes"):
        worker.http_server.stop()


def _take_gpu(name: Any) -> None:
    """Take this worker's GPU of those that the backend has named (``BNNVIZ_GPUS``), before CUDA starts."""
    gpus = os.environ.get("BNNVIZ_GPUS", "").split(",")
    if gpus != [""] and str(name).isdigit():
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[int(name) % len(gpus)]

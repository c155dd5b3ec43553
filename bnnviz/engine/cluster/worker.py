"""Prepare a worker (``dask worker --preload bnnviz.engine.cluster.worker``), so that its first run starts fast.

A worker joins the cluster only after `dask_setup`, so it can be used at once.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from typing import Any

log = logging.getLogger(__name__)


def dask_setup(worker: Any) -> None:
    """Import the modules of a run, and make a few draws."""
    gpus = os.environ.get("BNNVIZ_GPUS", "").split(",")
    if gpus != [""] and str(worker.name).isdigit():
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[int(worker.name) % len(gpus)]  # before CUDA starts
    if threading.current_thread() is threading.main_thread():
        # A terminal sends Ctrl-C to the workers too; the owner of the cluster ends them in order.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch

    from bnnviz.engine.drive import drive
    from bnnviz.engine.viewed_run import ViewedRun
    from bnnviz.specs.run import Spec

    # one thread each: several workers share the machine, and draws depend on the number of threads
    torch.set_num_threads(int(os.environ.get("BNNVIZ_THREADS", "1")))
    # the event loop gets the interpreter from a busy sampler after 1 ms instead of 5: frames come sooner
    sys.setswitchinterval(0.001)
    try:
        run = ViewedRun(Spec(draws=20, warmup=0).checked())
        drive(run, 0.02)
        run.frame(run.scene()["emits"])
    except Exception:
        log.exception("the warm-up failed; the first run will start slowly")
    # Imported objects stay: the collector would scan them for .3 s, during which all runs would stop.
    gc.collect()
    gc.freeze()


def dask_teardown(worker: Any) -> None:
    """Save the live runs of a worker that is shut down in order."""
    from bnnviz.engine.cluster.live_runs import RUNS

    RUNS.close()


def devices() -> list[str]:
    """Return the devices of this worker, as a spec names them."""
    import torch

    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]

"""Do on a worker the jobs that `bnnviz.engine.cluster.jobs.scheduling` sends it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from bnnviz.errors import BnnvizError
from bnnviz.version import VERSION

BEGAN, TOLD = "began", "told"
DONE, FAILED, STOPPED = "done", "failed", "stopped"

log = logging.getLogger(__name__)

_stopped: set[str] = set()  # marks of jobs that are to end


class Stopped(Exception):
    """End a job that was told to stop; ``value`` is what it gives back all the same."""

    def __init__(self, value: Any = None) -> None:
        super().__init__("The job was stopped.")
        self.value = value


class Report:
    """Tell whoever sent a job how far it is."""

    def __init__(self, topic: str, number: int) -> None:
        from distributed import get_worker

        self._topic, self._number, self._worker = topic, number, get_worker()

    def say(self, kind: str, value: Any) -> None:
        """Send an event; ``value`` is plain."""
        self._worker.log_event(self._topic, {"number": self._number, "kind": kind, "value": value})

    def tell(self, value: Any) -> None:
        """Say how far the job is."""
        self.say(TOLD, value)

    @property
    def stopped(self) -> bool:
        """Whether the job has been told to stop."""
        return self._topic in _stopped or _one(self._topic, self._number) in _stopped


def perform(function: Callable[..., Any], topic: str, number: int, args: tuple[Any, ...]) -> tuple[str, Any]:
    """Do a job on this worker, and return how it ended with what it gave, or the sentence on why it gave nothing."""
    import torch

    report = Report(topic, number)
    if report.stopped:
        return STOPPED, None
    report.say(BEGAN, report._worker.address)
    # As in the preload, which a worker may be without: draws depend on the number of threads.
    torch.set_num_threads(int(os.environ.get("BNNVIZ_THREADS", "1")))
    try:
        return DONE, function(report, *args)
    except Stopped as stopped:
        return STOPPED, stopped.value
    except BnnvizError as error:
        return FAILED, error.sentence
    except Exception as error:
        log.exception("job %d failed", number)
        return FAILED, f"It failed on its worker ({type(error).__name__}: {error})."


def stop(topic: str, number: int | None = None) -> None:
    """Tell the jobs of a topic on this worker to stop, or one of them."""
    _stopped.add(topic if number is None else _one(topic, number))


def version() -> str:
    """Return the version of bnnviz on this worker."""
    return VERSION


def _one(topic: str, number: int) -> str:
    return f"{topic}/{number}"

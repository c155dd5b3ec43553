"""Run an experiment on the workers of a cluster, one run on each at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from bnnviz.engine.cluster.jobs import scheduling, worker
from bnnviz.engine.cluster.jobs.scheduling import Cluster, Job, Jobs
from bnnviz.errors import BnnvizError

log = logging.getLogger(__name__)


def results(
    name: str, result: Callable[[Any], dict[str, Any]], specs: list[Any], cluster: Cluster
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run specs on a cluster and yield (place, summary), as each run ends."""
    if not specs:
        return
    wanted = [Job((result, spec), gpu=getattr(spec, "device", "").startswith("cuda")) for spec in specs]
    for number, kind, value in Jobs(cluster, _ran, wanted).events():
        if kind in (scheduling.WAITING, scheduling.LOST):
            log.warning(
                "%s", value if kind == scheduling.WAITING else f"A worker was lost; run {number + 1} begins again."
            )
        elif kind == worker.FAILED:
            raise BnnvizError(f"Run {number + 1} of {name} failed: {value}", "experiment")
        elif kind == worker.DONE:
            yield number, value


def _ran(report: worker.Report, result: Callable[[Any], dict[str, Any]], spec: Any) -> dict[str, Any]:
    """Run a spec, on a worker."""
    return result(spec)

"""Run the combinations of a grid of settings on a Dask cluster, each into a recording, the only state of a sweep."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnnviz.engine.cluster.local_cluster import GPU, imported_dask
from bnnviz.engine.drive import drive
from bnnviz.engine.recording.reader import PROGRESS, Recording
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec, read_json

if TYPE_CHECKING:
    from distributed import Client

MOST_RUNS = 10_000
_SLICE_S = 0.2
_OWNERS = {"sampler": "settings", "target": "target_settings"}
_UNSAFE = re.compile(r"[^A-Za-z0-9._=+-]+")


def specs_of(sweep: Any) -> dict[str, Spec]:
    """Return the checked spec of each combination of grid values, by the name of its recording."""
    given = read_json(sweep, "A sweep", ("base", "grid"))
    base, grid = given.get("base") or {}, given.get("grid") or {}
    for name, part in (("base", base), ("grid", grid)):
        if not isinstance(part, dict):
            raise BnnvizError(f"The {name} of a sweep must be a mapping, not {part!r:.60}.", name)
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise BnnvizError(f"The grid's {key} must be a list of values, not {values!r:.60}.", str(key))
    if (count := math.prod(map(len, grid.values()))) > MOST_RUNS:
        raise BnnvizError(f"The sweep has {count:,} runs; at most {MOST_RUNS:,} are allowed.", "grid")
    points = (dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values()))
    return dict(_named(base, point) for point in points)


def _named(base: dict[str, Any], point: dict[str, Any]) -> tuple[str, Spec]:
    """Return the name and the spec of one run; the name ends with a digest of the spec."""
    words = [f"{str(key).rpartition('.')[2]}={value}" for key, value in point.items()]
    try:
        spec = Spec.from_json(_request(base | point))
        if spec.draws is None:
            raise BnnvizError("Runs of a sweep require a number of draws.", "draws")
    except BnnvizError as error:
        raise BnnvizError(f"Run {', '.join(words) or 'base'} of the sweep: {error.sentence}", error.field) from None
    digest = hashlib.sha256(json.dumps(spec.to_json(), sort_keys=True).encode()).hexdigest()
    return f"{_UNSAFE.sub('_', '-'.join([spec.sampler, spec.target, *words]))[:80]}-{digest[:8]}", spec


def _request(values: dict[str, Any]) -> dict[str, Any]:
    """Return a spec's JSON with ``sampler.NAME`` and ``target.NAME`` among the settings of their owners."""
    request = {str(key): value for key, value in values.items() if str(key).partition(".")[0] == key}
    for key, value in values.items():
        owner, dot, name = str(key).partition(".")
        if not dot:
            continue
        if owner not in _OWNERS:
            raise BnnvizError(f"There is no key {key!r}; write sampler.NAME or target.NAME.", str(key))
        request[_OWNERS[owner]] = {**(request.get(_OWNERS[owner]) or {}), name: value}
    return request


def run_sweep(client: Client, specs: dict[str, Spec], out: Path) -> Iterator[tuple[str, str | None]]:
    """Record each unfinished run in ``out``, shared by all workers; yield its name and its error or None at its end."""
    out = Path(out).absolute()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BnnvizError(f"The folder {out} cannot be made ({error.strerror}); choose another.", "out") from None
    left = {name: spec for name, spec in specs.items() if row(name, spec, out)["state"] == "left"}
    names, folders = list(left), [str(out / name) for name in left]
    gpu = [spec.device.startswith("cuda") for spec in left.values()]
    for place, result in results(client, record, [list(left.values()), folders], gpu):
        error = f"{type(result).__name__}: {result}" if isinstance(result, BaseException) else None
        yield names[place], result.sentence if isinstance(result, BnnvizError) else error


def results(
    client: Client, function: Callable[..., Any], columns: Sequence[Sequence[Any]], gpu: Sequence[bool]
) -> Iterator[tuple[int, Any]]:
    """Call a function on the workers with each row of the columns; yield the row's place and its result or error."""
    distributed = imported_dask()
    offers = [worker["resources"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
    if any(gpu) and not any(resources.get(GPU) for resources in offers):
        raise BnnvizError(f'No worker offers a GPU; start workers with --resources "{GPU}=1", or choose cpu.', "device")
    places: dict[Any, int] = {}
    for on_gpu in (False, True):
        chosen = [place for place, one in enumerate(gpu) if bool(one) is on_gpu]
        if chosen:
            rows = [[column[place] for place in chosen] for column in columns]
            resources = {GPU: 1} if on_gpu else None
            places |= dict(zip(client.map(function, *rows, pure=False, resources=resources), chosen, strict=True))
    try:
        for future in distributed.as_completed(list(places)):
            if future.status == "cancelled":
                raise BnnvizError("The connection to the scheduler was lost. Run the command again.", "scheduler")
            yield places[future], future.exception() if future.status == "error" else future.result()
    finally:
        client.cancel(list(places))


def record(spec: Spec, folder: str) -> None:
    """Record a run up to its end, or resume its recording; on a worker."""
    import torch

    from bnnviz.engine.recording.resume import resume
    from bnnviz.engine.recording.writer import RecordingWriter
    from bnnviz.engine.run.run import Run

    # Draws depend on the number of threads, which Dask's own workers leave to torch.
    torch.set_num_threads(int(os.environ.get("BNNVIZ_THREADS", "1")))
    place = Path(folder)
    if not place.parent.is_dir():
        raise BnnvizError(f"This worker has no folder {place.parent}; choose one that all workers share.", "out")
    run = resume(place, run_class=Run) if (place / PROGRESS).exists() else Run(spec)
    writer = RecordingWriter(run, place)
    drive(run, _SLICE_S, writer.note)
    writer.close()


def row(name: str, spec: Spec, out: Path) -> dict[str, Any]:
    """Return name, state (done, failed or left), error, spec, seconds, summary figures and folder of a run."""
    found: dict[str, Any] = {"state": "left", "error": None, "seconds": None, "figures": {}}
    folder = Path(out) / name
    if (folder / PROGRESS).exists():
        recording = Recording(folder)
        progress, summary = recording.progress, recording.last_summary or {}
        figures = {key: value for key, value in summary.items() if isinstance(value, int | float)}
        found |= {"error": progress["error"], "seconds": progress["seconds"], "figures": figures}
        if progress["finished"] and (progress["error"] or figures):
            found["state"] = "failed" if progress["error"] else "done"
    return {"name": name, "spec": spec.to_json(), "folder": str(folder), **found}

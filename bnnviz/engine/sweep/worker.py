"""Record one run of a sweep on a worker, in the sweep's folder where the worker sees that, and else send it back.

Runs that are not finished lie in the folder ``.runs``, each under a name that only its owner knows: the run's name and
a mark. Who takes a run over, because its worker is lost, renames its folder first. A worker that was only silent and
comes back then finds its folder gone and stops: two never write to one. A finished recording is moved to its run's
name, at once, so that what has that name is whole.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnnviz.engine.cluster.jobs.worker import Report, Stopped
from bnnviz.engine.drive import drive
from bnnviz.engine.recording import archive
from bnnviz.engine.recording.reader import LOCK, Recording
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError
from bnnviz.files import plain_json, to_json, write_json

if TYPE_CHECKING:
    from bnnviz.engine.recording.writer import RecordingWriter
    from bnnviz.engine.run.run import Run

GOING = ".runs"
TOKEN = ".token"
ROW = "row.json"  # what the sweep has to know of a finished run
_MARK = "~"  # not in the name of a run
_WHOLE = Path("draws.zarr") / "zarr.json"  # written once, when a recording is made
_SLICE_S = 0.2
_TOLD_S = 1.0
_EVERY_S = 2.0  # from one write to the next, at least
_TRIES = 10


def record(report: Report, name: str, spec: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    """Record a run, or go on with its recording."""
    begun = time.perf_counter()
    if sees(place):
        out = Path(place["out"])
        found = finished(out / name)
        if found is None:
            folder = take_over(out / GOING, name)
            _drive(report, folder, spec)
            found = settle(folder, out / name)
        return {"row": found, "worker_s": time.perf_counter() - begun}
    with tempfile.TemporaryDirectory(prefix="bnnviz-sweep-") as temporary:
        folder = Path(temporary) / name
        if place["held"] is not None:
            unpack(place["held"], folder)
        try:
            _drive(report, folder, spec)
        except Stopped:
            raise Stopped({"packed": pack(folder)}) from None
        return {"row": finished(folder), "packed": pack(folder), "worker_s": time.perf_counter() - begun}


def sees(place: dict[str, Any]) -> bool:
    """Tell whether this machine has the sweep's folder: a folder of the same name has another token, or none."""
    try:
        return (Path(place["out"]) / TOKEN).read_text(encoding="utf-8") == place["token"]
    except OSError:
        return False


def finished(folder: Path) -> dict[str, Any] | None:
    """Return the row of a finished recording; None where there is none."""
    try:
        row = plain_json((folder / ROW).read_text(encoding="utf-8"))["row"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return row if isinstance(row, dict) else None


def unfinished(going: Path, name: str) -> list[Path]:
    """Return the folders of a run that is not finished and can go on, the one that is farthest first."""
    counts = {}
    for folder in going.glob(f"{name}{_MARK}*"):
        if (folder / _WHOLE).exists():
            try:
                counts[folder] = sum(Recording(folder).progress["counts"])
            except BnnvizError:
                continue
    return sorted(counts, key=counts.__getitem__, reverse=True)


def take_over(going: Path, name: str) -> Path:
    """Return a folder for a run that nobody else writes to: with what there is of the run, or not there yet."""
    mine = new_folder(going, name)
    for _ in range(_TRIES):
        found = unfinished(going, name)
        try:
            if found:
                found[0].rename(mine)
                # A worker that is silent may hold the old one, and has lost the folder.
                (mine / LOCK).unlink(missing_ok=True)
        except FileNotFoundError:  # another one was quicker
            continue
        clear(going, name, mine)
        return mine
    raise BnnvizError(
        f"Others keep taking over the run {name}; let one sweep at a time write to {going.parent}.", "out"
    )


def new_folder(going: Path, name: str) -> Path:
    """Return a place for a run that is not finished, which is nobody's yet."""
    return going / f"{name}{_MARK}{uuid.uuid4().hex[:12]}"


def clear(going: Path, name: str, but: Path) -> None:
    """Remove a run's other folders: begun without a whole draw, behind, or written to by who was not told."""
    for old in going.glob(f"{name}{_MARK}*"):
        if old != but:
            shutil.rmtree(old, ignore_errors=True)


def settle(folder: Path, place: Path) -> dict[str, Any]:
    """Move a finished recording to its place, unless another one is there; return the row of what is there."""
    try:
        folder.rename(place)
    except OSError as error:
        found = finished(place)
        if found is None:
            raise _lost_or(folder, error) from error
        shutil.rmtree(folder, ignore_errors=True)
        return found
    return finished(place)


def _lost_or(folder: Path, error: Exception) -> Exception:
    """Return why a folder could not be written to: it was taken over, or else the error."""
    if not (folder / _WHOLE).exists():
        shutil.rmtree(folder, ignore_errors=True)  # what was written after it was taken over
        return Stopped()
    if isinstance(error, BnnvizError):
        return error
    return BnnvizError(f"The recording {folder} cannot be moved to its place ({error}).", "out")


def _drive(report: Report, folder: Path, given: dict[str, Any]) -> None:
    """Advance a run to its end, recording it, and write its summary."""
    from bnnviz.engine.recording.resume import resume
    from bnnviz.engine.recording.writer import PROGRESS, RecordingWriter
    from bnnviz.engine.run.run import Run
    from bnnviz.specs.run import Spec

    if (folder / PROGRESS).exists():
        run = resume(folder, run_class=Run)
    else:
        run = Run(Spec.from_json(given["json"], given["attachment"], given.get("start_points")))
    writer = RecordingWriter(run, folder, _EVERY_S, frames=False)  # there are many, and short ones
    telling = Throttle(least=_TOLD_S)

    def write_and_tell() -> None:
        _note(folder, writer)
        if telling.due:
            telling.spent()
            report.tell({"phase": run.phase, "progress": run.progress, "seconds": run.seconds})

    if not drive(run, _SLICE_S, write_and_tell, stopped=lambda: report.stopped):
        _note(folder, writer, now=True)
        raise Stopped
    try:
        writer.close()
        _write_row(folder, run)
    except (BnnvizError, OSError) as error:
        raise _lost_or(folder, error) from error


def _note(folder: Path, writer: RecordingWriter, now: bool = False) -> None:
    """Write what is due, unless somebody else has taken the run over."""
    if not (folder / _WHOLE).exists():
        raise Stopped
    try:
        writer.note(now)
    except BnnvizError as error:
        raise _lost_or(folder, error) from error


def _write_row(folder: Path, run: Run) -> None:
    from bnnviz.engine.monitor.summary import summarise

    figures = {key: value for key, value in to_json(summarise(run)).items() if not isinstance(value, list | dict)}
    write_json(
        folder / ROW,
        {"row": {"error": None if run.error is None else str(run.error), "seconds": run.seconds, "figures": figures}},
    )


# --- recordings that are sent


def pack(folder: Path) -> bytes | None:
    """Return a recording as one archive; None where there is none."""
    if not folder.is_dir():
        return None
    buffer = io.BytesIO()
    archive.write(Recording(folder), buffer)
    return buffer.getvalue()


def unpack(data: bytes, folder: Path) -> None:
    """Write a packed recording to a new folder."""
    try:
        archive.extract(io.BytesIO(data), folder, "What a worker sent")
    except OSError as error:
        raise BnnvizError(
            f"The recording {folder} cannot be written ({error.strerror or error}); free some of the disk.", "out"
        ) from error

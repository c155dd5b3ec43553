"""Record a live run: begin, keep and end its recording, and say what is wrong with it in the run's place."""

from __future__ import annotations

import logging
from typing import Any

from bnnviz.engine.cluster.slot import Slot
from bnnviz.engine.protocol import Simulation
from bnnviz.errors import BnnvizError

SUMMARISED = 5_000_000  # numbers of a run's draws up to which its recording gets a summary: others wait for it

log = logging.getLogger(__name__)


def record(slot: Slot, name: str | None) -> None:
    """Keep a run on disk from now on under a name, or, without one, end its recording."""
    end(slot)
    if name is not None:
        slot.writer = _writer(slot.run, name, new=True)
        slot.record = name


def begin(slot: Slot) -> None:
    """Go on with the recording of a run that was taken up again."""
    if slot.record is None or slot.run is None or slot.state != "running":
        return
    try:
        if slot.history is not None:
            slot.history.recall(_recording(slot.record))
        slot.writer = _writer(slot.run, slot.record)
    except BnnvizError as error:
        slot.record, slot.message = None, error.sentence


def leave(slot: Slot, command: str) -> None:
    """End a recording where a command leaves its run: it keeps what it has."""
    name = slot.record
    if name is not None and command in ("back", "return", "keep"):
        end(slot)
        slot.message = f"The recording {name} ended where the run was left; it keeps what was recorded."


def keep(slot: Slot) -> None:
    """Write what is new of a run that is recorded; what is wrong with that is said, and the run goes on."""
    if slot.writer is None:
        return
    from bnnviz.engine.recording.lock import RecordingGone

    try:
        slot.writer.note()
    except RecordingGone as error:
        slot.writer.abandon()
        slot.writer, slot.record, slot.message = None, None, error.sentence
        slot.touch()
    except BnnvizError as error:
        if slot.message != error.sentence:
            slot.message = error.sentence
            slot.touch()


def end(slot: Slot) -> None:
    """End the recording of a run, if it has one."""
    writer, slot.writer, slot.record = slot.writer, None, None
    if writer is None:
        return
    try:
        writer.close(summary=writer.run.store.buffer.numel() <= SUMMARISED)
    except BnnvizError as error:
        slot.message = error.sentence
        log.warning("the recording of live run %s was not finished: %s", slot.run_id, error.sentence)


def _writer(run: Simulation, name: str, new: bool = False) -> Any:
    """Return what keeps a run in the recording of this name, a new one or one that it goes on with."""
    from bnnviz.engine.recording import reader
    from bnnviz.engine.recording.writer import RecordingWriter

    if run.is_fork:
        raise BnnvizError("Keep one of the futures first; then it can be recorded.", "record")
    if not run.can_record:
        raise BnnvizError("Only runs of one sampler are recorded, not several beside each other.", "record")
    folder = reader.place(name)  # a page names no paths
    return RecordingWriter(run, reader.new_place(name) if new else folder)


def _recording(name: str) -> Any:
    """Return the recording of a name, as it was last written."""
    from bnnviz.engine.recording import reader

    return reader.Recording(reader.place(name))

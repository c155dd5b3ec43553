"""Drive a run or a race with a progress bar until it ends or Ctrl-C stops it, and print what a run came to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bnnviz.cli.interrupt import hold_interrupt
from bnnviz.cli.output import FAILED, INTERRUPTED, print_summary, progress, say
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from bnnviz.engine.race.race import Race
    from bnnviz.engine.recording.writer import RecordingWriter
    from bnnviz.engine.viewed_run import ViewedRun

_SLICE_S = 0.2  # seconds of sampling between two looks at the progress and at Ctrl-C


def carry_out(run: ViewedRun, out: Path | None, folder: Path | None, as_json: bool) -> int:
    """Sample to the end or to Ctrl-C, print and save what came out, and return the exit code.

    Parameters
    ----------
    run : ViewedRun
    out : Path or None
        The file that the run is saved in when it has ended.
    folder : Path or None
        The recording that is written while the run goes on.
    as_json : bool
    """
    recorder = None
    if folder is not None:
        from bnnviz.engine.recording.writer import RecordingWriter

        recorder = RecordingWriter(run, folder)
    try:
        interrupted = drive(run, recorder)
    except KeyboardInterrupt:
        kept = "nothing was kept" if folder is None else f"what was written before is kept in {folder}"
        say(f"stopped at once; {kept}.")
        return INTERRUPTED
    unwritten = _close(recorder)
    _print_and_save(run, out, as_json)
    if run.error is not None or unwritten:
        return FAILED
    if not interrupted:
        return 0
    say(_stopped(run, out, folder))
    return INTERRUPTED


def drive(run: ViewedRun | Race, recorder: RecordingWriter | None = None) -> bool:
    """Advance a run or a race to its end or to Ctrl-C; return whether it was stopped.

    A recording that cannot be written is said once and tried again: sampling goes on.
    """
    from bnnviz.engine.drive import drive as advance

    with progress() as bar:
        task, said = bar.add_task(run.phase, total=None), ""
        run.prepare()
        with hold_interrupt() as pressed:

            def show_and_write() -> None:
                nonlocal said
                bar.update(task, description=run.phase, total=1.0, completed=run.progress)
                said = _write(recorder, said)

            advance(run, _SLICE_S, show_and_write, stopped=lambda: bool(pressed))
    return bool(pressed)


def _write(recorder: RecordingWriter | None, said: str) -> str:
    """Write what is new to a recording; return what is wrong with that, which is printed when it is another thing."""
    if recorder is None:
        return ""
    try:
        return "" if recorder.note() else said
    except BnnvizError as error:
        if error.sentence != said:
            say(f"{error.sentence} Sampling goes on.")
        return error.sentence


def _close(recorder: RecordingWriter | None) -> bool:
    """Write the rest of a recording; return whether it could not be written."""
    if recorder is None:
        return False
    try:
        recorder.close()
    except BnnvizError as error:
        say(error.sentence)
        return True
    return False


def _print_and_save(run: ViewedRun, out: Path | None, as_json: bool) -> None:
    """Print the summary and save the draws of a run that has any; say what is to be known of it, and its error."""
    made, warnings = run.draws.shape[1], []
    if made or run.phase == "done":
        summary = run.summary()
        warnings = summary["warnings"]
        print_summary(summary, as_json)
    if out is not None and made:
        run.save(out)
    for note in [*run.notes, *warnings]:
        say(note)
    if run.error is not None:
        say(run.error)


def _stopped(run: ViewedRun, out: Path | None, folder: Path | None) -> str:
    """Return how far a run came that was stopped, and where its draws are."""
    made = run.draws.shape[1]
    places = [f"they are saved in {out}"] if out is not None and made else []
    places += [f"bnnviz resume {_word(folder)} goes on"] if folder is not None else []
    hint = "; --out would have saved them" if made and not places else ""
    saved = "".join(f"; {place}" for place in places)
    return f"stopped after {made} of {run.spec.draws} draws of each chain{saved}{hint}."


def _word(folder: Path) -> str:
    """Return what names a recording on the command line: its name on the shelf, its folder elsewhere."""
    from bnnviz.engine.recording import reader

    return folder.name if folder.parent == reader.recordings_folder() else str(folder)

"""Execute a run: commands come in, frames go out.

A `Host` has no thread. `bnnviz.engine.background` executes one in a thread of this process and
`bnnviz.engine.cluster.live_run` one in a thread of a Dask worker. This module does not import torch.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnnviz.engine.drive import Pace, make_changes, replay
from bnnviz.engine.history.time_travel import COMMANDS as TRAVELS
from bnnviz.engine.history.time_travel import TimeTravel
from bnnviz.engine.history.timeline import rest
from bnnviz.engine.protocol import MOVING, LoggedChange
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from bnnviz.engine.recording.writer import RecordingWriter

STATUS, TIMELINE = "status", "timeline"  # parts of frames to which the host adds
STEPS = ("proposal", "event")
_SLOW = 2.0  # steps per second up to which every frame is complete
_SHARE, _LEAST_S, _MOST_S = 0.1, 0.5, 10.0  # of the time that complete frames may take, and seconds between two
_SUMMARISED = 5_000_000  # numbers in a run's draws up to which its recording gets a summary

log = logging.getLogger(__name__)


class FairLock:
    """Lock for two threads in turn: who works in a loop does not keep the other out."""

    def __init__(self) -> None:
        self._door, self._room = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        # A thread that has just released the lock queues behind the waiting ones.
        with self._door:
            self._room.acquire()

    def __exit__(self, *_: object) -> None:
        self._room.release()


class Host:
    """Execute a run, a race, the double well or a fork between the calls of a thread."""

    def __init__(
        self,
        run: Any,
        *,
        playing: bool = False,
        speed: float | None = None,
        past: Iterable[LoggedChange] = (),
        travels: bool = False,
    ) -> None:
        self.run, self.playing, self.pace = run, playing, Pace()
        self._set_speed(speed)
        self.script: deque[LoggedChange] = deque()
        self.goal: int | None = None
        self.message = ""
        self._complete = Throttle(_SHARE, least=_LEAST_S, most=_MOST_S)
        self._ended_playing = False  # such a run continues after a change
        self._writer: RecordingWriter | None = None
        self.travel = TimeTravel(self) if travels and run.has_history else None
        self.script = rest(run, list(past)[len(self.log) :])
        make_changes(run, self.script)
        self._commands: dict[str, Callable[..., Any]] = {
            "play": self._play,
            "speed": self._set_speed,
            "proposal": partial(self._step, "step_proposal"),
            "event": partial(self._step, "step_event"),
            "watch": lambda **what: self.run.watch(**what),
            "select": lambda choice=None: self.run.select(choice),
            "change": self._change,
            "record": self._record,
        }

    @property
    def log(self) -> list[LoggedChange]:
        """The change log, with the pending changes."""
        run = self.run
        return [*run.changes, *(run.branches[run.followed].script if run.is_fork else self.script)]

    @property
    def going(self) -> bool:
        """Whether the run advances by itself."""
        return not self.run.finished and (self.playing or self.run.phase == "start" or self.goal is not None)

    @property
    def waits(self) -> bool:
        """Whether a step has to wait for the start, or for a past step."""
        return self.run.phase == "start" or self.goal is not None

    @property
    def moment(self) -> tuple[Any, ...]:
        """A value that differs if a checkpoint would differ."""
        run = self.run
        return run.steps, run.phase, len(run.changes), None if self.travel is None else self.travel.jumps

    # commands

    def command(self, name: str, **args: Any) -> None:
        """Execute a command between two slices of work."""
        self._complete.expire()
        if name in TRAVELS:
            if self.travel is None:
                raise BnnvizError("Only runs of a single sampler can go back.", "step")
            if self.record is not None and name in ("back", "return", "keep"):
                self.message = f"The recording {self.record} ended when the run was left; its data are kept."
                self.end_recording()
            self.travel.obey(name, **args)
        elif name == "pause":
            self.playing = False
        elif name in self._commands:
            self._commands[name](**args)
        else:
            raise BnnvizError(f"A live run has no command {name!r}.", "command")

    def _play(self) -> None:
        if self.run.finished:
            raise BnnvizError("This run is complete. Reset it to play again.")
        self.playing, self.message = True, ""
        self.pace.restart()

    def _set_speed(self, value: float | None = None) -> None:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value < float("inf")):
            raise BnnvizError(f"speed = {value!r} must be a number of steps per second above 0, or None.", "speed")
        self.pace.speed = value
        self.pace.restart()

    def _step(self, run_step: str, times: int = 1) -> None:
        self.playing = False
        if self.run.finished:
            raise BnnvizError("This run is complete. Reset it to step again.")
        make_changes(self.run, self.script)
        for _ in range(times):
            getattr(self.run, run_step)()
        self._moved()

    def _change(self, settings: dict[str, Any]) -> None:
        if self.travel is not None:
            spec = self.run.spec
            known = spec.settings | {f"target.{name}": value for name, value in spec.target_settings.items()}
            if all(name in known and known[name] == value for name, value in settings.items()):
                return  # the run has these settings already
            self.travel.part_for(settings)
        plays_on = self.run.finished and self._ended_playing
        self.run.change(settings)
        self.script.clear()
        if plays_on and not self.run.finished:
            self._play()

    # advancing

    def work(self, seconds: float) -> bool:
        """Advance for at most so many seconds if steps are due, and record; return whether steps were due."""
        due = self.going and not (self.playing and self.run.phase != "start" and self.pace.rests(time.monotonic()))
        if due:
            self.advance(seconds)
        self.keep()
        return due

    @property
    def rest(self) -> float | None:
        """Seconds until steps are due; None if a command is needed first."""
        if not self.going:
            return None
        return 0.0 if self.pace.speed is None else max(self.pace.due - time.monotonic(), 0.0)

    def advance(self, seconds: float) -> int:
        """Work for at most ``seconds``; return the number of steps."""
        if self.goal is not None:
            steps = replay(self.run, self.script, self.goal, seconds=seconds, slice_s=seconds)
            if self.run.steps >= self.goal or self.run.finished:
                self.goal = None
        elif self.script and self.playing:
            steps = replay(self.run, self.script, self.script[-1][0], seconds=seconds, slice_s=seconds)
            make_changes(self.run, self.script)
        else:
            steps = self.pace.advance(self.run, seconds)
        self._moved()
        return steps

    def _moved(self) -> None:
        if self.travel is not None and self.goal is None:
            self.travel.moved()
        if self.run.finished and self.playing:
            self._ended_playing, self.playing = True, False

    # frames

    def scene(self) -> dict[str, Any]:
        """Return the static view data."""
        scene = self.run.scene()
        return scene if self.travel is None else scene | {"emits": [*scene["emits"], TIMELINE]}

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the requested parts of the views; at full speed most frames have only the moving parts."""
        fast = self.playing and (self.pace.speed or math.inf) > _SLOW
        complete = not fast or self._complete.due
        if not complete:
            want = [part for part in want if part.partition(".")[0] in MOVING]
        begun = time.thread_time()
        frame = self.run.frame([part for part in want if part != TIMELINE])
        if complete:
            self._complete.spent(time.thread_time() - begun)
        if fast and "summary" in frame.get("caption", ()):  # the figures move on before the next caption
            frame["caption"] |= {"text": frame["caption"]["summary"], "kind": "summary"}
        if STATUS in frame:
            frame[STATUS] |= {"playing": self.playing, "speed": self.pace.speed, "record": self.record}
            frame[STATUS] |= {} if self.travel is None else self.travel.status()
            frame[STATUS]["message"] = self.message or frame[STATUS]["message"]
        if TIMELINE in want and self.travel is not None:
            frame[TIMELINE] = self.travel.shown()
        return frame

    # recording

    @property
    def record(self) -> str | None:
        """The name of the recording."""
        return None if self._writer is None else self._writer.folder.name

    def _record(self, recording: str | None = None) -> None:
        from bnnviz.engine.recording import reader

        if recording is None:
            self.end_recording()
        else:
            reader.place(recording)  # a page sends no paths
            self.keep_in(reader.new_place(recording))

    def keep_in(self, folder: Path) -> None:
        """Record the run in a folder from now on."""
        from bnnviz.engine.recording.writer import RecordingWriter

        if self.run.is_fork:
            raise BnnvizError("Select one of the branches before recording.", "record")
        if not self.run.has_history:
            raise BnnvizError("Only runs of a single sampler can be recorded.", "record")
        self.end_recording()
        self._writer = RecordingWriter(self.run, folder)

    def keep(self) -> None:
        """Write new data; if that fails, the run continues and its message has the reason."""
        if self._writer is None:
            return
        from bnnviz.engine.recording.lock import RecordingGone

        try:
            self._writer.note()
        except RecordingGone as error:
            self._writer.abandon()
            self._writer = None
            self._say(error)
        except BnnvizError as error:
            self._say(error)

    def end_recording(self, summary: bool = True) -> None:
        """Finish the recording, if there is one."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        # The other runs of a worker wait for a summary.
        quick = self.travel is None or writer.run.store.buffer.numel() <= _SUMMARISED
        try:
            writer.close(summary=summary and quick)
        except BnnvizError as error:
            self._say(error)

    def _say(self, error: BnnvizError) -> None:
        if self.message != error.sentence:
            self.message = error.sentence
            self.run.notes.append(error.message)
            log.warning("%s", error.sentence)

    def close(self, summary: bool = True) -> None:
        """End the recording and pending compilation."""
        self.end_recording(summary)
        for run in self.run.runs:
            run.release()

"""Take frames of a run while it is recorded, for runs that cannot be repeated or take long.

Frames are taken at the rate of a display at first, then at strides that grow with the steps since the last change, and
within a small fraction of the run's time.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bnnviz.engine.frames import codec
from bnnviz.engine.protocol import ShownRun
from bnnviz.engine.recording import replay_frames
from bnnviz.engine.recording.reader import PIECES, SCENE, Recording, is_recording_name, place
from bnnviz.engine.throttle import Throttle
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue

_PIECE = 16  # frames per file
MOST_BYTES = 1 << 26  # maximum bytes of all frames


class RecordedFramePolicy(NamedTuple):
    """The frequency of frames of a recorded run."""

    rate: float = 15.0
    growth: float = 1 / 80
    at_once: float = 0.15
    share: float = 0.0075
    part: float = 1 / 8
    frames: int = 2000


POLICY = RecordedFramePolicy()


class RecordedFrames:
    """Take frames of a run, and pack them into files."""

    def __init__(self, run: ShownRun, known: FramesSoFar | None = None) -> None:
        known = known or FramesSoFar(None, [], [])
        self.run = run
        self._scene, self._shown = known.scene, None
        self._closed, self._open = list(known.closed), list(known.open)
        self._tail: dict[str, Any] | None = None
        self._whole = bool(self._open)  # whether to write the incomplete file as a complete one
        last = [_step(self._open[-1])] if self._open else [piece["last"] for piece in self._closed[-1:]]
        self._last = last[0] if last else -1
        self._complete = False  # whether the last frame has every part
        self._next = self._since = run.steps
        self._era, self._pace = run.era, Throttle(least=1 / POLICY.rate)
        self._spent: dict[str, float] = {}
        self._begun = run.seconds

    @property
    def index(self) -> dict[str, Any] | None:
        """The index of the files for a recording's progress; None without files."""
        if self._scene is None:
            return None
        return {SCENE: self._scene, PIECES: self._closed + ([] if self._tail is None else [self._tail])}

    @property
    def names(self) -> set[str]:
        """Names of the files."""
        index = self.index
        return set() if index is None else {entry["file"] for entry in (index[SCENE], *index[PIECES])}

    def look(self, last: bool = False) -> None:
        """Take a frame if one is due, or the run's ``last``."""
        run = self.run
        again = last and not self._complete and run.steps == self._last
        if run.phase == "start" or (run.steps <= self._last and not again):
            return
        if run.era != self._era:
            self._era, self._since, self._next = run.era, run.steps, run.steps
        if not last and not self._due():
            return
        if self._shown is None:
            self._shown = replay_frames.copied(run.scene())
        if again and self._open:
            self._open.pop()
        self._open.append(replay_frames.copied(self._taken(last)))
        self._last, self._complete = run.steps, last
        self._pace.spent()
        self._next = run.steps + max(1, int(POLICY.growth * (run.steps - self._since)))

    @property
    def _allowed(self) -> float:
        return POLICY.at_once + POLICY.share * (self.run.seconds - self._begun)

    def _due(self) -> bool:
        if self.run.steps < self._next or not self._pace.due:
            return False
        count = sum(piece["count"] for piece in self._closed) + len(self._open)
        size = sum(piece["size"] for piece in self._closed)
        return sum(self._spent.values()) <= self._allowed and count < POLICY.frames and size < MOST_BYTES

    def _taken(self, whole: bool) -> dict[str, Any]:
        """Return a frame, without the expensive parts unless ``whole``."""
        frame: dict[str, Any] = {"seq": self.run.steps}
        for part in replay_frames.parts(self._shown):
            expensive = self._spent.get(part, 0.0) > POLICY.part * self._allowed
            if expensive and not whole and part != "status":
                continue
            begun = time.thread_time()
            made = self.run.aside(part, 0 if whole else self.run.steps - max(self._last, 0))
            if not made:
                continue
            frame[part] = made
            # The first call of a part may import modules, which does not count.
            known = self._spent.get(part)
            self._spent[part] = 0.0 if known is None else known + time.thread_time() - begun
        return replay_frames.timeless(frame)

    def files(self) -> dict[str, bytes]:
        """Return the new files by name, and add them to the index."""
        made: dict[str, bytes] = {}
        if self._scene is None and self._shown is not None:
            self._scene = _entry(self._shown, "scene", made)
        while len(self._open) >= _PIECE:
            self._closed.append(_piece(self._open[:_PIECE], made))
            self._tail = None
            del self._open[:_PIECE]
        if self._whole:
            self._whole = False
            self._tail = _piece(self._open, made) if self._open else None
        return made

    def end(self) -> None:
        """Write all frames to the next files, without waiting for full ones."""
        self.look(last=True)
        self._whole = True


class FramesSoFar(NamedTuple):
    """The frames of a live run: the files of its scene and of the first frames, and the last frames."""

    scene: dict[str, Any] | None
    closed: list[dict[str, Any]]
    open: list[dict[str, Any]]


def _step(frame: dict[str, Any]) -> int:
    return frame["status"]["step"]


def _entry(tree: Any, word: str, made: dict[str, bytes]) -> dict[str, Any]:
    content = codec.pack(tree)
    digest = hashlib.sha256(content).hexdigest()
    name = f"frames-{word}-{digest[:12]}"
    made[name] = content
    return {"file": name, "sha256": digest, "size": len(content)}


def _piece(frames: list[dict[str, Any]], made: dict[str, bytes]) -> dict[str, Any]:
    first, last = _step(frames[0]), _step(frames[-1])
    return _entry(frames, str(first), made) | {"first": first, "last": last, "count": len(frames)}


def until(recording: Recording, step: int) -> FramesSoFar:
    """Return the frames up to a step of a resumed run."""
    scene, pieces = recording.frame_files()
    pieces = [piece for piece in pieces if piece["first"] <= step]
    frames = [frame for piece in pieces[-1:] for frame in recording.frames(piece) if _step(frame) <= step]
    return FramesSoFar(scene, pieces[:-1], frames)


def shown(
    recording: Recording, most: int = replay_frames.FRAMES, step: int | None = None
) -> replay_frames.ReplayFrames:
    """Return the frames in a recording."""
    scene, pieces = recording.frame_files()
    pieces = [piece for piece in pieces if step is None or piece["first"] <= step]
    frames = [frame for piece in pieces for frame in recording.frames(piece) if step is None or _step(frame) <= step]
    if not frames:
        raise BnnvizError(
            f"The recording {recording.name} has no frames; leave --recorded out to do it again.", "recorded"
        )
    known, frames = len(frames), _fewer(frames, most)
    note = f"{known} frames were recorded as the run went; {len(frames)} of them are shown."
    header = recording.header
    told = {
        "bnnviz": header["bnnviz"],
        "spec": header["spec"],
        "changes": recording.progress["changes"],
        "device": header["device"],
        "steps": _step(frames[-1]),
        "notes": [note, *(note["text"] for note in header["notes"])],
    }
    return replay_frames.ReplayFrames(recording.frames(scene), frames, told)


def _fewer(frames: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Return at most ``most`` frames; each includes the data of the omitted frames before it."""
    if len(frames) <= most:
        return frames
    ends = [round(place * (len(frames) - 1) / (most - 1)) + 1 for place in range(most)]
    return [functools.reduce(operator.or_, frames[first:end]) for first, end in zip([0, *ends], ends, strict=False)]


def frames_of(
    path: str | Path,
    frames: int = replay_frames.FRAMES,
    *,
    steps: int | None = None,
    recorded: bool | None = None,
    progress: Callable[[float, str], Any] | None = None,
) -> replay_frames.ReplayFrames:
    """Return the replay frames of a path: repeated, or as recorded."""
    path = Path(path)
    if path.suffix == ".npz":
        return replay_frames.ReplayFrames.load(path)
    replay_frames.check_frames(frames)
    folder = path if path.is_dir() else place(path.name) if is_recording_name(path) else None
    recording = Recording(folder) if folder is not None else None
    kept = recording is not None and bool(recording.frame_files()[1])
    # Runs on objects of the caller cannot be repeated from a file.
    own = recording is not None and recording.header["spec"]["target"] in catalogue.OWN
    past = None if recorded or (own and kept) else replay_frames.read_past(path)
    if recorded is None:
        recorded = kept and (own or not replay_frames.is_here(past.device))
    if not recorded:
        return replay_frames.take_frames(past, frames, steps=steps, progress=progress)
    if recording is None:
        raise BnnvizError(f"{path} is no recording, so it has no frames; leave --recorded out.", "recorded")
    return shown(recording, frames, steps)

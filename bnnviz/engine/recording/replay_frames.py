"""Create replay frames: frames of a run at a few hundred of its steps, viewable without the run.

Frames are taken by repeating the run from its spec and change log: every step at first, so that each proposal is
visible, then at growing strides until the end.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bnnviz import optional
from bnnviz.engine.drive import LONGEST, make_changes, replay
from bnnviz.engine.frames import codec
from bnnviz.engine.protocol import AnyRun, LoggedChange
from bnnviz.engine.recording.reader import Recording, is_recording_name, place
from bnnviz.errors import BnnvizError
from bnnviz.files import plain_json, write_whole
from bnnviz.specs.run import Spec
from bnnviz.version import VERSION

if TYPE_CHECKING:
    from bnnviz.targets import Target

FRAMES, MOST_FRAMES = 300, 2000
_SINGLE = 1 / 3  # fraction of the frames that show one step each
_KEPT = 1 / 3  # fraction of the frames reserved until the number of steps is known
_BEGIN = 0.5  # initial stride, relative to the mean stride to the end
_SLICE_S = 0.2
_ENDLESS = 20_000  # steps replayed of a run without an end
# Timings differ between repetitions.
_CLOCKS = ("events_per_s", "gradients_per_s", "elapsed", "message")  # a message may include timings
_STATUS = "status"
_SKIPPED = ("selection", "graph", "verdict", "row")


@dataclass(frozen=True)
class ReplayFrames:
    """The replay frames of a run, and its scene; a user's file of them is called a film."""

    scene: dict[str, Any]
    frames: list[dict[str, Any]]
    header: dict[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> list[int]:
        """The step of each frame."""
        return [frame["status"]["step"] for frame in self.frames]

    def save(self, path: str | Path) -> Path:
        """Write the frames to a file atomically; the suffix ``.npz`` is added if missing."""
        path = Path(path)
        path = path if path.suffix else path.with_suffix(".npz")
        save(path, self.pack())
        return path

    def pack(self) -> bytes:
        """Return the frames as the bytes of an npz file: one array per type, and their positions as JSON."""
        return codec.pack({"scene": self.scene, "frames": self.frames, "header": self.header})

    @classmethod
    def load(cls, path: str | Path) -> ReplayFrames:
        """Read a file of frames."""
        try:
            tree = codec.unpack(Path(path).read_bytes())
            found = cls(tree["scene"], tree["frames"], tree["header"])
            whole = bool(found.steps) and {"emits", "title", "spec"} <= found.scene.keys() and "spec" in found.header
        except OSError as error:
            raise BnnvizError(f"The film {path} cannot be read ({error.strerror or error}).", "run") from error
        except codec.OtherFormat:
            raise BnnvizError(f"The film {path} was made by another version of bnnviz; make it again.", "run") from None
        except codec.DAMAGE:
            whole = False
        if not whole:
            raise BnnvizError(f"{path} is not a film, or it is damaged; make it again with bnnviz replay.", "run")
        return found


@dataclass(frozen=True)
class PastRun:
    """Content of a frames file of an earlier run; ``changes`` is its change log."""

    spec: Spec
    changes: list[LoggedChange] = field(default_factory=list)
    steps: int | None = None
    device: str | None = None
    target: Target | None = None


def take_frames(
    past: PastRun | AnyRun | Spec,
    frames: int = FRAMES,
    *,
    steps: int | None = None,
    only: Collection[str] | None = None,
    watch: Mapping[str, Any] | None = None,
    measure: Callable[[AnyRun, dict[str, Any]], dict[str, float]] | None = None,
    progress: Callable[[float, str], Any] | None = None,
) -> ReplayFrames:
    """Repeat a run, and take its replay frames; ``measure`` adds metrics of the run as the part ``measured``."""
    if not isinstance(frames, int) or not 2 <= frames <= MOST_FRAMES:
        raise BnnvizError(f"frames = {frames!r} must be a whole number from 2 to {MOST_FRAMES:,}.", "frames")
    if not isinstance(past, PastRun):
        past = PastRun(past.checked()) if isinstance(past, Spec) else past_of_run(past)
    run, note = _begin(past)
    last = steps or past.steps or (_ENDLESS if run.spec.draws is None else None)
    taking = _Taking(run, deque(past.changes), last, progress or (lambda share, phase: None))
    run.prepare()
    run.watch(**(watch or {}))
    scene = copied(run.scene())
    if only is not None:
        scene["emits"] = [part for part in scene["emits"] if part in only or part == _STATUS]
    taken = [_frame(run, scene, measure)]
    stride, known = 1.0, False
    while not taking.ended and len(taken) < frames:
        if len(taken) > frames * _SINGLE:
            left, more = taking.left, frames - len(taken)
            if left is None:
                left, more = max(run.sampler.tuning_limit - run.steps, 1), more - round(frames * _KEPT)
            elif not known:
                # From here on strides grow to the end, which may be nearer than expected.
                stride, known = max(1.0, min(stride, _BEGIN * left / more)), True
            stride = next_stride(stride, left, more)
        taking.advance(run.steps + round(stride) if len(taken) < frames - 1 else math.inf)
        taken.append(_frame(run, scene, measure))
    header = {"bnnviz": VERSION, "spec": past.spec.to_json(), "changes": copied(past.changes)}
    notes = [*([note] if note else []), *(str(note) for note in run.notes)]
    return ReplayFrames(scene, taken, header | {"device": str(run.device), "steps": run.steps, "notes": notes})


def is_here(device: str | None) -> bool:
    """Return whether this machine has a device, so that a run on it can be repeated with the same draws."""
    from bnnviz.engine.run.device import choose_device

    try:
        return device is None or bool(choose_device(device))
    except BnnvizError:
        return False


def next_stride(last: float, left: int, more: int) -> float:
    """Return the number of steps between frames: strides that grow geometrically."""
    more = max(more, 1)
    if left <= more:
        return 1.0
    # last (e^g + e^2g + ... + e^(more g)) = left
    powers = np.arange(1, more + 1)
    reach = math.log(left / last)
    growth = scipy.optimize.brentq(
        lambda g: float(scipy.special.logsumexp(powers * g)) - reach, -50.0, abs(reach) + 1.0
    )
    return max(1.0, last * math.exp(growth))


def past_of_run(run: AnyRun) -> PastRun:
    """Return a run of this process in the form of a file's."""
    own = run.target if run.own_target else None
    return PastRun(run.begun, list(run.changes), run.steps, str(run.device), own)


def past_of(
    header: dict[str, Any],
    name: str,
    attachment: bytes | None = None,
    start_points: bytes | None = None,
    target: Target | None = None,
) -> PastRun:
    """Return the run described by a header."""
    spec, changes = header.get("spec"), header.get("changes", [])
    if isinstance(spec, dict) and "entries" in spec:
        raise BnnvizError(f"{name} is of several samplers; only runs of one sampler are replayed.", "run")
    try:
        changes = [(int(step), dict(settings)) for step, settings in changes]
    except (TypeError, ValueError):
        raise BnnvizError(f"The change log of {name} is damaged; it cannot be done again.", "run") from None
    spec = Spec.from_json(spec, attachment, start_points, target is not None)
    return PastRun(spec, changes, header.get("steps"), header.get("device"), target)


def read_past(path: str | Path, target: Target | None = None) -> PastRun:
    """Read the input to repeat a run: from a recording's folder, a spec (JSON) or a saved run (NetCDF)."""
    path = Path(path)
    if not path.exists() and is_recording_name(path):
        path = place(str(path))
    if path.is_dir():
        recording = Recording(path)
        progress = recording.progress  # the header is not updated at each change
        known = {"changes": progress["changes"], "steps": progress["steps"]}
        held = recording.attachment(), recording.start_points()
        return past_of(recording.header | known, str(path), *held, target)
    if not path.is_file():
        raise BnnvizError(f"There is no {path}; give a recording's folder, a spec (JSON) or a saved run (.nc).", "run")
    if path.suffix == ".nc":
        return past_of(_netcdf(path), str(path), target=target)
    try:
        spec = plain_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BnnvizError(f"{path} cannot be read ({error.strerror or error}).", "run") from None
    except ValueError:
        spec = None
    if not isinstance(spec, dict):
        raise BnnvizError(f"{path} is not a JSON object, so it is neither a spec nor the header of a recording.", "run")
    if "entries" in spec:
        raise BnnvizError(f"{path} is a race; only runs of one sampler are replayed.", "run")
    return PastRun(Spec.from_json(spec))


def _netcdf(path: Path) -> dict[str, Any]:
    h5py = optional.require("h5py", "Saved runs need")
    try:
        with h5py.File(path, "r") as file:
            found = plain_json(file.attrs["bnnviz"])
    except (OSError, KeyError, TypeError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise BnnvizError(f"{path} is not a run saved by bnnviz, or it is damaged.", "run")
    return found


def frames_of(
    path: str | Path,
    frames: int = FRAMES,
    *,
    steps: int | None = None,
    progress: Callable[[float, str], Any] | None = None,
) -> ReplayFrames:
    """Return the replay frames in a file, or of the run that a path names, which is repeated."""
    if Path(path).suffix == ".npz":
        return ReplayFrames.load(path)
    return take_frames(read_past(path), frames, steps=steps, progress=progress)


# --- repeating a run


def _begin(past: PastRun) -> tuple[AnyRun, str]:
    """Return the run at its start, and a message on its device."""
    from bnnviz.engine.run.device import choose_device
    from bnnviz.engine.viewed_run import ViewedRun

    spec, note = past.spec, ""
    if not is_here(past.device):
        note = f"It was computed on {past.device}, which is not here: from another device its draws differ."
        spec = spec.replace(device="auto")
    elif past.device is not None:
        spec = spec.replace(device=str(choose_device(past.device)))
    if any("kernel" in settings for _, settings in past.changes):
        # The change log has the step at which compilation took effect.
        spec = spec.replace(kernel="eager")
    return ViewedRun(spec, target=past.target), note


@dataclass
class _Taking:
    """Advance a run from frame to frame up to its ``last`` step, and repeat its changes at their steps."""

    run: AnyRun
    changes: deque[LoggedChange]
    last: int | None
    progress: Callable[[float, str], Any]

    @property
    def ended(self) -> bool:
        """Whether the run has no more steps to show."""
        return self.run.finished or (self.last is not None and self.run.steps >= self.last)

    @property
    def left(self) -> int | None:
        """Remaining steps, estimated from the remaining draws."""
        if self.last is not None:
            return self.last - self.run.steps
        share = self.run.progress
        return math.ceil(self.run.steps * (1 - share) / share) if share > 0 else None

    def advance(self, step: float) -> None:
        """Advance to this step or to the end, whichever comes first."""

        def room() -> int:
            """Return the maximum steps of the next block: short ones near the end barely exceed it."""
            left = self.left if self.last is None else None
            return LONGEST if left is None else max(1, left // 2)

        def tell() -> None:
            share = min(self.run.steps / self.last, 1.0) if self.last else self.run.progress
            self.progress(share, self.run.phase)

        end = step if self.last is None else min(step, self.last)
        replay(self.run, self.changes, end, slice_s=_SLICE_S, room=room, each=tell)
        make_changes(self.run, self.changes)


def parts(scene: dict[str, Any]) -> list[str]:
    """Return the parts of replay frames."""
    return [part for part in scene["emits"] if part not in _SKIPPED]


def _frame(run: AnyRun, scene: dict[str, Any], measure: Callable[..., Any] | None) -> dict[str, Any]:
    """Take a complete frame, as of a run at rest."""
    run.frame([])
    frame = run.frame(parts(scene))
    frame[_STATUS] = {name: value for name, value in frame[_STATUS].items() if name not in _CLOCKS}
    return copied(frame if measure is None else frame | {"measured": measure(run, frame)})


def save(path: Path, content: bytes) -> None:
    """Write a file atomically, and its folder if missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise BnnvizError(f"{path} cannot be written ({error.strerror or error}).", "out") from error


def copied(value: Any) -> Any:
    """Return a value with numpy scalars as Python's and arrays copied."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(copied(each) for each in value)
    return [copied(each) for each in value] if isinstance(value, list) else value

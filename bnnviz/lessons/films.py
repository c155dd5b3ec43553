"""Render the frames of lessons, and keep them: a file for each lesson, with every position of its knobs."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from bnnviz.engine.frames import codec
from bnnviz.engine.recording.replay_frames import PastRun, ReplayFrames, take_frames
from bnnviz.errors import BnnvizError
from bnnviz.figures.listing import BY_NAME
from bnnviz.lessons import quantities
from bnnviz.lessons.content import FILMS, Film, Lesson
from bnnviz.specs.run import Spec

_BITS = 11  # of a float32's 23 that are dropped: 1 part in 8,000 is kept
_PARTS = {view.needs[0]: view.needs for view in BY_NAME.values()}


def frames_of(film: Film, spec: Spec, frames: int, steps: int, names: Collection[str]) -> ReplayFrames:
    """Run a spec to a step, and return its frames with some quantities at each."""

    def measure(run: Any, frame: dict[str, Any]) -> dict[str, float]:
        return {name: quantities.measure(name, run, frame) for name in sorted(names)}

    only = {part for view in film.views for part in _PARTS[view]}
    return take_frames(PastRun(spec.checked()), frames, steps=steps, only=only, watch=film.watch, measure=measure)


def stated(lesson: Lesson, film: Film) -> set[str]:
    """Return the measured quantity at each frame of a film."""
    claimed = {claim.quantity for step in lesson.steps if step.film is film for claim in step.claims}
    return {*claimed, *({film.number} if film.number else ())}


def digest(value: Any) -> str:
    """Return a short text that differs where values differ."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=list).encode()).hexdigest()[:16]


def key(lesson: Lesson, film: Film, place: int) -> str:
    """Return a fingerprint of everything that determines the frames of a film."""
    return digest([film.identity(place), film.views, film.frames, film.steps, sorted(stated(lesson, film))])


def outdated(lesson: Lesson) -> list[str]:
    """Return the films of a lesson that are not rendered yet, or were rendered from another spec."""
    kept = _read(lesson.name)
    return [
        f"{film.name} at {value}"
        for film in lesson.films.values()
        for place, value in enumerate(film.values)
        if kept.get(f"{film.name}-{place}", {}).get("key") != key(lesson, film, place)
    ]


def render(lesson: Lesson, report: Callable[[str], None]) -> None:
    """Render the films of a lesson whose spec has changed, and keep the others."""
    kept = {each["key"]: each for each in _read(lesson.name).values()}
    found: dict[str, Any] = {}
    for film in lesson.films.values():
        for place, value in enumerate(film.values):
            mark = key(lesson, film, place)
            if mark not in kept:
                report(f"{lesson.name}: {film.name} at {value}")
                made = frames_of(film, film.at(value), film.frames, film.steps, stated(lesson, film))
                parts = {"scene": made.scene, "frames": made.frames, "header": made.header}
                kept[mark] = {"key": mark, **_small(parts)}
                _write(lesson.name, kept)
            found[f"{film.name}-{place}"] = kept[mark]
    _write(lesson.name, found)


def take(lesson: Lesson, film: Film, place: int) -> ReplayFrames:
    """Return the rendered frames of a film at a position of its knob."""
    kept = _read(lesson.name).get(f"{film.name}-{place}")
    if kept is None:
        raise BnnvizError(f"The films of {lesson.name} are not rendered; run python -m bnnviz.lessons.", "lesson")
    return ReplayFrames(kept["scene"], kept["frames"], kept["header"])


def _write(name: str, films: dict[str, Any]) -> None:
    FILMS.mkdir(exist_ok=True)
    (FILMS / f"{name}.npz").write_bytes(codec.pack(films))
    _read.cache_clear()


@functools.cache
def _read(name: str) -> dict[str, Any]:
    path = FILMS / f"{name}.npz"
    return codec.unpack(path.read_bytes()) if path.is_file() else {}


def _small(value: Any) -> Any:
    """Return frames with arrays in 32 bits, of which a figure shows the first 12."""
    if isinstance(value, dict):
        return {name: _small(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_small(each) for each in value)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind == "f":
        bits = value.astype(np.float32).view(np.uint32)
        return ((bits + (1 << (_BITS - 1))) >> _BITS << _BITS).view(np.float32)
    return value.astype(np.int32) if value.dtype == np.int64 and np.abs(value).max(initial=0) < 2**31 else value

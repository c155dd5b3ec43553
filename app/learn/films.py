"""Film the steps of a lesson: the run of each from its beginning, with all that the step does in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bnnviz import views
from bnnviz.engine.drive import replay
from bnnviz.engine.protocol import LoggedChange
from bnnviz.engine.recording.replay_frames import PastRun, ReplayFrames, take_frames
from bnnviz.errors import BnnvizError
from bnnviz.replays.lesson import Passage, ReplayLesson, ReplayQuestion, ReplayStep
from bnnviz.specs.run import Spec
from bnnviz_app.learn import glossary, languages, lessons
from bnnviz_app.learn.glossary import FoundTerm
from bnnviz_app.learn.grid import TABLE, grid
from bnnviz_app.learn.lessons import Lesson, LessonQuestion, LessonStep, LivePicture

FRAMES, STEPS = 200, 10_000  # of a film; of a run that plays on, where its step does not say how long
_BEFORE = 3000  # steps of a run that plays, before each change that is made in it
#: What a film takes beside the parts that a step shows.
_ALWAYS = ("caption", "events")
_VIEWS = {view.needs[0]: view for view in views.BY_NAME.values()}
_SLICE_S = 0.2


def film(
    place: str,
    language: str = languages.DEFAULT,
    frames: int = FRAMES,
    steps: int | None = None,
    progress: Callable[[float, str], Any] = lambda share, phase: None,
) -> ReplayLesson:
    """Film a step of a lesson, or all of its steps, with their texts."""
    code = languages.found(language)
    if code is None:
        raise BnnvizError(
            f"There are no lessons in {language!r}; choose one of {' or '.join(languages.names())}.", "lang"
        )
    name, _, asked = place.partition("/")
    lesson = lessons.load(code).get(name)
    if lesson is None:
        raise BnnvizError(f"There is no lesson {name!r}; choose one of {', '.join(lessons.load(code))}.", "lesson")
    numbers = range(len(lesson.steps)) if not asked else [_number(lesson, asked)]
    if not any(lesson.steps[number].picture.filmable for number in numbers):
        which = f"Step {numbers[0] + 1} of {name} has no film" if asked else f"No step of {name} has a film"
        raise BnnvizError(f"{which}: {_why_not(lesson.steps[numbers[0]].picture)}.", "lesson")
    made = []
    for done, number in enumerate(numbers):
        step = lesson.steps[number]

        def tell(share: float, phase: str, done: int = done, title: str = step.title) -> None:
            progress((done + share) / len(numbers), title)

        made.append(_step(step, number, code, lambda picture: take(picture, frames, steps, tell)))
    return _lesson(lesson, tuple(made), code)


def take(
    picture: LivePicture,
    frames: int = FRAMES,
    steps: int | None = None,
    progress: Callable[[float, str], Any] = lambda share, phase: None,
) -> ReplayFrames:
    """Do what a step does in its run, and take the frames of it."""
    changes, last, watch = plan(picture, steps)
    parts = {need for part in picture.show if part != TABLE for need in _VIEWS[part].needs}
    shown = {*parts, *_ALWAYS, *({TABLE} & set(picture.show))}
    past = PastRun(picture.spec, changes, last)
    return take_frames(past, frames, only=shown, watch=watch, progress=progress)


def plan(picture: LivePicture, steps: int | None = None) -> tuple[list[LoggedChange], int, dict[str, Any]]:
    """Return the changes that a step makes in its run, the run's last step, and what is watched."""
    steps = steps or picture.film or STEPS
    changes: list[LoggedChange] = []
    watch: dict[str, Any] = {}
    last, playing = 0, False
    for kind, value in picture.from_start:
        if kind in ("play", "pause"):
            playing = kind == "play"
        elif kind == "watch":
            watch |= value
        elif kind == "change":
            last += min(_BEFORE, steps) if playing else 0
            changes.append((last, dict(value)))
        elif kind == "proposal":
            last, playing = last + value, False
        elif kind == "event":
            last, playing = _after_events(picture.spec, changes, last, value), False
    return changes, last + (steps if playing else 0), watch


def _after_events(spec: Spec, changes: Sequence[LoggedChange], step: int, events: int) -> int:
    """Return the step after so many events of the watched chain, from a step on."""
    from bnnviz.engine.viewed_run import ViewedRun  # it loads torch

    run, left = ViewedRun(spec), deque(changes)
    run.prepare()
    while run.phase == "start":
        run.advance(_SLICE_S)
    replay(run, left, step, slice_s=_SLICE_S)
    for _ in range(events):
        run.step_event()
    return run.steps


def _number(lesson: Lesson, asked: str) -> int:
    """Return the place of a step, from 0; the question has that of the last step."""
    count = len(lesson.steps)
    if not (asked.isascii() and asked.isdigit() and len(asked) < 6 and 1 <= int(asked) <= count + 1):
        raise BnnvizError(f"{lesson.name} has steps 1 to {count}, and none {asked!r}.", "lesson")
    return min(int(asked), count) - 1


def _why_not(picture: LivePicture) -> str:
    return "it is tried by hand" if picture.piece else "only runs of one sampler are filmed"


# --- what is said


def _lesson(lesson: Lesson, steps: tuple[ReplayStep, ...], language: str) -> ReplayLesson:
    words = languages.page(language)
    kept = {name: words[name] for name in ("question", "back", "next", "right", "wrong")}
    return ReplayLesson(lesson.title, steps, _question(lesson.question, language), kept, language)


def _step(step: LessonStep, number: int, language: str, taken: Callable[[LivePicture], ReplayFrames]) -> ReplayStep:
    text, terms = _passage(step.text, language)
    texts = {"number": number + 1, "title": step.title, "text": text, "terms": tuple(terms.items())}
    if not step.picture.filmable:
        return ReplayStep(**texts, film=None, note=languages.page(language)["no_film"])
    return ReplayStep(**texts, film=taken(step.picture), show=step.picture.show, grid=grid(step.picture.show))


def _question(asked: LessonQuestion, language: str) -> ReplayQuestion:
    text, terms = _passage(asked.text, language)
    reason, more = _passage(asked.reason, language)
    choices = asked.choices
    return ReplayQuestion(text, choices, asked.answer, reason, tuple({**terms, **more}.items()))


def _passage(text: str, language: str) -> tuple[Passage, dict[str, str]]:
    """Return a text in pieces, and what its terms mean."""
    pieces = glossary.pieces(text, language)
    meanings = {each.term.term: each.term.meaning for each in pieces if isinstance(each, FoundTerm)}
    return tuple(_flat(pieces)), meanings


def _flat(pieces: Sequence[str | FoundTerm]) -> Iterator[tuple[str, bool]]:
    for piece in pieces:
        if isinstance(piece, str):
            parts = [(piece, False)]
        else:
            parts = [(piece.opening, False), (piece.word, True), (piece.closing, False)]
        yield from (part for part in parts if part[0])

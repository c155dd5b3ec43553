"""Read lessons: numbered steps, each a short text and a live picture, and a question at the end.

`app/lessons/NAME.json` says what a lesson shows: its ``order``, its ``minutes``, the number of the right ``answer``,
and ``steps``. A step has a list ``show`` of parts of a frame, and one of these:

- ``scene`` and ``step``: a step of a guided scene, by its name and number;
- ``run``, ``wells``, ``race`` or ``image_race``: a spec, which begins a new run;
- ``piece``: something to try by hand, by its name;
- none of them: the run of the step before goes on.

Each but a piece may have ``do``, actions as those of a guided scene, and besides ``watch``, what the views look at; and
``film``, the number of steps that its film plays on (`bnnviz_app.learn.films`).

`app/lessons/LANGUAGE/NAME.json` has all texts: ``title``, ``aim``, a ``title`` and a ``text`` for each of the
``steps``, and the ``question`` with its ``text``, its ``choices`` and the ``reason`` of the right one
(`bnnviz_app.learn.languages`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bnnviz.specs.race import ImageRaceSpec, RaceSpec
from bnnviz.specs.run import Spec
from bnnviz.specs.wells import WellsSpec
from bnnviz_app.components.guidance import scenes
from bnnviz_app.components.guidance.scenes import Action
from bnnviz_app.learn import languages
from bnnviz_app.learn.languages import FOLDER

_SPECS = {"wells": WellsSpec, "race": RaceSpec, "image_race": ImageRaceSpec}


@dataclass(frozen=True)
class LivePicture:
    """Hold what a step shows."""

    spec: Any
    goes_on: bool
    actions: tuple[Action, ...]
    from_start: tuple[Action, ...]
    show: tuple[str, ...]
    piece: str = ""
    scene: tuple[str, int] | None = None
    film: int | None = None

    @property
    def filmable(self) -> bool:
        """Whether a film shows it: the run of one sampler."""
        return isinstance(self.spec, Spec)


@dataclass(frozen=True)
class LessonStep:
    """Hold one step."""

    title: str
    text: str
    picture: LivePicture


@dataclass(frozen=True)
class LessonQuestion:
    """Hold what is asked at the end."""

    text: str
    choices: tuple[str, ...]
    answer: int
    reason: str


@dataclass(frozen=True)
class Lesson:
    """Hold a lesson."""

    name: str
    title: str
    aim: str
    minutes: int
    steps: tuple[LessonStep, ...]
    question: LessonQuestion


def load(language: str = languages.DEFAULT) -> dict[str, Lesson]:
    """Return all lessons by name, in their order."""
    return _load(language)


@functools.cache
def _load(language: str) -> dict[str, Lesson]:
    plans = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
    names = sorted(plans, key=lambda name: plans[name]["order"])
    return {name: read(name, plans[name], languages.text(language, name)) for name in names}


def read(name: str, plan: Mapping[str, Any], texts: Mapping[str, Any]) -> Lesson:
    """Make a lesson of what it shows and of its texts."""
    pictures = _pictures(plan["steps"])
    steps = tuple(
        LessonStep(said["title"], said["text"], picture) for said, picture in zip(texts["steps"], pictures, strict=True)
    )
    asked = texts["question"]
    question = LessonQuestion(asked["text"], tuple(asked["choices"]), plan["answer"], asked["reason"])
    return Lesson(name, texts["title"], texts["aim"], plan["minutes"], steps, question)


def _pictures(given: Sequence[Mapping[str, Any]]) -> list[LivePicture]:
    found: list[LivePicture] = []
    for step in given:
        picture = _picture(step, found[-1] if found else None)
        found.append(replace(picture, film=step.get("film")))
    return found


def _picture(step: Mapping[str, Any], before: LivePicture | None) -> LivePicture:
    show, actions = tuple(step.get("show", ())), tuple(map(scenes.action, step.get("do", ())))
    if "piece" in step:
        return LivePicture(None, False, (), (), show, piece=step["piece"])
    if "scene" in step:
        return _scene_picture(step["scene"], step["step"], show, before)
    if "run" in step:
        spec = Spec.from_json(scenes.merged(Spec(draws=None).to_json(), step["run"]))
        return LivePicture(spec, False, actions, actions, show)
    for kind, spec_class in _SPECS.items():
        if kind in step:
            return LivePicture(spec_class.from_json(step[kind]), False, actions, actions, show)
    if before is None or before.spec is None:
        raise ValueError(f"No run goes on before the step {step!r}.")
    return LivePicture(before.spec, True, actions, (*before.from_start, *actions), show)


def _scene_picture(name: str, number: int, show: tuple[str, ...], before: LivePicture | None) -> LivePicture:
    """Return a step of a scene, which goes on from the step before where that is the scene's step before."""
    scene = scenes.load()[name]
    spec, from_start = scene.beginning(number - 1)
    step = scene.steps[number - 1]
    goes_on = before is not None and before.scene == (name, number - 1) and step.begins is None
    return LivePicture(spec, goes_on, step.actions, tuple(from_start), show, scene=(name, number))

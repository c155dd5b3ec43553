"""Read guided scenes: presets that build up step by step, each a JSON file in the folder `app/scenes`.

A scene is a title, a summary, a spec, and steps. A step has a ``text`` and optionally:

- ``spec``: changes to the spec, which begin a new run;
- ``do``: actions in their order: ``play``, ``pause``, ``proposal``, ``event`` (with a number: repeated),
  ``speed`` (steps a second, 0 for full speed), ``change`` (new values of live settings);
- ``focus``: the parts of the page that are ringed;
- ``hide``: the parts that are not shown;
- ``ask``: a ``question`` with ``choices``, the number of the right ``answer`` and a text to ``reveal``. The run
  begins, and ``do`` is executed, when the student has chosen.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bnnviz.specs.run import Spec

FOLDER = Path(__file__).parents[2] / "scenes"
ACTIONS = ("play", "pause", "proposal", "event", "speed", "change")

Action = tuple[str, Any]


@dataclass(frozen=True)
class Ask:
    """A question before the run that answers it."""

    question: str
    choices: tuple[str, ...]
    answer: int
    reveal: str

    def answer_text(self, chosen: int | None) -> str:
        """Return the response to a choice, or to None without a choice."""
        if chosen is None:
            return f"It is: {self.choices[self.answer]}. {self.reveal}"
        return f"{'Right' if chosen == self.answer else 'No'}: {self.choices[self.answer]}. {self.reveal}"


@dataclass(frozen=True)
class SceneStep:
    """One step of a scene."""

    text: str
    spec: Spec
    begins: Spec | None
    actions: tuple[Action, ...]
    focus: frozenset[str]
    hide: frozenset[str]
    ask: Ask | None


@dataclass(frozen=True)
class Scene:
    """A guided scene."""

    name: str
    title: str
    summary: str
    predict: bool
    steps: tuple[SceneStep, ...]

    def running(self, number: int, asking: bool = False) -> Spec:
        """Return the running spec of step `number`, live changes included."""
        if asking:
            return self.steps[number - 1].spec if number else self.steps[0].begins
        return self.steps[number].spec

    def beginning(self, number: int, asking: bool = False) -> tuple[Spec, list[Action]]:
        """Return the initial spec of the run in step `number`, and the actions up to there."""
        if asking:
            return self.beginning(number - 1) if number else (self.steps[0].begins, [])
        first = max(i for i in range(number + 1) if self.steps[i].begins is not None)
        actions = [action for step in self.steps[first : number + 1] for action in step.actions]
        return self.steps[first].begins, actions


@functools.cache
def load() -> dict[str, Scene]:
    """Return all scenes by name, in the order of their numbers."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
    return {name: read(name, found[name]) for name in sorted(found, key=lambda name: found[name]["order"])}


def read(name: str, value: Mapping[str, Any]) -> Scene:
    """Make a scene of its JSON, every spec checked."""
    steps: list[SceneStep] = []
    current = Spec(draws=None).to_json()
    for i, given in enumerate(value["steps"]):
        changes = given.get("spec")
        if i == 0:
            current = merged(merged(current, value["spec"]), changes or {})
        elif changes is not None:
            current = merged(current, changes)
        begins = Spec.from_json(current) if i == 0 or changes is not None else None
        actions = tuple(action(entry) for entry in given.get("do", []))
        for kind, settings in actions:
            if kind == "change":
                current = merged(current, {"settings": settings})
        steps.append(
            SceneStep(
                given["text"],
                Spec.from_json(current),
                begins,
                actions,
                frozenset(given.get("focus", [])),
                frozenset(given.get("hide", [])),
                _ask(given["ask"]) if "ask" in given else None,
            )
        )
    return Scene(name, value["title"], value["summary"], any(step.ask for step in steps), tuple(steps))


def merged(spec: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Change a spec's JSON; another target or sampler begins with its own defaults."""
    result = dict(spec)
    for name, settings in (("target", "target_settings"), ("sampler", "settings")):
        if changes.get(name, result[name]) != result[name]:
            result[settings] = {}
    for name, value in changes.items():
        result[name] = {**result[name], **value} if isinstance(value, dict) else value
    return result


def action(entry: str | dict[str, Any]) -> Action:
    """Return the name and the value of an action as it is written in a file."""
    if isinstance(entry, str):
        return (entry, 1)
    ((name, value),) = entry.items()
    return (name, value)


def _ask(value: Mapping[str, Any]) -> Ask:
    return Ask(value["question"], tuple(value["choices"]), value["answer"], value["reveal"])

"""Read the lessons of `bnnviz/lessons/content`, in English or translated by the gettext catalogues in `locale`.

A lesson has a ``title``, an ``aim``, its ``order``, the literature as ``reading``, and

- ``films.NAME``: a ``spec``, the ``views`` to show, and the number of ``frames`` up to step ``steps``. A ``knob`` lists
  ``values`` of one setting, such as ``settings.alpha``; each value is a separate film. ``number`` is the quantity
  shown in large type, and ``label`` its name.
- ``steps``: a ``title``, a ``text``, the name of a ``film``, and the step of the run that it opens ``at`` (the last one
  by default), at another ``value`` of the knob if it names one. ``ask`` is a question before the picture, ``why`` the
  reasoning below it.
- ``claims`` of a step: a ``quantity`` (`bnnviz.lessons.quantities`) and the ``interval`` that has to hold it, with all
  20 seeds or, where ``seeds = 1``, in the film alone.
- ``question``: a ``text`` and ``choices``, each with the feedback that it gets, and the number of the right ``answer``.

Texts are Markdown with formulas between dollar signs. ``[bounces](term:bounce)`` links a term of the glossary,
``[2.54](claim:variance)`` a claim.
"""

from __future__ import annotations

import functools
import io
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bnnviz import optional
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec

FOLDER = Path(__file__).parent
FILMS = FOLDER / "films"  # rendered frames, a file for each lesson
LANGUAGES = {"en": "English", "de": "Deutsch"}
DEFAULT = "en"
SEEDS = 20  # that check a claim
_PAGE, _GLOSSARY, _FIGURES = "page", "glossary", "figures"  # files other than lessons

Translate = Callable[[str], str]


@dataclass(frozen=True)
class Knob:
    """The setting that a reader can change, and its films."""

    label: str
    setting: str
    values: tuple[Any, ...]
    value: Any
    names: tuple[str, ...]


@dataclass(frozen=True)
class Film:
    """The run of a film, its length and its views."""

    name: str
    given: Mapping[str, Any]  # of the spec, without defaults
    spec: Spec
    views: tuple[str, ...]
    frames: int
    steps: int
    number: str
    label: str
    knob: Knob | None
    watch: Mapping[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> tuple[Any, ...]:
        """The positions of the knob; None without a knob."""
        return (None,) if self.knob is None else self.knob.values

    @property
    def opening(self) -> int:
        """The place of the value that the film opens with."""
        return 0 if self.knob is None else self.knob.values.index(self.knob.value)

    def identity(self, place: int) -> list[Any]:
        """Return the spec of its run at a position of the knob as JSON values."""
        knob = None if self.knob is None else [self.knob.setting, self.values[place]]
        return [dict(self.given), knob, dict(self.watch)]

    def at(self, value: Any, seed: int | None = None) -> Spec:
        """Return the spec at a position of the knob."""
        spec = self.spec if seed is None else self.spec.replace(seed=seed)
        if self.knob is None:
            return spec
        owner, _, name = self.knob.setting.rpartition(".")
        return spec.replace(**{owner: {**getattr(spec, owner), name: value}} if owner else {name: value})


@dataclass(frozen=True)
class Claim:
    """A number in a text: its quantity, and the interval that must contain it."""

    name: str
    quantity: str
    interval: tuple[float, float]
    seeds: int = SEEDS
    view: str = ""  # that shows it; otherwise the number in large type does


@dataclass(frozen=True)
class Question:
    """A question, its choices and the answer to each."""

    text: str
    choices: tuple[str, ...]
    feedback: tuple[str, ...]
    answer: int


@dataclass(frozen=True)
class Step:
    """One step of a lesson."""

    title: str
    text: str
    film: Film
    place: int
    at: int
    claims: tuple[Claim, ...]
    ask: Question | None
    why: str


@dataclass(frozen=True)
class Lesson:
    """A lesson."""

    name: str
    order: int
    title: str
    aim: str
    films: Mapping[str, Film]
    steps: tuple[Step, ...]
    question: Question
    reading: str


def load(language: str = DEFAULT) -> dict[str, Lesson]:
    """Return the lessons whose films are rendered, by name, in their order."""
    rendered = {path.stem for path in FILMS.glob("*.npz")}
    return {name: lesson for name, lesson in written(language).items() if name in rendered}


def written(language: str = DEFAULT) -> dict[str, Lesson]:
    """Return all lessons by name, in their order, with films or without."""
    return _load(check_language(language))


def find(name: str, language: str = DEFAULT) -> Lesson:
    """Return a lesson."""
    lessons = load(language)
    if name not in lessons:
        raise BnnvizError(f"There is no lesson {name!r}; choose one of {', '.join(lessons)}.", "lesson")
    return lessons[name]


def words(language: str = DEFAULT) -> dict[str, str]:
    """Return the labels of buttons and headings."""
    return {name: _translation(language)(text) for name, text in _plain(_PAGE).items()}


def glossary(language: str = DEFAULT) -> dict[str, tuple[str, str]]:
    """Return each term and its meaning in a language, by its English name."""
    translate = _translation(language)
    return {term: (translate(term), translate(meaning)) for term, meaning in _plain(_GLOSSARY).items()}


def figure_texts(language: str) -> list[tuple[str, str]]:
    """Return the texts of figures with their translations, the most specific first."""
    texts = sorted(_plain(_FIGURES)["texts"], key=len, reverse=True)
    return [(text, _translation(language)(text)) for text in texts]


def check_language(language: str) -> str:
    """Return a language if there are lessons in it."""
    if language not in LANGUAGES:
        raise BnnvizError(f"There are no lessons in {language!r}; choose {' or '.join(LANGUAGES)}.", "language")
    return language


def messages() -> list[str]:
    """Return every text that a catalogue translates."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    for name in _names():
        _read(name, note)
    found += [*_plain(_PAGE).values(), *_plain(_FIGURES)["texts"]]
    found += [text for pair in _plain(_GLOSSARY).items() for text in pair]
    return [text for text in dict.fromkeys(found) if text]


def catalogue(language: str) -> Path:
    """Return the file with the translations of a language."""
    return FOLDER / "locale" / f"{language}.po"


@functools.cache
def _load(language: str) -> dict[str, Lesson]:
    lessons = [_read(name, _translation(language)) for name in _names()]
    return {lesson.name: lesson for lesson in sorted(lessons, key=lambda lesson: lesson.order)}


def _names() -> list[str]:
    names = (path.stem for path in (FOLDER / "content").glob("*.toml"))
    return sorted(name for name in names if name not in (_PAGE, _GLOSSARY, _FIGURES))


@functools.cache
def _plain(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / "content" / f"{name}.toml").read_text(encoding="utf-8"))


@functools.cache
def _translation(language: str) -> Translate:
    """Return the translation function; texts missing in the catalogue stay English."""
    if language == DEFAULT:
        return lambda text: text
    pofile = optional.require("babel.messages.pofile", "Translated lessons need")
    found = pofile.read_po(io.BytesIO(catalogue(language).read_bytes()))
    known = {message.id: message.string for message in found if message.id and message.string}
    return lambda text: known.get(text, text)


def _read(name: str, translate: Translate) -> Lesson:
    plan = _plain(name)
    title, aim = translate(plan["title"]), translate(plan["aim"])
    films = {key: _film(key, each, translate) for key, each in plan["films"].items()}
    steps = tuple(_step(each, films, translate) for each in plan["steps"])
    question = _question(plan["question"], translate)
    return Lesson(name, plan["order"], title, aim, films, steps, question, plan["reading"])


def _film(name: str, plan: Mapping[str, Any], translate: Translate) -> Film:
    knob = None
    if "knob" in plan:
        given = plan["knob"]
        values = tuple(given["values"])
        names = map(translate, given["names"]) if "names" in given else (f"{value:g}" for value in values)
        knob = Knob(translate(given["label"]), given["setting"], values, given["value"], tuple(names))
    return Film(
        name,
        plan["spec"],
        Spec.from_json({**Spec(draws=None).to_json(), "target_settings": {}, "settings": {}, **plan["spec"]}),
        tuple(plan["views"]),
        plan.get("frames", plan["steps"] + 1),
        plan["steps"],
        plan.get("number", ""),
        translate(plan.get("label", "")),
        knob,
        plan.get("watch", {}),
    )


def _step(plan: Mapping[str, Any], films: Mapping[str, Film], translate: Translate) -> Step:
    film = films[plan["film"]]
    claims = (Claim(**{**claim, "interval": tuple(claim["interval"])}) for claim in plan.get("claims", []))
    return Step(
        translate(plan["title"]),
        translate(plan["text"].strip()),
        film,
        film.values.index(plan["value"]) if "value" in plan else film.opening,
        plan.get("at", film.steps),
        tuple(claims),
        _question(plan["ask"], translate) if "ask" in plan else None,
        translate(plan.get("why", "").strip()),
    )


def _question(plan: Mapping[str, Any], translate: Translate) -> Question:
    choices, feedback = zip(*plan["choices"], strict=True)
    return Question(
        translate(plan["text"]), tuple(map(translate, choices)), tuple(map(translate, feedback)), plan["answer"]
    )

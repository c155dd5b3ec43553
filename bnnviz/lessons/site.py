"""Make the lessons a folder of static files: a page for each lesson, two shared scripts, and a script for each film.

The folder works on any web server, from ``file://`` and in frames of other pages. Notebooks show a self-contained page
with its films and the player.
"""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

from bokeh.core.json_encoder import serialize_json

from bnnviz.engine.recording.replay_frames import save
from bnnviz.errors import BnnvizError
from bnnviz.lessons import content, evidence, films, text
from bnnviz.lessons.content import LANGUAGES, Film, Lesson, Question, Step
from bnnviz.replays import player
from bnnviz.specs import catalogue, url

_HERE = Path(__file__).parent
_FILM = re.compile(r"films/([\w-]+)-(\w+)-(\d+)\.js")
_LEAST = 20  # pixels of type on a projector
PLAYER, BOKEH, INDEX = "player.js", "bokeh.js", "index.html"


def write(folder: Path) -> None:
    """Write all files into a folder; refuse to where a claim of a text does not hold."""
    evidence.require(content.load())
    for name in names():
        save(folder / name, file(name))


def names() -> Iterator[str]:
    """Yield the names of all files."""
    yield from (INDEX, PLAYER, BOKEH)
    for lesson in content.load().values():
        yield f"{lesson.name}.html"
        for film in lesson.films.values():
            yield from (f"films/{_id(lesson, film, place)}.js" for place in range(len(film.values)))


@functools.cache
def file(name: str) -> bytes:
    """Return a file of the folder; raise KeyError if no such file exists."""
    if name == PLAYER:
        return _script().encode()
    if name == BOKEH:
        return player.bokeh_js().encode()
    if name == INDEX:
        lists = "\n".join(map(_list, LANGUAGES))
        index = Template((_HERE / "index.html").read_text(encoding="utf-8"))
        return index.substitute(style=player.style(), lists=lists, codes=json.dumps(list(LANGUAGES))).encode()
    if name.removesuffix(".html") in content.load() and name.endswith(".html"):
        return page(name.removesuffix(".html")).encode()
    found = _FILM.fullmatch(name)
    lesson = content.load()[found[1] if found else name]
    film = lesson.films[found[2]]
    if int(found[3]) >= len(film.values):
        raise KeyError(name)
    packed = (player.compressed(part) for part in _packed(lesson, film, int(found[3])))
    return f'bnnviz_hold({json.dumps(_id(lesson, film, int(found[3])))}, "{next(packed)}", "{next(packed)}")\n'.encode()


def page(name: str, step: int = 1, language: str = content.DEFAULT, alone: bool = False) -> str:
    """Return the page of a lesson; ``alone`` has the player and the films in it, and needs no other file."""
    lesson = content.find(name)
    if not 1 <= step <= len(lesson.steps) + 1:
        raise BnnvizError(f"{name} has steps 1 to {len(lesson.steps) + 1}; there is no step {step}.", "step")
    shared = player.shared_words()
    shared |= {"magnified": _LEAST / min(shared["letter"], shared["tick"]), "large": False}
    order = [content.check_language(language), *(code for code in LANGUAGES if code != language)]
    shared["lesson"] = _plan(lesson) | {"begin": str(step), "languages": order, "linked": not alone}
    held = {"shared": serialize_json(shared).encode()}
    if alone:
        for film in lesson.films.values():
            for place in range(len(film.values)):
                made = _id(lesson, film, place)
                held[f"content-{made}"], held[f"numbers-{made}"] = _packed(lesson, film, place)
        scripts = f"<script>{_script()}</script><script>{player.bokeh_js()}</script>"
    else:
        scripts = f'<script src="{PLAYER}"></script><script src="{BOKEH}"></script>'
    template = (Path(player.__file__).parent / "player.html").read_text(encoding="utf-8")
    template = re.sub(r"<meta http-equiv=.Content-Security-Policy.*\n", "", template)
    return Template(template).substitute(
        {name: html.escape(label) for name, label in (player.WORDS | content.words(language)).items()},
        language=language,
        heading=html.escape(lesson.title),
        style=player.style() + (_HERE / "lesson.css").read_text(encoding="utf-8"),
        held=player.held_parts(held),
        scripts=scripts,
    )


def _script() -> str:
    """Return the player of lessons; it runs before BokehJS, so that texts do not wait for that."""
    return (_HERE / "lesson.js").read_text(encoding="utf-8") + player.script()


def _list(code: str) -> str:
    """Return the list of lessons and steps in a language, with relative links."""
    words, escape = content.words(code), html.escape
    other = next(name for name in LANGUAGES if name != code)
    parts = [
        f'<main lang="{code}"><p class="languages"><a href="#lang={other}" lang="{other}">{LANGUAGES[other]}</a></p>',
        f"<h1>{escape(words['heading'])}</h1><p>{escape(words['about'])}</p><ol class='lessons'>",
    ]
    for lesson in content.load(code).values():
        titles = [*(step.title for step in lesson.steps), words["question"]]
        links = (
            f'<li><a href="{lesson.name}.html#{number}&amp;lang={code}">{escape(title)}</a></li>'
            for number, title in enumerate(titles, start=1)
        )
        first = f'<a href="{lesson.name}.html#1&amp;lang={code}">{escape(lesson.title)}</a>'
        parts.append(f"<li><h2>{first}</h2><p>{escape(lesson.aim)}</p><ol>{''.join(links)}</ol></li>")
    return "".join([*parts, "</ol></main>"])


# --- the data of a lesson's page


def _plan(lesson: Lesson) -> dict[str, Any]:
    """Return the steps and films of a lesson, and its texts in all languages, as JSON has them."""
    order = list(content.load())
    after = order[order.index(lesson.name) + 1 :]
    return {
        "name": lesson.name,
        "after": after[0] if after else None,
        "films": {name: _film(lesson, film) for name, film in lesson.films.items()},
        "steps": [
            {
                "film": step.film.name,
                "place": step.place,
                "frame": opening_frame(lesson, step),
                "claims": {
                    claim.name: {"view": claim.view, "quantity": claim.quantity, "interval": claim.interval}
                    for claim in step.claims
                },
            }
            for step in lesson.steps
        ],
        "texts": {code: _texts(content.find(lesson.name, code), code) for code in LANGUAGES},
    }


def _film(lesson: Lesson, film: Film) -> dict[str, Any]:
    taken = [films.take(lesson, film, place) for place in range(len(film.values))]
    shown = sorted(films.stated(lesson, film))
    emits = catalogue.find("samplers", film.spec.sampler)["emits"]
    return {
        "number": film.number,
        "page": "population" if "population" in emits else "lab",
        "live": [url.query_text(film.at(value).checked().to_query()) for value in film.values],
        "measured": [
            {name: [_rounded(frame["measured"][name]) for frame in each.frames] for name in shown} for each in taken
        ],
    }


def _rounded(value: float) -> float | None:
    return float(f"{value:.4g}") if abs(value) < float("inf") else None


def opening_frame(lesson: Lesson, step: Step) -> int:
    """Return the frame that a step opens at: the last one at or before its step of the run."""
    steps = films.take(lesson, step.film, step.place).steps
    return max(number for number, each in enumerate(steps) if each <= step.at or number == 0)


def _texts(lesson: Lesson, language: str) -> dict[str, Any]:
    glossary = content.glossary(language)
    written = [part for step in lesson.steps for part in (step.text, step.why, *_parts(step.ask))]
    used = {term for part in (*written, *_parts(lesson.question)) for term in text.linked(part, "term")}
    other = next(name for name in LANGUAGES if name != language)
    return {
        "title": lesson.title,
        "aim": lesson.aim,
        "words": content.words(language) | {"other": LANGUAGES[other]},
        "figures": [] if language == content.DEFAULT else content.figure_texts(language),
        "films": {
            name: {
                "label": film.label,
                "knob": film.knob.label if film.knob else "",
                "names": list(film.knob.names) if film.knob else [],
            }
            for name, film in lesson.films.items()
        },
        "steps": [
            {
                "title": step.title,
                "html": text.render(step.text),
                "why": text.render(step.why),
                "ask": step.ask and _question(step.ask),
            }
            for step in lesson.steps
        ],
        "question": _question(lesson.question),
        "reading": text.render(lesson.reading),
        "terms": {term: glossary[term] for term in sorted(used)},
    }


def _parts(question: Question | None) -> tuple[str, ...]:
    return () if question is None else (question.text, *question.choices, *question.feedback)


def _question(question: Question) -> dict[str, Any]:
    pairs = zip(question.choices, question.feedback, strict=True)
    return {
        "html": text.render(question.text),
        "answer": question.answer,
        "choices": [{"html": text.inline(choice), "feedback": text.render(statement)} for choice, statement in pairs],
    }


def _packed(lesson: Lesson, film: Film, place: int) -> tuple[bytes, bytes]:
    """Return a film as the player reads it, with the views side by side under the bar."""
    views = film.views
    columns = "minmax(0, 1fr)" if len(views) == 1 else "minmax(0, 5fr) minmax(0, 4fr)"
    grid = f'"{" ".join(["bar"] * len(views))}" auto "{" ".join(views)}" minmax(0, 1fr) / {columns}'
    return player.pack(films.take(lesson, film, place), views, grid)


def _id(lesson: Lesson, film: Film, place: int) -> str:
    return f"{lesson.name}-{film.name}-{place}"

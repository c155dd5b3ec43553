"""Answer the small requests that report the question and the teacher's place to the pages of a class.

``GET class``, relative to a page, returns both as JSON. ``POST class`` takes a student's answer
(``{"question": number, "choice": i}``) or a command of the teacher: ``{"ask": {"lesson": name}}``,
``{"ask": {"text": ..., "choices": [...], "answer": i}}``,
``{"at": {"lesson": name, "step": number}}``, or ``{"do": "close"}``, ``show``, ``end`` or ``again``.
Each request is checked by its own cookies.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

import panel as pn
from bokeh.server.tornado import BokehTornado
from tornado.web import RequestHandler

from bnnviz.errors import BnnvizError
from bnnviz.lessons import content, text
from bnnviz_app.access import roles
from bnnviz_app.access.gate import Gate
from bnnviz_app.classroom.poll import Poll, PollQuestion, PollText, typed

_PATH = "/class"  # relative to the page
_CLASS = "class"  # in Panel's cache
_MOST_ANSWER, _MOST_QUESTION = 200, 20_000  # bytes of a body
_PRESENT_S = 10.0  # since a page's last request
_MALFORMED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


class Classroom:
    """The question of a class, the place of its teacher, and the recently active students."""

    def __init__(self) -> None:
        self.poll = Poll()
        self.place: dict[str, Any] | None = None
        self._seen: dict[str, float] = {}

    def move(self, query: str, titles: Mapping[str, str], step: int | None = None) -> None:
        """Note the page that the teacher is at: its address, its title in each language, and its step from 1."""
        self.place = {"query": query, "titles": dict(titles), "step": step}

    def greet(self, person: str) -> None:
        """Note that a student's page is open."""
        self._seen[person] = time.monotonic()

    @property
    def people(self) -> int:
        """The number of students with an open page."""
        now = time.monotonic()
        self._seen = {person: at for person, at in self._seen.items() if now - at < _PRESENT_S}
        return len(self._seen)


def current() -> Classroom:
    """Return the class of this server."""
    return pn.state.cache.setdefault(_CLASS, Classroom())


def leads() -> bool:
    """Return whether the present page belongs to the teacher of a class."""
    return roles.is_class() and roles.present() is roles.OWNER


def answer_class(application: BokehTornado, gate: Gate, route: str) -> None:
    """Add the routes of a class to a server."""
    path = f"{re.escape(application.prefix)}(?:{re.escape(route)})?{_PATH}"
    application.add_handlers(".*", [(path, _ClassHandler, {"gate": gate, "classroom": current()})])


class _ClassHandler(RequestHandler):
    """Answer one request of a page."""

    def initialize(self, gate: Gate, classroom: Classroom) -> None:
        self._gate, self._class = gate, classroom
        self._teaches = not gate.is_student(self.request)

    def set_default_headers(self) -> None:
        self.set_header("Cache-Control", "no-store")

    def get(self) -> None:
        """Return the question and the teacher's place."""
        if not self._teaches:
            self._class.greet(self._gate.person(self.request))
        seen: dict[str, Any] = {"place": self._class.place, "question": self._class.poll.seen(self._teaches)}
        self.finish(seen | ({"people": self._class.people} if self._teaches else {}))

    def post(self) -> None:
        """Take the answer of a student, or a command of the teacher."""
        if len(self.request.body) > (_MOST_QUESTION if self._teaches else _MOST_ANSWER):
            self._refuse(413, "The request is too long.")
            return
        try:
            given = json.loads(self.request.body)
            self._lead(given) if self._teaches else self._answer(given)
        except BnnvizError as error:
            self._refuse(409, error.sentence)
        except _MALFORMED:
            self._refuse(400, "The request is malformed.")
        else:
            self.set_status(204)

    def _answer(self, given: dict[str, Any]) -> None:
        if "choice" not in given:
            raise BnnvizError("Only the teacher can ask questions.")
        self._class.poll.answer(self._gate.person(self.request), given["question"], given["choice"])

    def _lead(self, given: dict[str, Any]) -> None:
        poll = self._class.poll
        steps = {"close": poll.close, "show": poll.show, "end": poll.end}
        if "ask" in given:
            poll.ask(_question(given["ask"]))
        elif "at" in given:
            name, step = given["at"]["lesson"], int(given["at"]["step"])
            titles = {code: content.find(name, code).title for code in content.LANGUAGES}
            self._class.move(f"lessons/{name}.html#{step}", titles, step)
        elif given["do"] == "again" and poll.question is not None:
            poll.ask(poll.question)
        else:
            steps[given["do"]]()

    def _refuse(self, status: int, sentence: str) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        self.finish(sentence)


def _question(given: dict[str, Any]) -> PollQuestion:
    """Return the question of a lesson in all languages, or the one that was typed."""
    name = given.get("lesson")
    if name is None:
        return typed(given, content.DEFAULT)
    found = {code: content.find(name, code).question for code in content.LANGUAGES}
    texts = {
        code: PollText(
            text.plain(asked.text), tuple(map(text.plain, asked.choices)), text.plain(asked.feedback[asked.answer])
        )
        for code, asked in found.items()
    }
    return PollQuestion(content.DEFAULT, texts, found[content.DEFAULT].answer)

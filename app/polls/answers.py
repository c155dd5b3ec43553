"""Take answers: the one thing that a page which many look at sends back."""

from __future__ import annotations

import json
import re

from bokeh.server.tornado import BokehTornado
from tornado.web import RequestHandler

from bnnviz.errors import BnnvizError
from bnnviz_app.access.gate import Gate
from bnnviz_app.access.lobby import sender
from bnnviz_app.polls.poll import Poll, current

_PATH = "/answer"  # beside the page
_MOST_BODY = 200  # bytes: a question's number and a choice
_MALFORMED = (ValueError, TypeError, LookupError, RecursionError)


def take_answers(application: BokehTornado, gate: Gate, route: str) -> None:
    """Have the server of a class take answers."""
    path = f"{re.escape(application.prefix)}(?:{re.escape(route)})?{_PATH}"
    application.add_handlers(".*", [(path, _AnswerHandler, {"gate": gate, "poll": current()})])


class _AnswerHandler(RequestHandler):
    """Take the answer of one student."""

    def initialize(self, gate: Gate, poll: Poll) -> None:
        self._gate, self._poll = gate, poll

    def set_default_headers(self) -> None:
        self.set_header("Cache-Control", "no-store")

    def post(self) -> None:
        """Take an answer; nothing of it is told back but that it was taken."""
        if not self._gate.is_student(self.request):
            self._refuse(403, "Students answer, not the teacher.")
        elif len(self.request.body) > _MOST_BODY:
            self._refuse(413, "An answer is no longer than a choice.")
        else:
            self._take(self.request.body)

    def _take(self, body: bytes) -> None:
        try:
            given = json.loads(body)
            number, choice = given["question"], given["choice"]
        except _MALFORMED:
            self._refuse(400, "This is no answer.")
            return
        try:
            self._poll.answer(sender(self._gate, self.request), number, choice)
        except BnnvizError as error:
            self._refuse(409, error.sentence)
        else:
            self.set_status(204)

    def _refuse(self, status: int, sentence: str) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        self.finish(sentence + "\n")

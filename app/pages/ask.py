"""Ask a class a question, and count its answers; the page is the teacher's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import panel as pn

from bnnviz.errors import BnnvizError
from bnnviz_app import address
from bnnviz_app.access import roles
from bnnviz_app.access.roles import GATE
from bnnviz_app.learn import languages, lessons
from bnnviz_app.pages.base import TextPage
from bnnviz_app.polls import poll as polls
from bnnviz_app.polls.late import LateChange
from bnnviz_app.polls.panel import PollPanel
from bnnviz_app.polls.poll import PollQuestion, PollText

LOOK_S = 0.5  # between two looks at the numbers, which also tell of those who come and go
_LESSON, _LANGUAGE = "lesson", "lang"


class AskPage(TextPage):
    """Show the question that is asked, its numbers, and a form for the next one."""

    name, draws = "ask", False

    def __init__(self, dark: bool, flags: Mapping[str, str], asked: Mapping[str, str]) -> None:
        super().__init__(dark, flags)
        self.role, self.poll = roles.present(), polls.current()
        code, lesson = asked.get(_LANGUAGE, ""), asked.get(_LESSON, "")
        self.language = languages.found(code) or languages.DEFAULT
        self._flags |= {_LANGUAGE: self.language} if code else {}
        self.panel = PollPanel(self.language, self._obey)
        self._lesson = lesson if lesson in lessons.load() else ""
        self.panel.root.chosen = self._lesson
        if lesson != self._lesson:
            self.panel.root.sentence = self._refusal("no_lesson", name=repr(lesson[:40]))
        self._lay_out(self.panel.root)
        self._say_around()
        self._dress()
        self._readdress()
        self._fill()
        self._late = LateChange(pn.state.curdoc, self._fill)
        self._looking: asyncio.Task | None = None

    def open(self) -> None:
        """Look at the numbers from now on."""
        self._looking = asyncio.ensure_future(self._look())

    def close(self) -> None:
        """Look at them no longer; the question stays."""
        if self._looking is not None:
            self._looking.cancel()

    # ---- helpers ------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._late.make()

    def _fill(self) -> None:
        self.panel.fill(self.poll, self.poll.people(pn.state.cache[GATE]))

    def _obey(self, message: Any) -> None:
        """Do what the teacher asks for; what the browser sends is not trusted."""
        steps = {"close": self.poll.close, "show": self.poll.show, "end": self.poll.end}
        sentence = ""
        try:
            if isinstance(message, dict):
                self._obey_dict(message)
            elif isinstance(message, str) and message in steps:
                steps[message](self.role)
            elif message == "again" and self.poll.question is not None:
                self.poll.ask(self.role, self.poll.question)
        except BnnvizError as error:
            sentence = error.sentence
        self.panel.root.sentence = sentence
        self.narrator.say(sentence)
        self._fill()

    def _obey_dict(self, message: dict[str, Any]) -> None:
        language, question = message.get("language"), message.get("ask")
        if isinstance(language, str) and language in languages.names():
            self._speak(language)
        elif isinstance(question, dict):
            self.poll.ask(self.role, self._question(question))

    def _question(self, given: dict[str, Any]) -> PollQuestion:
        """Return the question of a lesson in all languages, or the one that was typed."""
        name = given.get("lesson")
        if name is None:
            return polls.typed(given, self.language, self._refusal)
        if not isinstance(name, str) or name not in lessons.load():
            raise BnnvizError(self._refusal("no_lesson", name=repr(name)[:40]), "lesson")
        found = {code: lessons.load(code)[name].question for code in languages.names()}
        texts = {code: PollText(asked.text, asked.choices, asked.reason) for code, asked in found.items()}
        return PollQuestion(self.language, texts, found[self.language].answer)

    def _refusal(self, sentence: str, /, **values: Any) -> str:
        """Return a sentence on what cannot be asked, by its name."""
        return languages.text(self.language, languages.POLL)["refused"][sentence].format(**values)

    def _speak(self, language: str) -> None:
        self.language = language
        self._flags |= {_LANGUAGE: language}
        self.panel.speak(language)
        self._say_around()
        self._readdress()

    def _in_address(self) -> dict[str, str]:
        return {_LESSON: self._lesson} if self._lesson else {}


def build(dark: bool) -> AskPage:
    """Build the page for the current session, and begin to look at the numbers."""
    flags, _ = address.named(pn.state.session_args, _LESSON)
    arguments = pn.state.session_args
    lesson = arguments[_LESSON][0].decode(errors="replace") if arguments.get(_LESSON) else ""
    asked = {_LANGUAGE: languages.asked(arguments, pn.state.cookies), _LESSON: lesson}
    page = AskPage(dark, flags, asked)
    page.open()
    return page

"""Teach in lessons: a list of them, and each as numbered steps with live pictures and a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import panel as pn

from bnnviz_app import address
from bnnviz_app.access import roles
from bnnviz_app.components.widgets import set_class
from bnnviz_app.learn import languages, lessons
from bnnviz_app.learn.lessons import Lesson
from bnnviz_app.learn.panel import LessonPanel
from bnnviz_app.learn.replay_button import LessonReplay
from bnnviz_app.learn.stage import LessonStage
from bnnviz_app.pages.base import Page
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)


class LearnPage(Page):
    """Show the list of lessons, or a step of one."""

    name = "learn"

    def __init__(self, dark: bool, flags: Mapping[str, str], asked: Mapping[str, str]) -> None:
        super().__init__(dark, flags)
        self.lesson: Lesson | None = None
        self.number = 0
        self._chosen: int | None = None
        self._missing: dict[str, Any] = {}
        self._take(languages.found(asked.get("lang", "")) or languages.DEFAULT, kept=bool(asked.get("lang")))
        self.panel = LessonPanel(self.language, self._obey)
        self.stage = LessonStage(dark, self._key, self._again)
        self._replay = LessonReplay(self.language, self._look, self._complain) if roles.present().keeps else None
        self._lay_out()
        self._open(asked)
        self._resize()

    def close(self) -> None:
        """End what the page runs."""
        self.stage.session.close()
        if self._replay is not None:
            self._replay.close()

    # ---- helpers ------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        sheets = [_STYLES["page"]]
        self._outer = pn.Column(
            self.panel.root, self.stage.root, sizing_mode="stretch_both", margin=0, stylesheets=sheets
        )
        hidden = (self.guide.root, self.address, self.narrator.root, *self.stage.hidden)
        self.main = [
            pn.Column(self._outer, *hidden, sizing_mode="stretch_both", margin=0, stylesheets=[SHEETS["page"]])
        ]
        self.tools = self._header(*(() if self._replay is None else self._replay.roots))

    def _take(self, language: str, kept: bool) -> None:
        """Take the texts of a language, which stays in the address if it is to be kept there."""
        self.language = language
        self._lessons, self._words = lessons.load(language), languages.page(language)
        self._flags |= {"lang": language} if kept else {}

    def _speak(self, language: str) -> None:
        """Say the same in another language; what runs goes on."""
        self._take(language, kept=True)
        self._missing.pop("no_language", None)
        self.panel.speak(language)
        if self._replay is not None:
            self._replay.speak(language)
        if self.lesson is not None:
            self.lesson = self._lessons[self.lesson.name]
        self._tell()
        self._readdress()

    def _open(self, asked: Mapping[str, str]) -> None:
        """Show what the address asks for, as far as it is there."""
        code, name, step = asked.get("lang", ""), asked.get("lesson", ""), asked.get("step", "1")
        missing: dict[str, Any] = {}
        if code and languages.found(code) is None:
            missing["no_language"] = {"name": repr(code[:20]), "taken": self._words["language"]}
        if name in self._lessons:
            count = len(self._lessons[name].steps) + 1
            number = int(step) if step.isascii() and step.isdigit() and len(step) < 6 else 0
            taken = min(max(number, 1), count)
            if number != taken:
                missing["no_step"] = {"count": count, "step": repr(step[:20]), "taken": taken}
            self._show(self._lessons[name], taken - 1, missing)
        else:
            self._show_all(missing | ({"no_lesson": {"name": repr(name[:40])}} if name else {}))

    def _show_all(self, missing: Mapping[str, Any] | None = None) -> None:
        """List the lessons."""
        self.lesson, self.number, self._missing = None, 0, dict(missing or {})
        self.stage.show(None, onward=False)
        set_class(self._outer, "whole", True)
        self._tell()
        self._readdress()

    def _show(self, lesson: Lesson, number: int, missing: Mapping[str, Any] | None = None) -> None:
        """Show a step of a lesson, from 0; the one after the last is its question."""
        onward = lesson is self.lesson and number == self.number + 1
        self.lesson, self.number, self._chosen, self._missing = lesson, number, None, dict(missing or {})
        set_class(self._outer, "whole", False)
        self._tell()
        if number < len(lesson.steps):
            self.stage.show(lesson.steps[number].picture, onward)
        elif not onward:
            # What the last step shows stays beside the question.
            self.stage.show(lesson.steps[-1].picture, onward=False)
        self._readdress()

    def _tell(self) -> None:
        """Give the texts of what is shown."""
        if self._replay is not None:
            self._replay.offer(self.lesson, self.number)
        sentence = " ".join(self._words[name].format(**values) for name, values in self._missing.items())
        if self.lesson is None:
            self.panel.show_all(self._flags, sentence)
        elif self._asks:
            self.panel.ask(self.lesson, self._chosen, sentence)
        else:
            self.panel.show_step(self.lesson, self.number, sentence)

    def _obey(self, message: Any) -> None:
        """Do what the reader asks for; what the browser sends is not trusted."""
        if isinstance(message, dict):
            name, choice, language = str(message.get("lesson")), message.get("choose"), message.get("language")
            if name in self._lessons:
                self._show(self._lessons[name], 0)
            elif isinstance(language, str) and language in languages.names():
                self._speak(language)
            elif self._asks and type(choice) is int and 0 <= choice < len(self.lesson.question.choices):
                self._chosen = choice
                self._tell()
        elif self.lesson is None:
            return
        elif message == "all":
            self._show_all()
        elif message == "again":
            self._again()
        elif message in ("next", "back"):
            self._turn_page(message)
        elif type(message) is int and 0 <= message <= len(self.lesson.steps):
            self._show(self.lesson, message)

    @property
    def _asks(self) -> bool:
        """Whether the question is shown."""
        return self.lesson is not None and self.number == len(self.lesson.steps)

    def _turn_page(self, message: str) -> None:
        """Go on or back by one; from an answered question on to the next lesson."""
        if message == "back":
            if self.number:
                self._show(self.lesson, self.number - 1)
        elif not self._asks:
            self._show(self.lesson, self.number + 1)
        elif self._chosen is not None:
            names = list(self._lessons)
            after = names[names.index(self.lesson.name) + 1 :]
            if after:
                self._show(self._lessons[after[0]], 0)
            else:
                self._show_all()

    def _again(self) -> None:
        """Begin what this step shows again."""
        self.stage.again()

    def _look(self) -> list[str]:
        """Return the words for a replay that looks as the page does."""
        return [*(["--dark"] if self.dark else []), *(["--projector"] if self.large else [])]

    def _complain(self, sentence: str) -> None:
        self.stage.show_notice(sentence, True)

    def _key(self, key: str) -> None:
        keys: dict[str, Callable[[], None]] = {
            "next": lambda: self._obey("next"),
            "back": lambda: self._obey("back"),
            "reset": self._again,
            "help": self.guide.toggle,
        }
        if self.stage.runs:
            transport = self.stage.transport
            event = "event" if transport.eventful else "proposal"
            keys |= {
                "play": transport.play,
                "proposal": lambda: transport.step("proposal"),
                "event": lambda: transport.step(event),
            }
        if key in keys:
            keys[key]()

    def _readdress(self) -> None:
        super()._readdress()
        self.panel.lead(self._flags)

    def _turn(self) -> None:
        self.stage.theme(self.dark)

    def _resize(self) -> None:
        set_class(self._outer, "large", self.large)
        self.panel.magnify(self.large)
        self.stage.magnify(self.large)

    def _titles(self) -> tuple[dict[str, str], int | None]:
        if self.lesson is None:
            return super()._titles()
        titles = {code: lessons.load(code)[self.lesson.name].title for code in languages.names()}
        return titles, self.number + 1

    def _place(self) -> dict[str, str]:
        return self._in_address()

    def _in_address(self) -> dict[str, str]:
        return {} if self.lesson is None else {"lesson": self.lesson.name, "step": str(self.number + 1)}


def build(dark: bool) -> LearnPage:
    """Build the page for the current session, and begin its loop, which runs nothing yet."""
    flags, _ = address.named(pn.state.session_args, "lesson")
    asked = {
        name: pn.state.session_args[name][0].decode(errors="replace")
        for name in ("lesson", "step")
        if pn.state.session_args.get(name)
    } | {"lang": languages.asked(pn.state.session_args, pn.state.cookies)}
    page = LearnPage(dark, flags, asked)
    page.stage.session.open()
    return page

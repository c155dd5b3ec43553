"""Show the list of lessons, and a lesson's step with its way on, in a language and the words of its glossary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import param
from panel.custom import JSComponent

from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import script, set_class
from bnnviz_app.learn import glossary, languages, lessons
from bnnviz_app.learn.lessons import Lesson
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)


class LessonText(JSComponent):
    """Show texts and buttons; the browser keeps which steps have been seen."""

    content = param.Dict(default={}, doc="What is shown: a list of lessons, or a step of one.")
    words = param.Dict(default={}, doc="What buttons and headings say, and the ``code`` of their language.")
    languages = param.Dict(default={}, doc="The names of all languages, by their codes.")

    _esm = script(__file__, "panel.js")


class LessonPanel(PageComponent):
    """Show the list of lessons, or where in a lesson its reader is."""

    def __init__(self, language: str, on_message: Callable[[Any], None]) -> None:
        self.root = LessonText(
            languages=languages.names(),
            sizing_mode="stretch_both",
            margin=0,
            stylesheets=[SHEETS["pills"], _STYLES["panel"]],
            css_classes=["all"],
        )
        self.root.on_msg(lambda event: on_message(event.data))
        self.speak(language)

    def speak(self, language: str) -> None:
        """Take the texts of a language, for what is shown next."""
        self._language = language
        self._lessons, self._words = lessons.load(language), languages.page(language)
        self.root.words = {**self._words, "code": language}

    def lead(self, flags: Mapping[str, str]) -> None:
        """Have the links to lessons keep these flags."""
        if self.root.content.get("kind") == "all" and self._flags != flags:
            self.show_all(flags, self.root.content["sentence"])

    def show_all(self, flags: Mapping[str, str], sentence: str = "") -> None:
        """List the lessons, with a sentence on what of the address there is not; their links keep these flags."""
        self._flags = dict(flags)
        items = [
            {
                "name": lesson.name,
                "title": lesson.title,
                "aim": lesson.aim,
                "minutes": lesson.minutes,
                "count": len(lesson.steps) + 1,
                "href": "?" + urlencode({"page": "learn", "lesson": lesson.name, **flags}),
            }
            for lesson in self._lessons.values()
        ]
        self._say({"kind": "all", "lessons": items, "sentence": sentence}, whole=True)

    def show_step(self, lesson: Lesson, number: int, sentence: str = "") -> None:
        """Show a step, from 0."""
        step = lesson.steps[number]
        text, terms = glossary.link(step.text, self._language)
        shown = {"kind": "step", "heading": step.title, "html": text, "terms": terms, "choices": []}
        self._say(self._frame(lesson, number) | shown | {"sentence": sentence}, whole=False)

    def ask(self, lesson: Lesson, chosen: int | None = None, sentence: str = "") -> None:
        """Ask the lesson's question; with a choice, say what is right and why."""
        asked = lesson.question
        choices = list(asked.choices)
        text, terms = glossary.link(asked.text, self._language)
        shown = {"kind": "question", "heading": self._words["question"], "html": text, "choices": choices}
        if chosen is not None:
            reason, more = glossary.link(asked.reason, self._language)
            terms |= more
            shown |= {"chosen": chosen, "right": asked.answer, "reason": reason}
        self._say(self._frame(lesson, len(lesson.steps)) | shown | {"terms": terms, "sentence": sentence}, whole=False)

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        set_class(self.root, "large", large)

    def _frame(self, lesson: Lesson, number: int) -> dict[str, Any]:
        """Return what surrounds a step."""
        names = list(self._lessons)
        after = names[names.index(lesson.name) + 1 :]
        return {
            "name": lesson.name,
            "title": lesson.title,
            "minutes": lesson.minutes,
            "aim": lesson.aim,
            "titles": [*(step.title for step in lesson.steps), self._words["question"]],
            "number": number,
            "after": self._lessons[after[0]].title if after else "",
        }

    def _say(self, content: dict[str, Any], whole: bool) -> None:
        set_class(self.root, "all", whole)
        self.root.content = content

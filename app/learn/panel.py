"""Show the list of lessons, and a lesson's step with its way on, in the words of the glossary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import param
from panel.custom import JSComponent

from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import script, set_class
from bnnviz_app.learn import glossary
from bnnviz_app.learn.lessons import Lesson
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)


class LessonText(JSComponent):
    """Show texts and buttons; the browser keeps which steps have been seen."""

    content = param.Dict(default={}, doc="What is shown: a list of lessons, or a step of one.")
    words = param.Dict(default={}, doc="What buttons and headings say.")

    _esm = script(__file__, "panel.js")


class LessonPanel(PageComponent):
    """Show the list of lessons, or where in a lesson its reader is.

    Parameters
    ----------
    lessons : mapping of str to Lesson
    words : mapping of str to str
        What buttons and headings say.
    on_message : callable
        Called with what its reader asks for: ``next``, ``back``, ``again``, ``all``, the number of a step, a choice
        ``{"choose": number}``, or a lesson ``{"lesson": name}``.
    """

    def __init__(
        self, lessons: Mapping[str, Lesson], words: Mapping[str, str], on_message: Callable[[Any], None]
    ) -> None:
        self._lessons, self._words = lessons, words
        self.root = LessonText(
            words=dict(words),
            sizing_mode="stretch_both",
            margin=0,
            stylesheets=[SHEETS["pills"], _STYLES["panel"]],
            css_classes=["all"],
        )
        self.root.on_msg(lambda event: on_message(event.data))

    def show_all(self, flags: Mapping[str, str], sentence: str = "") -> None:
        """List the lessons, with a sentence on what of the address there is not."""
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
        text, terms = glossary.link(step.text)
        shown = {"kind": "step", "heading": step.title, "html": text, "terms": terms, "choices": []}
        self._say(self._frame(lesson, number) | shown | {"sentence": sentence}, whole=False)

    def ask(self, lesson: Lesson, chosen: int | None = None) -> None:
        """Ask the lesson's question; with a choice, say what is right and why."""
        asked = lesson.question
        text, terms = glossary.link(asked.text)
        shown = {"kind": "question", "heading": self._words["question"], "html": text, "choices": list(asked.choices)}
        if chosen is not None:
            reason, more = glossary.link(asked.reason)
            terms |= more
            shown |= {"chosen": chosen, "right": asked.answer, "reason": reason}
        self._say(self._frame(lesson, len(lesson.steps)) | shown | {"terms": terms, "sentence": ""}, whole=False)

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

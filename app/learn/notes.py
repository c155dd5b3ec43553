"""Show what a teacher has to say at the step that a lesson shows in another window of the same browser.

The windows of a browser tell each other by a channel of its own (``BroadcastChannel``), so that nobody else sees the
notes. `app/lessons/LANGUAGE/notes.json` has them: a text for each of the ``steps`` and for the ``question`` of a
lesson.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import script, set_class
from bnnviz_app.learn import languages, lessons
from bnnviz_app.learn.lessons import Lesson
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)


class NotesText(JSComponent):
    """Show notes, with a clock and the way on; listens to the window with the lesson."""

    content = param.Dict(default={}, doc="What is said at a step; empty as long as no lesson is known.")
    words = param.Dict(default={}, doc="What buttons and headings say, and the ``code`` of their language.")
    lessons = param.String(default="", doc="The address of the lessons.")

    _esm = script(__file__, "notes.js")


class NotesPanel(PageComponent):
    """Show the notes of where the lesson in another window is."""

    def __init__(self, language: str, on_language: Callable[[str], None] = lambda language: None) -> None:
        self._on_language = on_language
        self.root = NotesText(
            sizing_mode="stretch_both", margin=0, stylesheets=[SHEETS["pills"], _STYLES["panel"]], css_classes=[]
        )
        self.root.on_msg(lambda event: self.take(event.data))
        self.speak(language)

    def speak(self, language: str) -> None:
        """Take the texts of a language, for what is shown next."""
        self.language = language
        page = languages.page(language)
        names = {"back": page["back"], "on": page["next"], "question": page["question"]}
        notes = {name: text for name, text in self._notes.items() if isinstance(text, str)}
        self.root.words = {**names, **notes, "code": language}

    def lead(self, lessons_at: str) -> None:
        """Have the link to the lessons another address."""
        self.root.lessons = lessons_at

    def take(self, message: Any) -> bool:
        """Show the notes of a place in a lesson; return whether there is such a place, as windows are not trusted."""
        if not isinstance(message, dict):
            return False
        name, number, language = message.get("lesson"), message.get("step"), message.get("language")
        if isinstance(language, str) and language in languages.names() and language != self.language:
            self.speak(language)
            self._on_language(language)
        lesson = lessons.load(self.language).get(name) if isinstance(name, str) else None
        if lesson is None or type(number) is not int or not 0 <= number <= len(lesson.steps):
            self.root.content = {}
            return False
        self.root.content = self._told(lesson, number)
        return True

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        set_class(self.root, "large", large)

    @property
    def _notes(self) -> dict[str, Any]:
        return languages.text(self.language, languages.NOTES)

    def _told(self, lesson: Lesson, number: int) -> dict[str, Any]:
        notes, count = self._notes["lessons"][lesson.name], len(lesson.steps)
        question = languages.page(self.language)["question"]
        titles = [*(step.title for step in lesson.steps), question]
        asks = number == count
        return {
            "lesson": lesson.title,
            "number": number,
            "count": count + 1,
            "title": titles[number],
            "note": languages.unbroken(notes["question"] if asks else notes["steps"][number]),
            "right": lesson.question.choices[lesson.question.answer] if asks else "",
            "next": "" if asks else titles[number + 1],
        }

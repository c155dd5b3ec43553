"""Show the teacher a form for a question, and the numbers of its answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz_app.components.widgets import script, set_changed
from bnnviz_app.learn import languages, lessons
from bnnviz_app.polls.poll import LEAST_CHOICES, MOST_CHOICE, MOST_CHOICES, MOST_TEXT, SHOWN, Poll
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)
_LIMITS = {"text": MOST_TEXT, "choice": MOST_CHOICE, "least": LEAST_CHOICES, "most": MOST_CHOICES}


class PollForm(JSComponent):
    """Show a form, and the question that is asked with its numbers."""

    content = param.Dict(default={}, doc="The question that is asked, its phase and its numbers.")
    offers = param.List(default=[], doc="The questions of lessons: name, title, text and choices.")
    chosen = param.String(doc="The lesson whose question is offered at first; empty: one of the teacher's own.")
    sentence = param.String(doc="What cannot be asked, and why.")
    words = param.Dict(default={}, doc="What buttons and headings say, and the ``code`` of their language.")
    languages = param.Dict(default={}, doc="The names of all languages, by their codes.")
    limits = param.Dict(default=_LIMITS, doc="How long a question is, and how many choices it has.")

    _esm = script(__file__, "panel.js")


class PollPanel:
    """Show what is asked, and what may be asked next."""

    def __init__(self, language: str, on_message: Callable[[Any], None]) -> None:
        self.root = PollForm(
            languages=languages.names(),
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[SHEETS["pills"], SHEETS["text"], _STYLES["panel"]],
        )
        self.root.on_msg(lambda event: on_message(event.data))
        self.speak(language)

    def speak(self, language: str) -> None:
        """Take the texts of a language."""
        self._language = language
        offers = [
            {
                "name": lesson.name,
                "title": lesson.title,
                "text": lesson.question.text,
                "choices": list(lesson.question.choices),
            }
            for lesson in lessons.load(language).values()
        ]
        words = languages.text(language, languages.POLL)["page"]
        self.root.param.update(offers=offers, words={**words, "code": language})

    def fill(self, poll: Poll, people: int) -> None:
        """Show a poll as it is now, and how many students look at it."""
        content: dict[str, Any] = {"phase": poll.phase, "people": people}
        if poll.question is not None:
            texts = poll.question.texts
            said = texts.get(self._language, texts[poll.question.language])
            content |= {"text": said.text, "choices": list(said.choices), "counts": list(poll.counts)}
            # A wall may show this page, too.
            content |= {"answer": poll.question.answer, "reason": said.reason} if poll.phase == SHOWN else {}
        set_changed(self.root, content=content)

"""Ask a class a question, and see its answers counted; the page is the teacher's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import param
from panel.custom import JSComponent

from bnnviz.lessons import content, text
from bnnviz_app.classroom.poll import LEAST_CHOICES, MOST_CHOICE, MOST_CHOICES, MOST_TEXT
from bnnviz_app.components.widgets import script
from bnnviz_app.pages.base import TextPage
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)
_LIMITS = {"text": MOST_TEXT, "choice": MOST_CHOICE, "least": LEAST_CHOICES, "most": MOST_CHOICES}


class PollForm(JSComponent):
    """Show the open question with its counts, and a form for the next one, by separate requests."""

    offers = param.List(default=[], doc="The questions of lessons: name, title, text and choices.")
    chosen = param.String(doc="The lesson whose question is offered first; empty: a question by the teacher.")
    limits = param.Dict(default=_LIMITS, doc="The longest texts, and the numbers of choices.")

    _esm = script(__file__, "ask.js")


class AskPage(TextPage):
    """Show the open question, its counts, and a form for the next one."""

    name, listed, leads = "ask", "lesson", False

    def __init__(self, dark: bool, flags: Mapping[str, str], lessons: Sequence[str]) -> None:
        super().__init__(dark, flags)
        self._lesson = next((name for name in lessons[:1] if name in content.load()), "")
        offers = [
            {
                "name": each.name,
                "title": each.title,
                "text": text.plain(each.question.text),
                "choices": [text.plain(choice) for choice in each.question.choices],
            }
            for each in content.load().values()
        ]
        sheets = [SHEETS["pills"], SHEETS["text"], _STYLES["ask"]]
        form = PollForm(offers=offers, chosen=self._lesson, sizing_mode="stretch_width", stylesheets=sheets)
        self._lay_out(form)
        self._dress()
        self._readdress()

    def _in_address(self) -> dict[str, str]:
        return {self.listed: self._lesson} if self._lesson else {}


build = AskPage.build

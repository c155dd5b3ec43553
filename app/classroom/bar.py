"""Show the teacher's place and question above a student's page."""

from __future__ import annotations

import json
from pathlib import Path

import param
from panel.custom import JSComponent

from bnnviz_app.access import roles
from bnnviz_app.components.widgets import script
from bnnviz_app.theme import SHEETS, styles

WORDS = json.loads(Path(__file__).with_name("poll.json").read_text(encoding="utf-8"))
_STYLES = styles(__file__)


class ClassBar(JSComponent):
    """Ask the server every two seconds, and show the teacher's place and question; answers go by requests too."""

    words = param.Dict(default={}, doc="Labels and messages.")

    _esm = script(__file__, "bar.js")


def class_bar() -> ClassBar | None:
    """Return a bar for a student's page; None for the teacher, and without a class."""
    if not roles.is_class() or roles.present() is roles.OWNER:
        return None
    return ClassBar(words=WORDS, sizing_mode="stretch_width", stylesheets=[SHEETS["pills"], _STYLES["bar"]])


def class_script() -> str:
    """Return the script that shows the bar on a page without a session, in the language of that page."""
    given = {"words": WORDS, "styles": SHEETS["pills"] + _STYLES["bar"]}
    on_lessons = Path(__file__).with_name("bar_on_lessons.js").read_text(encoding="utf-8")
    return f"const given = {json.dumps(given)}\n{script(__file__, 'bar.js')}{on_lessons}"

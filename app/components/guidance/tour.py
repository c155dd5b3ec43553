"""Show a first visitor around: a few stops, skippable, never shown again in this browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz_app.components.widgets import script
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)
_STOPS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


class Tour(JSComponent):
    """Point at the parts of the page, one after another."""

    stops = param.List(default=_STOPS, doc="[area of the page, title, text] of each stop.")
    offered = param.Boolean(default=False)
    sheet = param.String(default=SHEETS["pills"] + _STYLES["tour"])
    started = param.Integer(default=0, doc="Grows when the tour is asked for.")

    _esm = script(__file__, "tour.js")

    def __init__(self, **params: Any) -> None:
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **params})

    def start(self) -> None:
        """Begin the tour."""
        self.started += 1

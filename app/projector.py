"""Projector mode: everything that is read from afar is larger."""

from __future__ import annotations

from typing import Any

from bokeh.models import Axis

SCALE = 1.4
_SIZES = ("major_label_text_font_size", "axis_label_text_font_size")
#: For the page's own words, in each element's own style sheet.
CAPTION = """
:host {font-size: 20px !important; line-height: 26px !important; max-height: 78px !important}
@media (max-height: 800px) {
  :host {font-size: 16.5px !important; line-height: 21px !important; max-height: 63px !important}
}
"""
STRIP = """
:host {height: 88px !important}
@media (max-height: 800px) {:host {height: 68px !important}}
"""
STATUS = """
.line {font-size: 15.5px !important}
@media (max-width: 1500px) {.line .elapsed, .line .frames {display: none}}
@media (max-width: 1500px) {.line {font-size: 14.5px !important}}
"""
# The header grows with its type, the room that is left for it does not.
PAGE = ":host {padding-top: 8px; box-sizing: border-box}"
CARD = """
:host {font-size: 16px !important}
.bnnviz-legend > span {font-size: 15px !important}
"""
TABLE = "table {font-size: 17px !important}"


def enlarge_figure(figure: Any) -> None:
    """Write a figure's axes larger."""
    for axis in figure.select(Axis):
        for name in _SIZES:
            size = getattr(axis, name)
            if isinstance(size, str) and size.endswith("px"):
                setattr(axis, name, f"{float(size[:-2]) * SCALE:g}px")


def enlarge(pane: Any, sheet: str) -> None:
    """Add a style sheet to a pane."""
    pane.stylesheets = [*pane.stylesheets, sheet]

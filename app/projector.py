"""Projector mode: everything that is read from afar is larger."""

from __future__ import annotations

from typing import Any

SCALE = 1.4  # of the figures' type
#: For the page's own words, in each element's own style sheet.
CAPTION = """
:host(.large) {font-size: 20px; line-height: 26px; max-height: 78px}
@media (max-height: 800px) {:host(.large) {font-size: 16.5px; line-height: 21px; max-height: 63px}}
"""
STRIP = """
:host(.large) {height: 88px !important}
@media (max-height: 800px) {:host(.large) {height: 68px !important}}
"""
STATUS = """
:host(.large) .line {font-size: 15.5px}
@media (max-width: 1500px) {
  :host(.large) .line {font-size: 14.5px}
  :host(.large) .line .elapsed, :host(.large) .line .frames {display: none}
}
"""
# The header grows with its type, the room that is left for it does not.
PAGE = ":host(.large) {padding-top: 8px; box-sizing: border-box}"
CARD = """
:host(.large) {font-size: 16px}
:host(.large) .bnnviz-legend > span {font-size: 15px !important}
"""
TABLE = ":host(.large) table {font-size: 17px}"


def dress(pane: Any, large: bool) -> None:
    """Have a pane follow its style sheet for the projector, or not."""
    kept = [name for name in pane.css_classes or [] if name != "large"]
    pane.css_classes = [*kept, "large"] if large else kept

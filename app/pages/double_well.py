"""Show functionals beside points on the double well, drawn one by one as they are made."""

from __future__ import annotations

from typing import Any

from bnnviz.specs.demo import DoubleWellSpec
from bnnviz_app.components.run.transport import Cell, StepTransport, count
from bnnviz_app.pages.base import RunPage, SettingsPage, open_run_page

_TITLES = {
    "figure": "figure: modes at ±1",
    "text": "text: modes at ±2.2",
    "mean_field": "N(mu, sd²)",
    "hermite": "sum of Hermite polynomials",
}
# Columns: the functionals, and beside them what has come of them. The energy reaches up beside the ratio: its five
# lines need the height.
_GRID = """
"caption caption" auto
"wells pooled" minmax(0, 1fr)
"wells ratio" minmax(0, .75fr)
"ledger ratio" minmax(0, .25fr)
"ledger table" minmax(0, .92fr)
/ minmax(0, 15fr) minmax(0, 11fr)
"""


class DoubleWellTransport(StepTransport):
    """Show buttons for the double well; its line of figures counts moves."""

    def _figures(self, status: dict[str, Any]) -> list[Cell]:
        return [
            (110, "step", f"{count(status['step'])} of {count(status['moves'])}", "moves"),
            (150, "gradients", count(status["gradients"]), "gradients"),
        ]


class DoubleWellPage(SettingsPage):
    """Show functionals beside points."""

    name, heading = "wells", "WELLS"
    spec = DoubleWellSpec
    titles = _TITLES
    parts, grid = ("wells", "ledger", "pooled", "ratio"), _GRID
    transport_class = DoubleWellTransport
    speed = "2"  # each functional is to be seen


def build(dark: bool) -> RunPage:
    """Build the page for the current session and begin its loop."""
    return open_run_page(DoubleWellPage, dark)

"""The Wells: functionals beside points on the double well, drawn one by one as they are made."""

from __future__ import annotations

import html
from typing import Any

from bnnviz.specs.demo import DoubleWellSpec
from bnnviz_app.components.run.transport import clock, count, phase
from bnnviz_app.pages.base import PlainPage, PlainTransport, opened

_TITLES = {
    "figure": "figure: modes at ±1",
    "text": "text: modes at ±2.2",
    "mean_field": "N(mu, sd²)",
    "hermite": "sum of Hermite polynomials",
}
_WORDS = {
    "functional": "a distribution that is a state of its own: FuncHMC moves its mean and width as HMC moves a point,"
    " and draws are made of it",
    "energy of a functional": "the mean of U under it less its entropy; without the entropy it would shrink to a point",
    "distance": "total variation: half the area between two densities, 0 where they agree and 1 where they share"
    " nothing; of draws, in 40 bins",
    "ratio (KLIEP)": "the true density over that of the draws, estimated from samples of both: above 1 there are too"
    " few draws",
}
# Columns: the functionals, and beside them what has come of them.
_GRID = """
"caption caption" auto
"wells pooled" minmax(0, 1fr)
"wells ratio" minmax(0, 1fr)
"ledger table" minmax(0, .92fr)
/ minmax(0, 15fr) minmax(0, 11fr)
"""


class WellsTransport(PlainTransport):
    """Buttons for the wells; its line of figures counts moves."""

    def _cells(self, status: dict[str, Any]) -> list[tuple[int, str, str, str]]:
        told = "done" if status["phase"] == "done" else phase(status)
        return [
            (44, "device", html.escape(status["device"]), ""),
            (120, "phase", html.escape(told), ""),
            (110, "step", f"{count(status['step'])} of {count(status['moves'])}", "moves"),
            (150, "gradients", count(status["gradients"]), "gradients"),
            self._frames(),
            (84, "elapsed", clock(status["elapsed"]), "elapsed"),
        ]


class WellsPage(PlainPage):
    """The page of one session."""

    name, heading = "wells", "WELLS"
    spec = DoubleWellSpec
    titles, words = _TITLES, _WORDS
    parts, grid = ("wells", "ledger", "pooled", "ratio"), _GRID
    transport_class = WellsTransport
    speed = "2"  # each functional is to be seen


def build(dark: bool) -> PlainPage:
    """Build the page for the current session and begin its loop."""
    return opened(WellsPage, dark)

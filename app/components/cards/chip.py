"""Show in one coloured chip how many draws a run has, their ESS, and whether something is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import panel as pn
from bokeh.models import Button as BokehButton

from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import set_changed, set_class
from bnnviz_app.heartbeat import Heartbeat
from bnnviz_app.theme import styles

FEWEST = 50  # draws of each chain that a verdict needs
_TOO_EARLY = f"Diagnostics need at least {FEWEST} draws per chain."
ENOUGH = 100  # draws at which the diagnostics open by themselves
NOTICED = 0.5  # seconds until a user has noticed that they have opened
_STYLES = styles(__file__)


class _Button(pn.widgets.Button):
    """A button without a tooltip: Panel's model adds listeners to its element whenever its label changes."""

    _widget_type, _rename = BokehButton, {"description": None, "description_delay": None}


class Chip(PageComponent):
    """Show draws, ESS and verdict on the button that opens the diagnostics."""

    needs = frozenset({"status", "caption", "table"})

    def __init__(self, on_turn: Callable[[], None], say: Callable[[str], None], heartbeat: Heartbeat) -> None:
        self._on_turn, self._say, self._heartbeat = on_turn, say, heartbeat
        self.open, self._touched = False, False
        self._opened_in = 0.0  # the frame with which the diagnostics opened by themselves
        # A React component would show its text after the other parts of the frame.
        look = {"margin": (4, 4), "height": 32, "min_width": 250, "align": "center", "stylesheets": [_STYLES["chip"]]}
        self.root = _Button(label="Diagnostics", **look)
        self.root.on_click(lambda event: self._press())
        self.enlarged = [self.root]

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        set_changed(self.root, label="Diagnostics", button_type="default")
        self._say(_TOO_EARLY)

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        status = frame["status"]
        colour, verdict, reason = judged(status["draws"], frame["caption"], _followed(frame))
        self._say(reason)
        known = status["draws"] >= FEWEST and math.isfinite(status["ess"])
        ess = f" · ESS {status['ess']:,.0f}" if known else ""
        draws = f"{status['draws'] * status['chains']:,.0f} draws"
        if status.get("generation"):
            draws += " since the change"
        set_changed(self.root, label=f"{draws}{ess} · {verdict}", button_type=colour)
        if not self._touched and (status["draws"] >= ENOUGH or colour == "danger"):
            self._opened_in = math.inf
            self._turn()

    def show(self, shown: bool = True) -> None:
        """Open the diagnostics, or close them."""
        if self.open != shown:
            self._turn()

    def placed(self) -> None:
        """Note that the page shows the diagnostics from the next frame on."""
        if self._opened_in == math.inf:
            self._opened_in = self._heartbeat.number + 1

    def _press(self) -> None:
        # A press while they open by themselves was meant to open them.
        if not self._opened_in or self._heartbeat.has_shown(self._opened_in, NOTICED):
            self._turn()

    def _turn(self) -> None:
        """Open the diagnostics, or close them; from then on they do not open by themselves."""
        self.open, self._touched = not self.open, True
        set_class(self.root, "open", self.open)
        self._on_turn()


def _followed(frame: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the rows of the table, after a fork those of the followed branch."""
    status, table = frame["status"], frame["table"]
    if "futures" not in table:
        return table["rows"]
    at = table["futures"].index(status["futures"][status["followed"]]["letter"])
    return [(label, texts[at], tones[at]) for label, texts, tones in table["rows"]]


def judged(draws: int, caption: dict[str, Any], rows: list[tuple[str, str, str]]) -> tuple[str, str, str]:
    """Return colour, verdict and reason, given the number of draws of each chain."""
    if caption.get("warning"):
        return "danger", "warning", caption["warning"]
    if draws < FEWEST:
        return "default", "too early", _TOO_EARLY
    if any(label.startswith("R-hat of functions") for label, _, _ in rows):
        # Chains at copies of one network, with other orders of its units, need not agree on a weight.
        rows = [row for row in rows if not row[0].startswith("R-hat (")]
    bad = [f"{label}: {text}" for label, text, tone in rows if "bad" in tone]
    if bad:
        reason = f"Out of range: {'; '.join(bad)}. More draws, other settings or another sampler may help."
        return "danger", "not converged", reason
    return "success", "no problem found", "No diagnostic is out of range."

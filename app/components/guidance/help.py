"""Say in a dialog what the keys do and what the marks mean."""

from __future__ import annotations

from collections.abc import Callable

import panel as pn

from bnnviz.views import ACCEPTED, DARK, KINDS, LIGHT, Kind, Palette
from bnnviz.views.palette import KNOWN, NOW, PICKED, UNIFORM, VISITED, line_html, mark_html
from bnnviz_app.components.guidance.dialogs import Dialog
from bnnviz_app.components.widgets import button

KEYS = {
    "space": "play or pause",
    "→": "one step: one evaluation for every chain, a look ahead or a proposal; then pause",
    "shift → or e": "go on to the watched chain's next event, then pause",
    "←": "in the Lab, back to the event before",
    "r": "reset: the same run from its beginning",
    "tab": "to the next control; there space presses and opens, arrows choose and slide, escape closes",
    "n, p": "next and previous step of a scene",
    "?": "open and close this page",
}
MARKS: tuple[tuple[Kind, str], ...] = (
    (KINDS[1], "proposed, then rejected: the chain goes straight on"),
    (ACCEPTED, "proposed and accepted: the event that ends the segment"),
    (UNIFORM, "the uniform draw times the envelope: the proposal is accepted if this lies under the rate"),
    (KINDS[2], "the velocity is reflected"),
    (KINDS[3], "the refresh clock rang: the velocity is drawn anew"),
    (KINDS[5], "the rate was above the envelope, which therefore was no bound: a bias"),
    (NOW, "where the watched chain is; the arrow says where it is going"),
    (VISITED, "where the move under way has been, leapfrog step by leapfrog step"),
    (PICKED, "a draw in the box that was drawn, or the event under the pointer"),
    (KNOWN, "the other draws, as long as there is a box"),
)
LINES = (
    ("rate", "blue", "", "along the present segment; it counts where it is above zero"),
    ("signed rate", "pale", "6 4", "below zero the chain descends, and no event can happen"),
    ("envelope", "orange", "", "what the next proposal is drawn from"),
    ("used", "red", "", "what the earlier proposals of this segment were drawn from"),
    ("refresh clock", "purple", "6 4", "when the velocity will be drawn anew if nothing happens before"),
)
HANDS = {
    "click, tap": "add a data point, in a prediction that can be drawn in; pick an event in the trajectory",
    "drag a point": "move it",
    "right click, alt click, long press": "delete a point",
    "drag elsewhere": "pick the draws in a box: all views mark them; a click takes the box away",
    "shift drag, wheel": "move and zoom the trajectory",
    "strip of events": "in the Lab, a click goes back to an event: play repeats what came then, a change makes another"
    " future beside it",
    "Weights": "in the trajectory's heading: the correlations of a layer; a click on a cell tells its r, and trace,"
    " ACF and density follow its coordinate across",
}
FIGURE_KEYS = {
    "arrows": "in a figure that has the focus, move the cursor (with alt in small steps)",
    "enter": "add a point, pick one up and put it down, or pick the nearest event",
    "delete": "delete the nearest point",
    "shift arrows, enter": "pick the draws in a box",
    "ctrl z, c, escape": "undo; the other class; pick nothing",
}
WORDS = {
    "rate": "how soon the chain should turn where it is, v · grad U: steep uphill means soon, downhill never",
    "U, grad U": "minus the log of the density, and its slope; the target is likely where U is small",
    "envelope": "a simple line or step that should lie above the rate: proposals are drawn from it",
    "proposal, u": "a time drawn from the envelope; accepted if u, uniform between 0 and 1, is below rate / envelope",
    "violation": "a proposal where the rate was above the envelope: ratio = rate / envelope is over 1; E[(ratio−1)+] is"
    " the mean of what is over, q99 the ratio that 1 in 100 exceeds",
    "step, event, draw": "a step evaluates the rate once for each chain, ahead of the path or at a proposal; an event"
    " changes the velocity; draws are taken along the path, evenly in path time",
    "gradients": "counted for each row of the data, and twice where the bound asks for the rate's slope too",
    "tuning, warm-up": "the first events set the pace of the draws; the first draws are thrown away",
    "PC 1, PC 2": "the two directions in which the draws vary most; last PC: in which they vary least",
    "canonical": "with a network's hidden units in one order and with one sign; the network stays, its path jumps",
    "R-hat, ESS": "whether the chains agree (near 1), and how many independent draws theirs are worth: for averages"
    " (bulk), for the 5 % and 95 % quantiles (tail), for U, and for a network's predictions at 8 inputs (functions), of"
    " up to 2,000 draws",
}
_STYLE = """
h3 {font-size: 14px; margin: 8px 0 2px}
table {border-collapse: collapse; font-size: 13.5px; margin-bottom: 4px}
td {padding: 2px 14px 2px 0; vertical-align: top; line-height: 1.4}
td:first-child {white-space: nowrap}
kbd {border: 1px solid var(--mui-palette-divider); border-radius: 4px; padding: 1px 7px; font: inherit}
"""


class Guide:
    """Open the dialog behind the question mark.

    Parameters
    ----------
    on_tour : callable or None
        Called without arguments when the tour is wanted; None where the page has none.
    words : dict
        What else the page's words mean.
    """

    def __init__(self, on_tour: Callable[[], None] | None, words: dict[str, str] | None = None) -> None:
        look = {"variant": "outlined", "margin": (4, 0, 10, 0), "visible": on_tour is not None}
        tour = button("Take the tour", lambda: (self._dialog.show(False), on_tour()), **look)
        self._marks = pn.pane.HTML("", stylesheets=[_STYLE], sizing_mode="stretch_width")
        tables = {"Words": {**(words or {}), **WORDS}, "Keys": KEYS, "Pointer": HANDS, "Keys in a figure": FIGURE_KEYS}
        text = "".join(f"<h3>{title}</h3>{_table(rows)}" for title, rows in tables.items())
        words = pn.pane.HTML(text, stylesheets=[_STYLE], sizing_mode="stretch_width")
        self._dialog = Dialog("Keys and marks", words, self._marks, tour)
        self.root = self._dialog.root
        self.theme(False)

    def toggle(self) -> None:
        """Open or close."""
        self._dialog.show(not self._dialog.is_open)

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        rows = "".join(
            f"<tr><td>{sign}</td><td>{meaning}</td></tr>" for sign, meaning in _signs(DARK if dark else LIGHT)
        )
        self._marks.object = f"<h3>Marks and lines</h3><table>{rows}</table>"


def _signs(palette: Palette) -> list[tuple[str, str]]:
    marks = [(mark_html(kind, palette), meaning) for kind, meaning in MARKS]
    return marks + [
        (line_html(name, getattr(palette, role), palette, dash=dash), meaning) for name, role, dash, meaning in LINES
    ]


def _table(meanings: dict[str, str]) -> str:
    rows = "".join(f"<tr><td><kbd>{key}</kbd></td><td>{meaning}</td></tr>" for key, meaning in meanings.items())
    return f"<table>{rows}</table>"

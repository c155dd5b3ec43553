"""The table of a race: one row for each lane, sorted as its reader likes, by error at first."""

from __future__ import annotations

import math
from typing import Any

import panel as pn
import param
from panel.custom import JSComponent

from bnnviz.views import DARK, LIGHT
from bnnviz.views.comparison import leaderboard as written
from bnnviz_app import projector
from bnnviz_app.components.cards.cards import HEAD, surface

_LARGE = ":host(.large) table {font-size: 16px}"
_STYLE = """
:host {overflow: auto; font-size: 13px; color: var(--mui-palette-text-primary); --bad: #b3134f}
:host(.dark) {--bad: #ff86b0}
table {width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums}
th {position: sticky; top: 0; background: var(--mui-palette-background-paper); padding: 0}
th button {font: 600 12px/1.2 inherit; font-family: inherit; font-size: 12px; width: 100%; padding: 4px 6px; border: 0;
  background: none; color: var(--mui-palette-text-secondary); cursor: pointer; text-align: right; white-space: nowrap}
th.name button {text-align: left}
th button:focus-visible {outline: 2px solid var(--mui-palette-primary-main); outline-offset: -2px}
th[aria-sort] button {color: var(--mui-palette-text-primary)}
td {padding: 3px 6px; text-align: right; border-top: 1px solid var(--mui-palette-divider); white-space: nowrap}
td.name {text-align: left; max-width: 190px; overflow: hidden; text-overflow: ellipsis}
td.name i {display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 7px}
td.sorted {font-weight: 600}
.lost {color: var(--bad); font-weight: 600; margin-left: 6px}
@media (max-height: 800px) {:host {font-size: 12px} td {padding: 1px 6px}}
"""


class Standings(JSComponent):
    """Rows and columns; the browser sorts them, and an unknown figure comes last both ways."""

    columns = param.List(doc="[name, heading, doc, whether more is better] of each figure.")
    rows = param.List(doc="[rank, colour, lane's name, settings, what befell it, {figure: [number or None, text]}].")

    first = param.String("error", doc="The figure that rows are sorted by at first.")

    _esm = "leaderboard.js"


class StandingsCard:
    """The table on a card."""

    needs, hot = frozenset({"table"}), False

    def __init__(self, dark: bool, first: str = "error") -> None:
        self._dark, self._chains = dark, 0
        self._table: dict[str, Any] | None = None
        self._standings = Standings(
            first=first, sizing_mode="stretch_both", margin=(0, 10, 6, 10), stylesheets=[_STYLE, _LARGE]
        )
        self._title = pn.pane.HTML(
            "<h2><b>Standings</b></h2>", margin=(7, 14, 3, 14), height=20, stylesheets=[HEAD, projector.CARD]
        )
        self.root = surface(self._title, self._standings, area="table")
        self._dress()

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new race."""
        self._chains = scene["lanes"][0]["spec"]["chains"]
        self._table = None
        self._standings.rows = []

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        self._table = frame["table"]
        shown = written.columns_for(self._table["scores"], self._table.get("errors", True))
        columns = [[each.name, each.head, each.doc, each.best > 0] for each in shown]
        if columns != self._standings.columns:
            self._standings.columns = columns
        colours = (DARK if self._dark else LIGHT).chains
        self._standings.rows = [
            [
                row["rank"],
                colours[row["lane"]],
                row["name"],
                written.settings_text(row["settings"]),
                written.divergence_text(row, self._chains),
                {each.name: [_number(row.get(each.name)), written.cell(row, each)] for each in shown},
            ]
            for row in self._table["rows"]
        ]

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        projector.dress(self._standings, large)
        projector.dress(self._title, large)

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        self._dark = dark
        self._dress()
        if self._table is not None:
            self.update({"table": self._table})

    def _dress(self) -> None:
        kept = [name for name in self._standings.css_classes or [] if name != "dark"]
        self._standings.css_classes = [*kept, "dark"] if self._dark else kept


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)

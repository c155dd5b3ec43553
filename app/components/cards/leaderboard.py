"""Show the table of a race: one row for each lane, sorted as its reader likes, by error at first."""

from __future__ import annotations

import math
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz.views import DARK, LIGHT
from bnnviz.views.comparison import leaderboard as written
from bnnviz_app.components.cards.cards import TitledCard
from bnnviz_app.components.widgets import script, set_changed

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


class Leaderboard(JSComponent):
    """Show rows and columns; the browser sorts them, and an unknown figure comes last both ways."""

    columns = param.List(doc="[name, heading, doc, whether more is better] of each figure.")
    rows = param.List(doc="[rank, colour, lane's name, settings, what befell it, {figure: [number or None, text]}].")

    first = param.String("error", doc="The figure that rows are sorted by at first.")

    _esm = script(__file__, "leaderboard.js")


class LeaderboardCard(TitledCard):
    """Show the table on a card."""

    needs = frozenset({"table"})

    def __init__(self, dark: bool, first: str = "error") -> None:
        self._dark, self._chains = dark, 0
        self._table: dict[str, Any] | None = None
        self._leaderboard = Leaderboard(
            first=first, sizing_mode="stretch_both", margin=(0, 10, 6, 10), stylesheets=[_STYLE, _LARGE]
        )
        super().__init__("<b>Standings</b>", self._leaderboard, "table")

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new race."""
        self._chains = scene["lanes"][0]["spec"]["chains"]
        self._table = None
        self._leaderboard.rows = []

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        self._table = frame["table"]
        shown = written.columns_for(self._table["scores"], self._table.get("errors", True))
        set_changed(self._leaderboard, columns=[[each.name, each.head, each.doc, each.best > 0] for each in shown])
        colours = (DARK if self._dark else LIGHT).chains
        self._leaderboard.rows = [
            [
                row["rank"],
                colours[row["lane"]],
                row["name"],
                written.settings_text(row["settings"]),
                written.verdict(row, self._chains),
                {each.name: [_number(row.get(each.name)), written.cell(row, each)] for each in shown},
            ]
            for row in self._table["rows"]
        ]

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        super().theme(dark)
        self._dark = dark
        if self._table is not None:
            self.update({"table": self._table})


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)

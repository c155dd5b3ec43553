"""Show the table of a race: one row for each sampler, sortable, initially by error."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

from bnnviz.figures import leaderboard as written
from bnnviz.files import to_json
from bnnviz_app.components.cards.cards import ExplainedCard
from bnnviz_app.components.widgets import script, set_changed
from bnnviz_app.theme import entry_colour, styles

_STYLES = styles(__file__)
_WHO = "sampler"


class Leaderboard(JSComponent):
    """Show rows and columns; the browser sorts them, and an unknown figure comes last both ways."""

    columns = param.List(doc="[name, heading, doc, whether more is better] of each figure.")
    rows = param.List(doc="[rank, colour, sampler's name, settings, divergence, {figure: [number or None, text]}].")

    first = param.String("error", doc="The figure that rows are sorted by at first.")
    rank = param.String(written.RANK, doc="Tooltip of the rank.")
    who = param.String(_WHO, doc="Heading of the names.")
    explaining = param.Boolean(doc="Whether to show definitions of the columns instead of the rows.")

    _esm = script(__file__, "leaderboard.js")


class LeaderboardCard(ExplainedCard):
    """Show the table, or definitions of its columns, on a card."""

    needs = frozenset({"table"})

    def __init__(self, first: str = "error") -> None:
        self._chains = 0
        self._leaderboard = Leaderboard(
            first=first, sizing_mode="stretch_both", margin=(0, 10, 6, 10), stylesheets=[_STYLES["table"]]
        )
        super().__init__("<b>Leaderboard</b>", self._leaderboard)

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new race."""
        self._chains = scene["entries"][0]["spec"]["chains"]
        self._leaderboard.rows = []

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        table = frame["table"]
        columns = written.columns_for(table["scores"], table.get("errors", True))
        # Predictive scores come first: a phone shows the first five columns.
        columns.sort(key=lambda each: each.name not in table["scores"])
        set_changed(self._leaderboard, columns=[[each.name, each.head, each.doc, each.best > 0] for each in columns])
        self._leaderboard.rows = [
            [
                row["ranks"],
                entry_colour(row["entry"]),
                row["name"],
                written.settings_text(row["settings"]),
                written.divergence_text(row, self._chains),
                {each.name: [to_json(row.get(each.name)), written.cell(row, each)] for each in columns},
            ]
            for row in table["rows"]
        ]

    def _show(self) -> None:
        self._leaderboard.explaining = self._explaining

"""Show the columns of a file in a table with the choice of their roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz.specs.upload import ColumnOverview, TableOverview
from bnnviz_app.components.tables.opening import TableChoices
from bnnviz_app.components.widgets import script, set_changed
from bnnviz_app.theme import styles

_STYLES = styles(__file__)
INPUT, TARGET, LEFT = "input", "target", "left"


class ColumnRows(JSComponent):
    """Show a line for each column."""

    rows = param.List(doc="name, kind, missing, examples, remark, role, and whether that is fixed, of each column.")

    _esm = script(__file__, "column_table.js")


class ColumnTable:
    """Show the columns of a file."""

    def __init__(self, on_role: Callable[[str, str], None]) -> None:
        self._on_role = on_role
        self.root = ColumnRows(sizing_mode="stretch_width", margin=(6, 0), stylesheets=[_STYLES["columns"]])
        self.root.on_msg(self._receive)

    def show(self, found: TableOverview, choices: TableChoices) -> None:
        """Show the columns and their roles."""
        set_changed(self.root, rows=[_row(column, choices) for column in found.columns])

    def _receive(self, event: Any) -> None:
        reported = event.data if isinstance(event.data, dict) else {}
        known = [row["name"] for row in self.root.rows if not row["fixed"]]
        if reported.get("column") in known and reported.get("role") in (INPUT, TARGET, LEFT):
            self._on_role(reported["column"], reported["role"])


def _row(column: ColumnOverview, choices: TableChoices) -> dict[str, Any]:
    is_target = column.name == choices.target
    left = column.is_passed_over or column.name in choices.leave_out
    kind = f"{column.kind}, {column.levels} levels" if column.levels else column.kind
    return {
        "name": column.name,
        "kind": kind,
        "missing": column.missing,
        "examples": list(column.examples),
        "remark": "" if is_target and column.is_passed_over else column.remark,
        "role": TARGET if is_target else LEFT if left else INPUT,
        # The reader always drops it.
        "fixed": column.is_passed_over and not is_target,
    }

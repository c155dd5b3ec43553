"""Attach a file opened on the page to a spec, and parse typed rows; without torch.

The page gets its view of a user's table from here.
"""

from __future__ import annotations

from typing import Any

from bnnviz.data import UserTable, read_table
from bnnviz.data.splits import split_rows
from bnnviz.data.tables.columns import Column as ColumnOverview
from bnnviz.data.tables.new_rows import RowField, fields_of, read_texts
from bnnviz.data.tables.questions import TableQuestion
from bnnviz.data.tables.read_table import TableOverview, overview
from bnnviz.specs import catalogue
from bnnviz.specs.run import Spec

__all__ = [
    "MOST_BYTES",
    "ColumnOverview",
    "RowField",
    "TableOverview",
    "TableQuestion",
    "UserTable",
    "attach",
    "fields_of",
    "overview",
    "read_texts",
    "training_rows",
]

MOST_BYTES = 16_000_000  # of a file opened on the page; the command line accepts larger ones


def attach(
    spec: Spec, content: bytes, name: str, target_column: str, task: Any = None, **reading: Any
) -> tuple[Spec, list[str]]:
    """Replace a spec's data by the rows of a file."""
    table = read_table(content, target_column, task, name, **reading)
    on_data = next(item for item in catalogue.load()["targets"] if any(s["name"] == "data" for s in item["settings"]))
    settings = dict(spec.target_settings) if spec.target == on_data["name"] else {}
    settings |= {"data": catalogue.own_data(), "points": None, "split": 0}
    changed = spec.replace(target=on_data["name"], target_settings=settings, file=None, attachment=table.pack())
    changed = changed.replace(start=None, start_points=None)  # these belong to other weights
    return changed.checked(), list(table.notes)


def training_rows(spec: Spec) -> int:
    """Return the number of training rows of a spec's file."""
    return len(split_rows(spec.file["rows"], 0)["train"])

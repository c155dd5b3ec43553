"""Read a file with the user's options, and build the Lab's initial spec from it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from bnnviz.errors import BnnvizError
from bnnviz.specs import upload
from bnnviz.specs.run import Spec
from bnnviz_app.access.roles import Role

_PRESET = json.loads((Path(__file__).parents[2] / "presets" / "your_data.json").read_text(encoding="utf-8"))


class TableChoices(NamedTuple):
    """The user's options for a file; parameters of `bnnviz.data.read_table`."""

    target: str
    task: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] | None = None
    leave_out: tuple[str, ...] = ()


class OpenedTable(NamedTuple):
    """The result of reading a file."""

    spec: Spec
    notes: list[str]
    why: str


class TableReading(NamedTuple):
    """A file's columns, and its table or the error of reading it."""

    overview: upload.TableOverview
    opened: OpenedTable | None
    error: BnnvizError | None


def look(content: bytes, name: str, choices: TableChoices | None, role: Role) -> TableReading:
    """Look at the columns of a file, and open it."""
    given = TableChoices("") if choices is None else choices
    found = upload.overview(content, name, decimal=given.decimal, missing=given.missing)
    choices = first_choices(found) if choices is None else choices
    try:
        return TableReading(found, open_table(content, name, choices, role), None)
    except BnnvizError as error:
        return TableReading(found, None, error)


def first_choices(found: upload.TableOverview) -> TableChoices:
    """Return the default choices."""
    left = [column.name for column in found.columns if column.is_refused and column.name != found.target]
    return TableChoices(found.target, leave_out=tuple(left))


def open_table(content: bytes, name: str, choices: TableChoices, role: Role) -> OpenedTable:
    """Return the spec that the Lab begins with on a file."""
    reading = choices._asdict()
    target, task = reading.pop("target"), reading.pop("task")
    spec, notes = upload.attach(Spec.from_json(_PRESET["spec"]), content, name, target, task, **reading)
    rows = upload.training_rows(spec)
    sampler = _by_rows(_PRESET["samplers"], rows)
    begun = spec.replace(**sampler["value"])
    why = f"{sampler['why']} {_PRESET['pilot']}"
    return OpenedTable(_sized(begun, _by_rows(_PRESET["hidden"], rows)["value"], role), notes, why)


def _by_rows(entries: list[dict[str, Any]], rows: int) -> dict[str, Any]:
    """Return the first entry for this number of training rows."""
    return next(entry for entry in entries if entry["below_rows"] is None or rows < entry["below_rows"])


def _sized(spec: Spec, hidden: str, role: Role) -> Spec:
    """Return the spec with the requested number of hidden units, up to the limit of the role."""
    requested = [hidden, *(each for each in _PRESET["smaller"] if int(each) < int(hidden))]
    made = [spec.replace(target_settings={**spec.target_settings, "hidden": units}).checked() for units in requested]
    for each in made[:-1]:
        with contextlib.suppress(BnnvizError):
            role.check(each)
            return each
    role.check(made[-1])
    return made[-1]

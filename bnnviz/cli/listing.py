"""``bnnviz list``: targets, samplers, data sets and experiments, and the settings of one of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnnviz.cli.options import Json, examples
from bnnviz.cli.output import console, print_json, table
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue

if TYPE_CHECKING:
    from rich.table import Table

KINDS = ("targets", "samplers", "data", "papers")

app = typer.Typer()


@app.command("list", epilog=examples("bnnviz list samplers", "bnnviz list targets banana", "bnnviz list data --json"))
def list_(
    kind: Annotated[str, typer.Argument(metavar=f"{{{','.join(KINDS)}}}", help="What to list.")],
    name: Annotated[str | None, typer.Argument(help="Only this one, with its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List what there is to run, or the settings of one of them."""
    if kind not in KINDS:
        raise BnnvizError(f"There is no list of {kind!r}; choose one of {', '.join(KINDS)}.")
    entries = _entries(kind, name)
    if as_json:
        print_json(entries)
    elif not entries:
        print(f"There are no {kind} yet.", file=sys.stderr)
    elif name is not None and entries[0].get("settings"):
        console().print(f"{entries[0]['title']}. {entries[0]['doc']}", highlight=False, markup=False)
        console().print(_settings_table(entries[0]["settings"]))
    else:
        console().print(_entries_table(entries))


def _entries(kind: str, name: str | None) -> list[dict[str, Any]]:
    """Return all entries of a kind, or the one of a name."""
    if kind != "papers":
        return catalogue.load()[kind] if name is None else [catalogue.find(kind, name)]
    # With the experiments comes numpy, which the other lists do without.
    from bnnviz import experiments

    found = None if name is None else experiments.find(name).name
    return [entry for entry in experiments.describe() if found in (None, entry["name"])]


def _entries_table(entries: list[dict[str, Any]]) -> Table:
    rows = table("name", "title", "what it is")
    for entry in entries:
        rows.add_row(entry["name"], entry["title"], entry["doc"])
    return rows


def _settings_table(settings: list[dict[str, Any]]) -> Table:
    rows = table("setting", "default", "values", "unit", "what it does")
    for setting in settings:
        rows.add_row(setting["name"], str(setting["default"]), _values(setting), setting["unit"], setting["doc"])
    return rows


def _values(setting: dict[str, Any]) -> str:
    """Return the values that a setting takes, in words."""
    if setting["choices"]:
        return ", ".join(str(choice) for choice in setting["choices"])
    low, high = setting["bounds"] or (None, None)
    if low is None and high is None:
        return setting["type"]
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"{low:g} to {high:g}"

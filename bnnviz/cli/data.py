"""Run ``bnnviz list`` and ``bnnviz data``: list the catalogue and the files of data sets."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from bnnviz.cli.options import Json, examples
from bnnviz.cli.output import console, print_json, print_rows, table
from bnnviz.errors import BnnvizError
from bnnviz.settings import bounds_text
from bnnviz.specs import catalogue

KINDS = ("targets", "samplers", "data", "papers")

app = typer.Typer()
group = typer.Typer(help="The data sets' files: which are on this machine, and how to get them here.")


@app.command("list", epilog=examples("bnnviz list samplers", "bnnviz list targets banana", "bnnviz list data --json"))
def list_(
    kind: Annotated[str, typer.Argument(metavar=f"{{{','.join(KINDS)}}}", help="The kind to list.")],
    name: Annotated[str | None, typer.Argument(help="Only this one, with its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List the catalogue, or the settings of one entry."""
    if kind not in KINDS:
        raise BnnvizError(f"There is no list of {kind!r}; choose one of {', '.join(KINDS)}.")
    entries = _entries(kind, name)
    if as_json:
        print_json(entries)
    elif not entries:
        print(f"There are no {kind} yet.", file=sys.stderr)
    elif name is not None and entries[0].get("settings"):
        console().print(f"{entries[0]['title']}. {entries[0]['doc']}", highlight=False, markup=False)
        rows = [(s["name"], str(s["default"]), _values(s), s["unit"], s["doc"]) for s in entries[0]["settings"]]
        shown = table("setting", "default", "values", "unit", "description", rows=rows)
        shown.columns[0].no_wrap = True  # a name that is cut cannot be typed
        console().print(shown)
    else:
        console().print(
            table("name", "title", "description", rows=[(e["name"], e["title"], e["doc"]) for e in entries])
        )


def _entries(kind: str, name: str | None) -> list[dict[str, Any]]:
    """Return all entries of a kind, or the one of a name."""
    if kind != "papers":
        return catalogue.load()[kind] if name is None else [catalogue.find(kind, name)]
    # With the experiments comes numpy, which the other lists do without.
    from bnnviz import experiments

    found = None if name is None else experiments.find(name).name
    return [entry for entry in experiments.describe() if found in (None, entry["name"])]


def _values(setting: dict[str, Any]) -> str:
    """Return the values that a setting takes, in words."""
    if setting["choices"]:
        return ", ".join(str(choice) for choice in setting["choices"])
    low, high = setting["bounds"] or (None, None)
    free = low is None and high is None
    return setting["type"] if free else bounds_text(low, high).removeprefix("a value from ")


# --- files of data sets


@group.command("list", epilog=examples("bnnviz data list", "bnnviz data list --json"))
def data_list(as_json: Json = False) -> None:
    """List the data sets, and which of them have their files on this machine."""
    from bnnviz import data

    found = [
        {**entry, "here": data.is_here(entry["name"]), "remark": data.remark(entry["name"])}
        for entry in catalogue.load()["data"]
    ]
    rows = [
        (
            *(entry["name"], entry["title"], entry["kind"]),
            f"{entry['rows']:,}" if entry["rows"] else "-",
            entry["remark"] or ("yes" if entry["here"] else "no"),
        )
        for entry in found
    ]
    print_rows(found, as_json, ("name", "title", "kind", "rows", "here"), rows)


@group.command("fetch", epilog=examples("bnnviz data fetch concrete", "bnnviz data fetch yacht energy --json"))
def data_fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The data sets.")],
    as_json: Json = False,
) -> None:
    """Download the files of data sets, check them, and print their paths."""
    for name in names:
        catalogue.find("data", name)
    from bnnviz import data

    places = {}
    for name in names:
        print(f"Fetching {name} ...", file=sys.stderr, flush=True)
        places[name] = [str(place) for place in data.fetch(name)]
    if as_json:
        print_json(places)
    else:
        print("\n".join(place for found in places.values() for place in found))

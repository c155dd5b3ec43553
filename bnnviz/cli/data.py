"""``bnnviz data``: which data sets are on this machine, and how to get them here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bnnviz.cli.options import Json, examples
from bnnviz.cli.output import console, print_json, table
from bnnviz.specs import catalogue

group = typer.Typer(help="The data sets' files: which are on this machine, and how to get them here.")


@group.command("list", epilog=examples("bnnviz data list", "bnnviz data list --json"))
def data_list(as_json: Json = False) -> None:
    """List the data sets, and which of them have their files on this machine."""
    from bnnviz import data

    found = [
        {**entry, "here": data.is_here(entry["name"]), "remark": data.remark(entry["name"])}
        for entry in catalogue.load()["data"]
    ]
    if as_json:
        print_json(found)
        return
    rows = table("name", "title", "kind", "rows", "here")
    for entry in found:
        size = f"{entry['rows']:,}" if entry["rows"] else "-"
        here = entry["remark"] or ("yes" if entry["here"] else "no")
        rows.add_row(entry["name"], entry["title"], entry["kind"], size, here)
    console().print(rows)


@group.command("fetch", epilog=examples("bnnviz data fetch boston", "bnnviz data fetch yacht concrete --json"))
def data_fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The data sets.")],
    as_json: Json = False,
) -> None:
    """Download the files of data sets, check them, and say where they are."""
    for name in names:
        catalogue.find("data", name)
    from bnnviz import data

    places = {}
    for name in names:
        print(f"Fetching {name} ...", file=sys.stderr, flush=True)
        places[name] = [str(place) for place in data.fetch_all(name)]
    if as_json:
        print_json(places)
    else:
        print("\n".join(place for found in places.values() for place in found))

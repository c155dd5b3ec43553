"""``bnnviz list``, ``data`` and ``bench``: what there is to run, which files are here, how fast this machine is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnnviz.cli.output import console, print_json, table, text, until_interrupt
from bnnviz.cli.request import Json, examples
from bnnviz.errors import BnnvizError
from bnnviz.files import plain
from bnnviz.specs import catalogue

if TYPE_CHECKING:
    from rich.table import Table

KINDS = ("targets", "samplers", "data", "papers")

app, bench_app = typer.Typer(), typer.Typer()
group = typer.Typer(help="The data sets' files: which are on this machine, and how to get them here.")


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


# --- files of data sets


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


# --- the speed of this machine


@bench_app.command(epilog=examples("bnnviz bench live", "bnnviz bench live --case startup --json"))
def bench(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="What to measure, such as live.")],
    case: Annotated[str | None, typer.Option(help="Only this part of it.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long each part is measured.")] = 60,
    as_json: Json = False,
) -> None:
    """Measure this machine, beside what is aimed at.

    Each figure is told on stderr when it is known; all of them come at the end.
    """
    from bnnviz.benchmarks import find

    rows = []
    with console(stderr=True).status("Starting.") as status:
        for row in until_interrupt(find(suite).run(case, seconds, status.update)):
            rows.append(row)
            print(_line(plain(row)), file=sys.stderr, flush=True)
    if as_json:
        print_json(rows)
    else:
        console().print(_bench_table(plain(rows)))


def _line(row: dict[str, Any]) -> str:
    parts = [f"{row['case']}, {row['metric']}: {text(row['value'])} {row['unit']}".rstrip()]
    parts += [f"{row['target']} {_verdict(row)}"] if row["target"] else []
    return "; ".join(parts + [row["note"]] if row.get("note") else parts)


def _bench_table(rows: list[dict[str, Any]]) -> Table:
    figures = table("case", "metric", "value", "unit", "target", "", "note")
    for row in rows:
        verdict = _verdict(row)
        verdict = f"[red]{verdict}[/red]" if verdict == "missed" else verdict
        cells = (row["case"], row["metric"], text(row["value"]), row["unit"], row["target"])
        figures.add_row(*cells, verdict, row.get("note", ""))
    return figures


def _verdict(row: dict[str, Any]) -> str:
    return "" if not row["target"] else "met" if row["ok"] else "missed"

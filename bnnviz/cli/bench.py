"""``bnnviz bench``: measure this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnnviz.cli.interrupt import until_interrupt
from bnnviz.cli.options import Json, examples
from bnnviz.cli.output import console, print_json, table, text
from bnnviz.files import plain

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer()


@app.command(epilog=examples("bnnviz bench live", "bnnviz bench live --case startup --json"))
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
        console().print(_rows_table(plain(rows)))


def _line(row: dict[str, Any]) -> str:
    parts = [f"{row['case']}, {row['metric']}: {text(row['value'])} {row['unit']}".rstrip()]
    parts += [f"{row['target']} {_verdict(row)}"] if row["target"] else []
    return "; ".join(parts + [row["note"]] if row.get("note") else parts)


def _rows_table(rows: list[dict[str, Any]]) -> Table:
    figures = table("case", "metric", "value", "unit", "target", "", "note")
    for row in rows:
        verdict = _verdict(row)
        verdict = f"[red]{verdict}[/red]" if verdict == "missed" else verdict
        cells = (row["case"], row["metric"], text(row["value"]), row["unit"], row["target"])
        figures.add_row(*cells, verdict, row.get("note", ""))
    return figures


def _verdict(row: dict[str, Any]) -> str:
    return "" if not row["target"] else "met" if row["ok"] else "missed"

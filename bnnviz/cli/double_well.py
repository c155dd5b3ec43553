"""``bnnviz wells``: FuncHMC beside HMC on the double well."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bnnviz.cli.options import Json, examples
from bnnviz.cli.output import console, print_json, table, text
from bnnviz.cli.request import parse_value
from bnnviz.errors import BnnvizError

app = typer.Typer()


@app.command(epilog=examples("bnnviz wells", "bnnviz wells --set reading=text --set moves=100 --json"))
def wells(
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as reading=text; may be given many times."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Sample the double well with FuncHMC and HMC, 400 runs of each, and set what came out side by side."""
    from bnnviz.specs.demo import WellsSpec

    spec = WellsSpec(_read_settings(settings or [])).checked()
    from bnnviz.api.analysis import wells as sample_wells  # with torch: the settings are right by now

    figures = sample_wells(**spec.settings).figures()
    if as_json:
        print_json({"settings": spec.settings, **figures})
        return
    rows = table("", *figures)
    for key in next(iter(figures.values())):
        rows.add_row(key, *(text(side[key]) for side in figures.values()))
    console().print(rows)


def _read_settings(assignments: list[str]) -> dict[str, Any]:
    """Read the ``--set`` options; a name that is no setting stays, for the check to refuse."""
    from bnnviz.specs.demo import WellsSpec

    known, given = {setting["name"]: setting for setting in WellsSpec.described()}, {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise BnnvizError(f"--set {assignment} is no KEY=VALUE.", "set")
        given[name] = parse_value(known[name], value) if name in known else value
    return given

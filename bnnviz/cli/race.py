"""Run ``bnnviz race`` and ``wells``: compare samplers on one target."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnnviz.cli import options
from bnnviz.cli.output import FAILED, INTERRUPTED, console, failure, print_json, print_rows, say, short, table, text
from bnnviz.cli.sample import drive
from bnnviz.errors import BnnvizError
from bnnviz.figures.leaderboard import COLUMNS, SCORES
from bnnviz.files import to_json
from bnnviz.specs import catalogue
from bnnviz.specs.race import DEFAULT_BUDGET, SHARED, RaceSpec

if TYPE_CHECKING:
    from rich.text import Text

    from bnnviz.engine.race.race import Race

#: The columns of a sampler's row, as far as the target has them, under the headings of the leaderboard.
_COLUMNS = (*("error", "error_low", "error_high", "rhat", "ess", "ess_per_s", "ess_per_million"), *SCORES, "seconds")

app, wells_app = typer.Typer(), typer.Typer()


@app.command(
    epilog=options.examples(
        "bnnviz race bps hmc sgld --target banana --budget 200000",
        "bnnviz race bps hmc sghmc:friction=0.5 --data toy_c --chains 4 --figure race.html",
        "bnnviz race hmc sgld:step_size=0.01 sgld:step_size=0.1 --target gaussian --set target.size=10 --json",
        "bnnviz race race.json --budget 5000000",
    )
)
def race(
    entries: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC...",
            help="Two to six samplers of `bnnviz list samplers`, each NAME, NAME:key=value,key=value or a SPEC.json;"
            " or one race as JSON.",
        ),
    ],
    budget: Annotated[
        int | None,
        typer.Option(
            help="Per-example gradients that each may spend, all its chains together; rejected proposals, tuning and"
            f" warm-up are charged. Default: {DEFAULT_BUDGET:,}."
        ),
    ] = None,
    target: options.Target = None,
    data: options.Data = None,
    target_column: options.TargetColumn = None,
    task: options.Task = None,
    decimal: options.Decimal = None,
    missing: options.Missing = None,
    leave_out: options.LeaveOut = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the target or of all runs, such as size=10 or warmup=500; may be given many times.",
        ),
    ] = None,
    chains: Annotated[int | None, typer.Option(help="Chains of each sampler.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of every sampler's random numbers.")] = None,
    device: options.Device = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw here: curves and table as .html for a browser, curves as .pdf or .png."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Race samplers with the same target, start, seed and gradient budget; a table compares their errors.

    Ctrl-C stops early and keeps the results so far. A sampler whose chains meet non-finite values is reported, stopped
    and not ranked; the others finish.
    """
    request, own = _read_entries(entries)
    reading = options.TableOptions(target_column, task, decimal, missing, leave_out)
    file = options.enter_target(request, target, data, reading)
    options.enter_options(request, chains=chains, seed=seed, device=device, budget=budget)
    _apply_settings(request, own, settings or [])
    spec = RaceSpec.from_json({**request, "entries": own}, None if file is None else file.pack())
    figure = options.figure_place(figure, "figure")
    for note in file.notes if file is not None else ():
        say(note)
    raise typer.Exit(_race(spec, figure, as_json))


def _read_entries(words: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the settings that the samplers share, and each sampler's own, from the files."""
    request: dict[str, Any] = {}
    own: list[dict[str, Any]] = []
    for word in words:
        if not (word == "-" or word.endswith(".json")):
            own.append(_read_entry(word))
            continue
        value = options.read_request(word)
        own += value.pop("entries", None) or [
            {name: value.pop(name) for name in ("sampler", "settings", "warmup", "kernel") if name in value}
        ]
        shared = {name: value[name] for name in (*SHARED, "budget") if name in value}
        for name, found in shared.items():
            if request.setdefault(name, found) != found:
                raise BnnvizError(f"The files have different values of {name}; all samplers of a race share one.", name)
    return request, own


def _read_entry(word: str) -> dict[str, Any]:
    """Parse a sampler written as NAME or NAME:key=value,key=value."""
    name, _, text = word.partition(":")
    owner = {"sampler": catalogue.find("samplers", name)}
    assignments = [part for part in text.split(",") if part]
    found = options.read_assignments(assignments, owner, "key=value in NAME:key=value,key=value")
    return {"sampler": name, "settings": {key: value for _, key, value in found}}


def _apply_settings(request: dict[str, Any], own: list[dict[str, Any]], assignments: list[str]) -> None:
    """Apply the ``--set`` options: settings of the target, of the race, or of every sampler."""
    given: dict[str, Any] = {"target": request["target"], "target_settings": request.get("target_settings", {})}
    options.apply_settings(given, assignments, to_sampler=False)
    for name, value in given.items():
        if name in SHARED:
            request[name] = value
        elif name in ("warmup", "kernel"):
            for entry in own:
                entry[name] = value
        else:
            raise BnnvizError(f"{name} is not a setting of a race: the budget determines its length.", name)


def _race(spec: RaceSpec, figure: Path | None, as_json: bool) -> int:
    """Race to the end or to Ctrl-C, print and draw the results, and return the exit code."""
    from bnnviz.engine.race.race import Race

    race = Race(spec)
    try:
        interrupted = drive(race)
    except KeyboardInterrupt:
        say("stopped before the first step; nothing was kept.")
        return INTERRUPTED
    _print(race, as_json)
    if figure is not None:
        from bnnviz.figures.still.race_page import save_race

        save_race(race.scene(), race.frame(["caption", "curves", "table"]), figure)
    for note in race.notes:
        say(note)
    if race.error is not None:
        say(race.error)
        return FAILED
    if interrupted:
        say(f"stopped when {100 * race.progress:.0f}% of the budgets was spent.")
    return INTERRUPTED if interrupted else 0


def _print(race: Race, as_json: bool) -> None:
    """Print the samplers, best first, with their warnings."""
    if as_json:
        print_json(race.summary())
        if warning := race.frame(["caption"])["caption"]["warning"]:
            say(warning)
        return
    frame = race.frame(["table", "caption"])
    rows, caption = to_json(frame["table"]["rows"]), frame["caption"]
    shown = {each.name: each.head for each in COLUMNS if each.name in _COLUMNS and each.name in rows[0]}
    console().print(table("", "sampler", *shown.values(), rows=(_cells(row, shown) for row in rows)))
    console().print(" ".join(part for part in (caption["text"], caption["warning"]) if part), highlight=False)


def _cells(row: dict[str, Any], shown: Iterable[str]) -> tuple[str | Text, ...]:
    name = failure("diverged", before=f"{row['name']}: ") if row["diverged"] else row["name"]
    return row["ranks"] or "–", name, *(short(row[key]) for key in shown)


# --- the double well


@wells_app.command(epilog=options.examples("bnnviz wells", "bnnviz wells --set reading=text --set moves=100 --json"))
def wells(
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as reading=text; may be given many times."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Sample the double well with FuncHMC and HMC, 400 runs of each, and compare the results."""
    from bnnviz.specs.wells import WellsSpec

    owner = {"wells": {"title": WellsSpec.owner, "settings": WellsSpec.described()}}
    spec = WellsSpec({name: value for _, name, value in options.read_assignments(settings or [], owner)}).checked()
    from bnnviz.api.analysis import wells as sample_wells  # with torch: the settings are right by now

    figures = sample_wells(**spec.settings).figures()
    rows = [(key, *(text(side[key]) for side in figures.values())) for key in next(iter(figures.values()))]
    print_rows({"settings": spec.settings, **figures}, as_json, ("", *figures), rows)

"""The command line: ``bnnviz list``, ``data``, ``sample``, ``race``, ``reproduce``, ``replay``, ``bench``, ``serve``.

Results go to stdout, everything else to stderr. Input that cannot be used ends with exit code 2 and
one sentence. Nothing here imports torch before something is sampled.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from bnnviz import __version__, catalogue
from bnnviz.errors import BnnvizError
from bnnviz.racespec import DEFAULT_BUDGET, SHARED, RaceSpec
from bnnviz.spec import Spec

try:
    import typer
except ModuleNotFoundError:
    sys.exit("The command line needs typer and rich; install them with: pip install 'bnnviz[cli]'.")

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from bnnviz import papers
    from bnnviz.data import OwnTable
    from bnnviz.engine.race import Race
    from bnnviz.engine.run import Run
    from bnnviz.engine.search import PriorSearch

KINDS = ("targets", "samplers", "data", "papers")
FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
SLICE_S = 0.2  # seconds of sampling between two looks at the progress and at Ctrl-C
SHOWN_COORDINATES = 20
WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]


def _examples(*commands: str) -> str:
    """Return an epilog with one command on each line."""
    return "Examples:\n\n" + "\n\n".join(commands)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : list of str or None, default None
        What follows the program's name; None takes it from the process.
    """
    try:
        code = app(args=arguments, prog_name="bnnviz", standalone_mode=False)
    except BnnvizError as error:
        code = _complain(error.sentence)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "bnnviz"
        message = " ".join(error.format_message().split()).rstrip(".")
        code = _complain(f"{message}; see {command} --help.")
    except typer.Abort:
        code = INTERRUPTED
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as head, has seen enough: nothing is left to say at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code or 0)


def _complain(sentence: str) -> int:
    print(f"bnnviz: {sentence}", file=sys.stderr)
    return BAD_INPUT


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"bnnviz {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """See how samplers of Bayesian neural networks work, live, and use them on your own networks."""


# --- list


@app.command("list", epilog=_examples("bnnviz list samplers", "bnnviz list targets banana", "bnnviz list data --json"))
def list_(
    kind: Annotated[str, typer.Argument(metavar=f"{{{','.join(KINDS)}}}", help="What to list.")],
    name: Annotated[str | None, typer.Argument(help="Only this one, with its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List what there is to run, or the settings of one of them."""
    if kind not in KINDS:
        raise BnnvizError(f"There is no list of {kind!r}; choose one of {', '.join(KINDS)}.")
    entries = _papers().describe() if kind == "papers" else catalogue.load()[kind]
    if name is not None:
        entries = [_find(kind, name)]
    if as_json:
        _print_json(entries)
    elif not entries:
        print(f"There are no {kind} yet.", file=sys.stderr)
    elif name is not None and entries[0].get("settings"):
        _console().print(f"{entries[0]['title']}. {entries[0]['doc']}", highlight=False, markup=False)
        _console().print(_settings_table(entries[0]["settings"]))
    else:
        _console().print(_entries_table(entries))


def _find(kind: str, name: str) -> dict[str, Any]:
    if kind == "papers":
        experiment = _papers().find(name)
        return next(entry for entry in _papers().describe() if entry["name"] == experiment.name)
    return catalogue.find(kind, name)


def _papers() -> ModuleType:
    """Return the experiments; with them comes numpy, which most commands do without."""
    return importlib.import_module("bnnviz.papers")


def _entries_table(entries: list[dict[str, Any]]) -> Table:
    table = _table("name", "title", "what it is")
    for entry in entries:
        table.add_row(entry["name"], entry["title"], entry["doc"])
    return table


def _settings_table(settings: list[dict[str, Any]]) -> Table:
    table = _table("setting", "default", "values", "unit", "what it does")
    for setting in settings:
        table.add_row(setting["name"], str(setting["default"]), _values(setting), setting["unit"], setting["doc"])
    return table


def _values(setting: dict[str, Any]) -> str:
    if setting["choices"]:
        return ", ".join(str(choice) for choice in setting["choices"])
    low, high = setting["bounds"] or (None, None)
    if low is None and high is None:
        return setting["type"]
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"{low:g} to {high:g}"


# --- data

data_app = typer.Typer(help="The data sets' files: which are on this machine, and how to get them here.")
app.add_typer(data_app, name="data")


@data_app.command("list", epilog=_examples("bnnviz data list", "bnnviz data list --json"))
def data_list(as_json: Json = False) -> None:
    """List the data sets, and which of them have their files on this machine."""
    sets = importlib.import_module("bnnviz.data")
    found = [
        {**entry, "here": sets.is_here(entry["name"]), "remark": sets.remark(entry["name"])}
        for entry in catalogue.load()["data"]
    ]
    if as_json:
        _print_json(found)
        return
    table = _table("name", "title", "kind", "rows", "here")
    for entry in found:
        rows = f"{entry['rows']:,}" if entry["rows"] else "-"
        here = entry["remark"] or ("yes" if entry["here"] else "no")
        table.add_row(entry["name"], entry["title"], entry["kind"], rows, here)
    _console().print(table)


@data_app.command("fetch", epilog=_examples("bnnviz data fetch boston", "bnnviz data fetch yacht concrete --json"))
def data_fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The data sets.")],
    as_json: Json = False,
) -> None:
    """Download the files of data sets, check them, and say where they are."""
    for name in names:
        catalogue.find("data", name)
    sets = importlib.import_module("bnnviz.data")
    places = {name: [str(place) for place in sets.fetch_all(name)] for name in names}
    if as_json:
        _print_json(places)
    else:
        print("\n".join(place for found in places.values() for place in found))


# --- sample


@app.command(
    epilog=_examples(
        "bnnviz reproduce pdmp-boston --repetitions 3",
        "bnnviz reproduce pdmp-boston --json",
        "bnnviz reproduce pdmp-sweeps --repetitions 1 --out sweeps.html",
        "bnnviz reproduce pdmp-fig3 --repetitions 1 --out fig3.html",
        "bnnviz reproduce pmcnet-fig4 --repetitions 1 --out roc.html",
    ),
)
def reproduce(
    experiment: Annotated[str, typer.Argument(help="Its name, from bnnviz list papers.")],
    repetitions: Annotated[int | None, typer.Option(min=1, help="Runs of each case; default: all of them.")] = None,
    data: Annotated[str | None, typer.Option(metavar="NAME", help="Which part, of a table of data sets.")] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="small|paper", help="Of a large experiment: minutes, or as published.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Draw a sweep or predictions here; a browser opens it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a paper's experiment and set our figures beside the published ones."""
    found = _papers().find(experiment).at(data, scale)
    found.check()
    out = _check_figure(found, out)
    _announce(found, repetitions)
    done: dict[str, list[dict[str, Any]]] = {}
    begun = time.perf_counter()
    try:
        for case, i, summary in _with_progress(found, repetitions):
            done.setdefault(case.name, []).append(summary)
            known = summary.get("figures", summary)
            figures = ", ".join(f"{key} {_text(known.get(key))}" for key in found.measures)
            print(f"{case.name}, run {i + 1}: {figures}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        kept = sum(map(len, done.values()))
        said = f"; {kept} runs are kept, and the same command goes on with the others" if found.keeps else ""
        print(f"bnnviz: stopped{said}.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    importlib.import_module("bnnviz.papers.measured").keep(found, done, time.perf_counter() - begun)
    rows = [found.row(case, done[case.name]) for case in found.cases]
    if out is not None:
        _draw_experiment(found, rows, done, out)
    if as_json:
        _print_json(rows)
        return
    _console().print(_draws_table(found, rows) if found.keeps else _runs_table(found, rows))
    for note in _notes(rows):
        _console().print(note)


def _announce(experiment: papers.Experiment, repetitions: int | None) -> None:
    """Say how much there is to do, before it begins."""
    runs, all_runs = experiment.runs(repetitions), experiment.runs()
    print(experiment.doc, file=sys.stderr, flush=True)
    if experiment.keeps:
        kept = experiment.kept(repetitions)
        print(f"{experiment.title}: {runs} runs, {kept} of them kept from before.", file=sys.stderr, flush=True)
        if kept < runs:
            minutes = experiment.seconds(repetitions) / 60
            print(f"The others take about {max(minutes, 1):.0f} min here.", file=sys.stderr, flush=True)
        return
    minutes = "" if experiment.minutes is None else f"; about {experiment.minutes * runs / all_runs:.0f} min on 2 cores"
    print(f"{experiment.title}: {runs} runs{minutes}.", file=sys.stderr, flush=True)


def _with_progress(
    experiment: papers.Experiment, repetitions: int | None
) -> Iterator[tuple[papers.Case, int, dict[str, Any]]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True, redirect_stderr=True) as bar:
        task = bar.add_task("", total=experiment.runs(repetitions))
        for result in experiment.reproduce(repetitions):
            bar.advance(task)
            yield result


def _notes(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each comment once, after the cases that it is on; after none where it is on all of them."""
    cases: dict[str, list[str]] = {}
    for row in rows:
        cases.setdefault(row["note"], []).append(row["case"])
    for note, names in cases.items():
        if note:
            yield note if len(names) == len(rows) else f"{', '.join(names)}: {note}"


def _beside(row: dict[str, Any], key: str) -> str:
    error, published = row[f"{key}_se"], row[f"{key}_published"]
    ours = _text(row[key]) if error is None else f"{_text(row[key])} ± {_text(error)}"
    return ours if published is None else f"{ours} ({_text(published)})"


def _runs_table(experiment: papers.Experiment, rows: list[dict[str, Any]]) -> Table:
    heads = [f"{_papers().LABELS.get(key, key)} (± s.e.; published)" for key in experiment.measures]
    table = _table("case", "runs", *heads)
    for row in rows:
        table.add_row(row["case"], str(row["runs"]), *(_beside(row, key) for key in experiment.measures))
    return table


def _draws_table(experiment: papers.Experiment, rows: list[dict[str, Any]]) -> Table:
    """Return a table of figures over draws, as the paper prints them: each with its standard deviation below."""
    weighted = any(row["weights_ess"] is not None for row in rows)
    heads = [_papers().LABELS.get(key, key) for key in experiment.measures]
    table = _table("case", "runs", *heads, *(["weights' ESS"] if weighted else []))
    table.caption = "(standard deviation over draws), ± standard error over runs"
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        figures = [_over_draws(row[k], row[f"{k}_sd"], row[f"{k}_se"]) for k in experiment.measures]
        table.add_row(row["case"], str(row["runs"]), *figures, *([_text(row["weights_ess"])] if weighted else []))
        known = [_over_draws(row[f"{k}_published"], row[f"{k}_published_sd"]) for k in experiment.measures]
        if any(row[f"{k}_published"] is not None for k in experiment.measures):
            table.add_row("  published", "", *known)
    return table


def _over_draws(mean: float | None, sd: float | None, error: float | None = None) -> str:
    lines = [_text(mean), *([f"({sd:.2g})"] if sd else []), *([f"±{error:.1g}"] if error else [])]
    # Without the zero six columns fit in a terminal of 80 letters.
    return "\n".join(lines).replace("(0.", "(.").replace("±0.", "±.")


def _check_figure(experiment: papers.Experiment, out: Path | None) -> Path | None:
    """Refuse a figure that cannot be drawn before the runs, not after them."""
    if out is not None and not experiment.drawn:
        raise BnnvizError(f"{experiment.name} is a table and has no figure; leave out --out.", "out")
    return _place_for_figure(out, "out")


def _place_for_figure(out: Path | None, option: str) -> Path | None:
    if out is None:
        return None
    if importlib.util.find_spec("bokeh") is None:
        raise BnnvizError("A figure needs bokeh; install it with: pip install 'bnnviz[app]'.", option)
    return _free_place(out, ".html", option)


def _draw_experiment(
    experiment: papers.Experiment, rows: list[dict[str, Any]], done: dict[str, list[dict[str, Any]]], out: Path
) -> None:
    from bnnviz.views.band_multiples import Panel, band_multiples
    from bnnviz.views.small_multiples import page, small_multiples

    if experiment.keeps:
        from bnnviz.views import panels as drawn

        shown = [drawn.Panel(*panel) for panel in experiment.panels(done)]
        layout = drawn.panels(shown, experiment.title)
    elif experiment.bands:
        panels = []
        for case in experiment.cases:
            bands = [summary["band"] for summary in done[case.name]]
            panels.append(Panel(case.at["data"], case.at["sampler"], bands[0]["data"], [b["part"] for b in bands]))
        layout = band_multiples(panels)
    else:
        layout = small_multiples(rows, {key: _papers().LABELS.get(key, key) for key in experiment.measures})
    out.write_text(page(layout, experiment.title), encoding="utf-8")


@app.command(
    epilog=_examples(
        "bnnviz sample --target banana --sampler bps --chains 16 --set refresh_rate=0.5",
        "bnnviz sample --data boston --sampler boomerang --json > boston.json",
        "bnnviz sample --data houses.csv --target-column price --set noise=learnt",
        "bnnviz sample --data pmcnet_wine --sampler hmc --search-prior --draws 200",
        "bnnviz sample spec.json --seed 2 --out run2.nc",
    )
)
def sample(
    spec: Annotated[
        str | None, typer.Argument(metavar="SPEC.json", help="What to run, as JSON; - reads it from stdin.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="A target of `bnnviz list targets`.")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="A data set of `bnnviz list data`, or a CSV file: the target is a network on it."),
    ] = None,
    target_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of the CSV file that is predicted.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="What that column is: regression or classification; default: told apart."),
    ] = None,
    sampler: Annotated[str | None, typer.Option("--sampler", "-s", help="A sampler of `bnnviz list samplers`.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the sampler, the target or the run; may be given many times."
            " Where a name belongs to more than one, write sampler.KEY, target.KEY or run.KEY.",
        ),
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Draws kept of each chain.")] = None,
    chains: Annotated[int | None, typer.Option(help="Chains that advance together.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run's random numbers.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    kernel: Annotated[str | None, typer.Option(help="eager, or compiled: machine code made of the whole step.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="RUN.nc", help="Save the run here; ArviZ opens it.")] = None,
    search: Annotated[
        bool,
        typer.Option("--search-prior", help="First choose prior_sd by the validation rows, in a dozen runs at most."),
    ] = False,
    search_by: Annotated[
        str, typer.Option(metavar="FIGURE", help="What --search-prior judges by: nll, accuracy or mse.")
    ] = "nll",
    as_json: Json = False,
) -> None:
    """Sample a target, and print what came out.

    Ctrl-C stops early and keeps the draws made so far.
    """
    request = _read(spec) if spec is not None else {}
    table = _open_table(data, target_column, task)
    if table is not None:
        data = next(item["name"] for item in catalogue.load()["data"] if item["attached"])
        request.pop("file", None)
    _name_target(request, target, data)
    if sampler is not None and request.get("sampler") != sampler:
        request["sampler"] = sampler
        request["settings"] = {}
    options = {"draws": draws, "chains": chains, "seed": seed, "device": device, "kernel": kernel}
    request.update({key: value for key, value in options.items() if value is not None})
    _apply(request, settings or [])
    checked = Spec.from_json(request, None if table is None else table.pack())
    if checked.draws is None:
        raise BnnvizError("This spec describes a live run without an end; say how many --draws to make.", "draws")
    out = _check_out(out)
    for note in table.notes if table is not None else ():
        print(f"bnnviz: {note}", file=sys.stderr)
    raise typer.Exit(_sample(checked, out, as_json, search_by if search else None))


def _read(path: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text"
        raise BnnvizError(f"Cannot read the spec {path} ({reason}); give the path of a JSON file.") from None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise BnnvizError(f"The spec {path} is not JSON ({error}); check its commas and quotes.") from None
    if not isinstance(value, dict):
        raise BnnvizError(f"The spec {path} is not a JSON object with the keys target and sampler.")
    return value


def _open_table(data: str | None, target_column: str | None, task: str | None) -> OwnTable | None:
    """Read the CSV file of the options; None where they name a data set or nothing."""
    given = {"target-column": target_column, "task": task}
    option = next((name for name, value in given.items() if value is not None), None)
    names = [item["name"] for item in catalogue.load()["data"]]
    if data is None or (data in names and not Path(data).is_file()):
        if option is not None:
            raise BnnvizError(f"--{option} is for a CSV file; give one with --data FILE.csv, or leave it out.", "data")
        return None
    if data in names and option is None:
        return None
    if option is None and not Path(data).exists() and not Path(data).suffix:
        raise BnnvizError(f"There is no data set and no file {data!r}; choose one of {', '.join(names)}.", "data")
    from bnnviz.data import read_table

    return read_table(data, target_column, task)


def _name_target(request: dict[str, Any], target: str | None, data: str | None) -> None:
    """Enter the target or the data set of the options, which go before those of the spec."""
    if data is not None:
        choices = {item["name"]: _setting(item, "data") for item in catalogue.load()["targets"]}
        on_data = [name for name, setting in choices.items() if setting]
        target = target or next((name for name in on_data if data in choices[name]["choices"]), on_data[0])
        if target not in on_data:
            raise BnnvizError(f"The target {target!r} takes no data; leave out --target or --data.", "target")
        catalogue.find("data", data)
    if target is not None and request.get("target") != target:
        request["target"] = target
        request["target_settings"] = {}
    if data is not None:
        request["target_settings"] = {**request.get("target_settings", {}), "data": data}
    if "target" not in request:
        raise BnnvizError("Say what to sample: --target NAME, --data NAME or a SPEC.json.", "target")


def _setting(item: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((setting for setting in item["settings"] if setting["name"] == name), None)


def _apply(request: dict[str, Any], assignments: list[str], *, to_sampler: bool = True) -> None:
    """Enter the ``--set`` options, each where its setting belongs."""
    owners = {"sampler": catalogue.find("samplers", request.get("sampler", Spec.sampler))} if to_sampler else {}
    owners |= {
        "target": catalogue.find("targets", request["target"]),
        "run": {"title": "The run", "settings": catalogue.load()["run"]},
    }
    places = {"sampler": "settings", "target": "target_settings"}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not (key and equals):
            raise BnnvizError(f"--set {assignment!r} is not of the form key=value.", key or None)
        owner, setting = _resolve(key, owners)
        value = _parse(setting, text.strip())
        if owner in places:
            request[places[owner]] = {**request.get(places[owner], {}), setting["name"]: value}
        else:
            request[setting["name"]] = value


def _resolve(key: str, owners: dict[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Find whose setting a key of ``--set`` is."""
    prefix, dot, name = key.partition(".")
    if dot and prefix in owners:
        candidates = {prefix: owners[prefix]}
    else:
        candidates, name = owners, key
    found = [(owner, setting) for owner, item in candidates.items() if (setting := _setting(item, name))]
    if len(found) > 1:
        choices = " or ".join(f"{owner}.{name}" for owner, _ in found)
        raise BnnvizError(f"{name} is a setting of more than one; write {choices}.", name)
    if not found:
        lists = "; ".join(f"{item['title']} has {_names(item)}" for item in candidates.values())
        raise BnnvizError(f"There is no setting {key!r}: {lists}.", key)
    return found[0]


def _names(item: dict[str, Any]) -> str:
    return ", ".join(setting["name"] for setting in item["settings"]) or "none"


def _parse(setting: dict[str, Any], text: str) -> Any:
    """Read a value in its setting's type; what cannot be read stays a text, for the check to name."""
    kind = setting["type"]
    if text.lower() in ("none", "null") and setting["default"] is None:
        return None
    if kind == "boolean":
        return WORDS.get(text.lower(), text)
    if kind == "choice":
        return next((choice for choice in setting["choices"] if str(choice) == text), text)
    if kind in ("number", "integer"):
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            return text
    if kind == "points":
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text
    return text


def _check_out(out: Path | None) -> Path | None:
    """Refuse a place that cannot be written before the run, not after it."""
    if out is None:
        return None
    for package in ("arviz_base", "h5netcdf", "h5py"):
        if importlib.util.find_spec(package) is None:
            raise BnnvizError(f"Saving a run needs {package}; install it with: pip install 'bnnviz[metrics]'.", "out")
    return _free_place(out, ".nc")


def _free_place(out: Path, suffix: str, option: str = "out") -> Path:
    out = out if out.suffix else out.with_suffix(suffix)
    if out.exists():
        raise BnnvizError(f"{out} exists already; choose another name for --{option}.", option)
    if not out.absolute().parent.is_dir():
        raise BnnvizError(f"There is no folder {out.absolute().parent} to save it in; make it first.", option)
    return out


def _sample(spec: Spec, out: Path | None, as_json: bool, search_by: str | None) -> int:
    from bnnviz.engine.run import Run

    found = None
    if search_by is not None:
        try:
            found = _search(spec, search_by)
        except KeyboardInterrupt:
            print("bnnviz: stopped; no prior was chosen and nothing was kept.", file=sys.stderr)
            return INTERRUPTED
        spec = found.spec
    run = Run(spec)
    run.search = None if found is None else found.record()
    try:
        interrupted = _drive(run)
    except KeyboardInterrupt:
        print("bnnviz: stopped at once; nothing was kept.", file=sys.stderr)
        return INTERRUPTED
    made = run.draws.shape[1]
    if made or run.phase == "done":
        _print_summary(run.summary(), as_json)
    if out is not None and made:
        run.save(out)
    for note in run.notes:
        print(f"bnnviz: {note}", file=sys.stderr)
    if run.error is not None:
        print(f"bnnviz: {run.error}", file=sys.stderr)
        return FAILED
    if not interrupted:
        return 0
    saved = f"; they are saved in {out}" if out is not None and made else ""
    hint = "; --out would have saved them" if out is None and made else ""
    print(f"bnnviz: stopped after {made} of {spec.draws} draws of each chain{saved}{hint}.", file=sys.stderr)
    return INTERRUPTED


def _search(spec: Spec, by: str) -> PriorSearch:
    """Choose the prior by the validation rows, telling each try on stderr."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from bnnviz.engine.search import TRIES, search_prior

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task("prior", total=TRIES)
        found = search_prior(spec, by=by, progress=lambda done, share: bar.update(task, completed=done + share))
    for one in found.tries:
        print(f"bnnviz: prior_sd {one['prior_sd']:.4g}: validation {by} {_text(one['value'])}", file=sys.stderr)
    print(f"bnnviz: prior_sd = {found.prior_sd:.4g} was chosen by the validation rows.", file=sys.stderr)
    return found


def _drive(run: Run | Race) -> bool:
    """Advance a run or a race to its end or to Ctrl-C, showing how far it is; return whether it was stopped."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<9}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task(run.phase, total=None)
        run.prepare()
        with _hold_interrupt() as pressed:
            while not (run.finished or pressed):
                run.advance(seconds=SLICE_S)
                bar.update(task, description=run.phase, total=1.0, completed=run.progress)
    return bool(pressed)


@contextmanager
def _hold_interrupt() -> Iterator[list[int]]:
    """Collect the first Ctrl-C instead of raising it amid a step; a second one raises as usual."""
    pressed: list[int] = []

    def note(number: int, frame: Any) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _until_interrupt(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rows until Ctrl-C, one too that was raised where nobody passes it on, as in what ends an object."""
    pressed: list[int] = []

    def note(number: int, frame: Any) -> None:
        pressed.append(number)
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, note)
    try:
        for row in rows:
            if pressed:
                break
            yield row
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


# --- race


@app.command(
    epilog=_examples(
        "bnnviz race bps hmc sgld --target banana --budget 200000",
        "bnnviz race bps boomerang sghmc:friction=0.5 --data boston --chains 4 --figure boston.html",
        "bnnviz race hmc sgld:step_size=0.01 sgld:step_size=0.1 --target gaussian --set target.size=10 --json",
        "bnnviz race race.json --budget 5000000",
    )
)
def race(
    lanes: Annotated[
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
    target: Annotated[str | None, typer.Option("--target", "-t", help="A target of `bnnviz list targets`.")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="A data set of `bnnviz list data`, or a CSV file: the target is a network on it."),
    ] = None,
    target_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of the CSV file that is predicted.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="What that column is: regression or classification; default: told apart."),
    ] = None,
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
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Draw curves and table here; a browser opens it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Race samplers: the same target, start, seed and budget of gradients for each; a table says who came how near.

    Ctrl-C stops early and keeps what there is. A sampler whose chains meet values that are not finite is named, stopped
    and not ranked; the others finish.
    """
    request, own = _read_lanes(lanes)
    table = _open_table(data, target_column, task)
    if table is not None:
        data = next(item["name"] for item in catalogue.load()["data"] if item["attached"])
        request.pop("file", None)
    _name_target(request, target, data)
    options = {"chains": chains, "seed": seed, "device": device, "budget": budget}
    request.update({key: value for key, value in options.items() if value is not None})
    _apply_to_race(request, own, settings or [])
    spec = RaceSpec.from_json({**request, "lanes": own}, None if table is None else table.pack())
    figure = _place_for_figure(figure, "figure")
    for note in table.notes if table is not None else ():
        print(f"bnnviz: {note}", file=sys.stderr)
    raise typer.Exit(_race(spec, figure, as_json))


def _read_lanes(words: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what the lanes have in common, as far as files say it, and each lane's own."""
    request: dict[str, Any] = {}
    own: list[dict[str, Any]] = []
    for word in words:
        if not (word == "-" or word.endswith(".json")):
            own.append(_read_lane(word))
            continue
        value = _read(word)
        own += value.pop("lanes", None) or [
            {name: value.pop(name) for name in ("sampler", "settings", "warmup", "kernel") if name in value}
        ]
        shared = {name: value[name] for name in (*SHARED, "budget") if name in value}
        for name, found in shared.items():
            if request.setdefault(name, found) != found:
                raise BnnvizError(f"The files have different values of {name}; all lanes of a race share one.", name)
    return request, own


def _read_lane(word: str) -> dict[str, Any]:
    """Read a lane that is written NAME or NAME:key=value,key=value."""
    name, _, text = word.partition(":")
    item = catalogue.find("samplers", name)
    chosen = {}
    for assignment in filter(None, text.split(",")):
        key, equals, value = assignment.partition("=")
        setting = _setting(item, key.strip())
        if not equals:
            raise BnnvizError(f"{word!r} is not of the form NAME:key=value,key=value.", key.strip() or None)
        if setting is None:
            raise BnnvizError(f"{item['title']} has no setting {key!r}; its settings are {_names(item)}.", key)
        chosen[key.strip()] = _parse(setting, value.strip())
    return {"sampler": name, "settings": chosen}


def _apply_to_race(request: dict[str, Any], own: list[dict[str, Any]], assignments: list[str]) -> None:
    """Enter the ``--set`` options: settings of the target, of the race, or of each lane alike."""
    given: dict[str, Any] = {"target": request["target"], "target_settings": request.get("target_settings", {})}
    _apply(given, assignments, to_sampler=False)
    for name, value in given.items():
        if name in SHARED:
            request[name] = value
        elif name in ("warmup", "kernel"):
            for lane in own:
                lane[name] = value
        else:
            raise BnnvizError(f"{name} is not a setting of a race: the budget decides how long it goes on.", name)


def _race(spec: RaceSpec, figure: Path | None, as_json: bool) -> int:
    from bnnviz.engine.race import Race

    race = Race(spec)
    try:
        interrupted = _drive(race)
    except KeyboardInterrupt:
        print("bnnviz: stopped at once; nothing was kept.", file=sys.stderr)
        return INTERRUPTED
    if as_json:
        _print_json(race.summary())
        if warning := race.frame(["caption"])["caption"]["warning"]:
            print(f"bnnviz: {warning}", file=sys.stderr)
    else:
        _print_race(race)
    if figure is not None:
        from bnnviz.views.standings import race_page

        figure.write_text(race_page(race.scene(), race.frame(["caption", "curves", "table"])), encoding="utf-8")
    for note in race.notes:
        print(f"bnnviz: {note}", file=sys.stderr)
    if race.error is not None:
        print(f"bnnviz: {race.error}", file=sys.stderr)
        return FAILED
    if interrupted:
        print(f"bnnviz: stopped when {race.progress:.0%} of the budgets was spent.", file=sys.stderr)
    return INTERRUPTED if interrupted else 0


_RACE_COLUMNS = {
    "error": "error",
    "rhat": "R-hat",
    "ess": "ESS",
    "ess_per_s": "ESS/s",
    "ess_per_million": "/10⁶ grad.",
    "nll": "NLL",
    "rmse": "RMSE",
    "accuracy": "accuracy",
    "ece": "ECE",
    "seconds": "seconds",
}


def _print_race(race: Race) -> None:
    frame = race.frame(["table", "caption"])
    rows, caption = _plain(frame["table"]["rows"]), frame["caption"]
    shown = {name: head for name, head in _RACE_COLUMNS.items() if name in rows[0]}
    table = _table("", "sampler", *shown.values())
    for row in rows:
        name = f"{row['name']} ([red]diverged[/red])" if row["diverged"] else row["name"]
        table.add_row(str(row["rank"] or "–"), name, *(_short(row[key]) for key in shown))
    _console().print(table)
    _console().print(" ".join(part for part in (caption["text"], caption["warning"]) if part), highlight=False)


def _short(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


# --- wells


@app.command(epilog=_examples("bnnviz wells", "bnnviz wells --set reading=text --set moves=100 --json"))
def wells(
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as reading=text; may be given many times."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Sample the double well with FuncHMC and HMC, 400 runs of each, and set what came out side by side."""
    from bnnviz.wellsspec import WellsSpec, described

    named, given = {setting["name"]: setting for setting in described()}, {}
    for assignment in settings or []:
        name, sign, text = assignment.partition("=")
        if not sign:
            raise BnnvizError(f"--set {assignment} is no KEY=VALUE.", "set")
        given[name] = _parse(named[name], text) if name in named else text
    spec = WellsSpec(given).checked()
    from bnnviz.api import wells as sampled

    figures = sampled(**spec.settings).figures()
    if as_json:
        _print_json({"settings": spec.settings, **figures})
        return
    table = _table("", *figures)
    for key in next(iter(figures.values())):
        table.add_row(key, *(_text(side[key]) for side in figures.values()))
    _console().print(table)


# --- replay


@app.command(
    epilog=_examples(
        "bnnviz replay spec.json --html bouncy.html",
        "bnnviz replay run.nc --html run.html --gif run.gif --frames 120",
        "bnnviz replay recording --svg figures --png figures --at 200 --dark",
    )
)
def replay(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A recording's folder, a saved run (.nc), a spec (.json) or a film (.npz)."),
    ],
    html: Annotated[Path | None, typer.Option(metavar="FILE.html", help="One page: no server, no network.")] = None,
    gif: Annotated[Path | None, typer.Option(metavar="FILE.gif", help="The page as a moving picture.")] = None,
    mp4: Annotated[Path | None, typer.Option(metavar="FILE.mp4", help="The page as a video.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A picture of each view at one frame.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A drawing of each view at one frame.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="The table of figures at each frame.")] = None,
    film: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="The film itself, to replay it later.")] = None,
    frames: Annotated[int, typer.Option(help="Frames, at most: the first third are single steps.")] = 300,
    steps: Annotated[int | None, typer.Option(min=1, help="The last step; default: where the run ended.")] = None,
    at: Annotated[int | None, typer.Option(min=1, help="Frame of --png and --svg, from 1; default: the last.")] = None,
    speed: Annotated[int, typer.Option(min=1, max=60, help="Frames a second of --gif and --mp4.")] = 10,
    dark: Annotated[bool, typer.Option("--dark", help="Dark colours; the page else follows its reader's.")] = False,
) -> None:
    """Do a run again from its spec and change log, and make one page of it that plays without a server."""
    from bnnviz import cli_replay

    files = {"html": html, "gif": gif, "mp4": mp4, "csv": csv, "film": film}
    suffixes = {name: ".npz" if name == "film" else f".{name}" for name in files}
    places = {name: _free_place(path, suffixes[name], name) for name, path in files.items() if path is not None}
    folders = {name: folder for name, folder in (("png", png), ("svg", svg)) if folder is not None}
    cli_replay.check(places, folders)
    try:
        with _replaying() as told:
            found = cli_replay.take(run, frames, steps, told)
            made = cli_replay.write(found, places, folders, at, speed, dark, told)
    except KeyboardInterrupt:
        print("bnnviz: stopped; nothing more was written.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    print("\n".join(map(str, made)))
    for note in found.header["notes"]:
        print(f"bnnviz: {note}", file=sys.stderr)


@contextmanager
def _replaying() -> Iterator[Callable[[float, str], None]]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<9}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share, what: bar.update(task, completed=share, description=what)


# --- bench


@app.command(epilog=_examples("bnnviz bench live", "bnnviz bench live --case startup --json"))
def bench(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="What to measure, such as live.")],
    case: Annotated[str | None, typer.Option(help="Only this part of it.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long each part is measured.")] = 60,
    as_json: Json = False,
) -> None:
    """Measure this machine, beside what is aimed at.

    Each figure is told on stderr when it is known; all of them come at the end.
    """
    from bnnviz.bench import find

    rows = []
    with _console(stderr=True).status("Starting.") as said:
        for row in _until_interrupt(find(suite).run(case, seconds, said.update)):
            rows.append(row)
            print(_row_line(_plain(row)), file=sys.stderr, flush=True)
    if as_json:
        _print_json(rows)
    else:
        _console().print(_rows_table(_plain(rows)))


def _row_line(row: dict[str, Any]) -> str:
    parts = [f"{row['case']}, {row['metric']}: {_text(row['value'])} {row['unit']}".rstrip()]
    parts += [f"{row['target']} {_verdict(row)}"] if row["target"] else []
    return "; ".join(parts + [row["note"]] if row.get("note") else parts)


def _verdict(row: dict[str, Any]) -> str:
    return "" if not row["target"] else "met" if row["ok"] else "missed"


def _rows_table(rows: list[dict[str, Any]]) -> Table:
    table = _table("case", "metric", "value", "unit", "target", "", "note")
    for row in rows:
        verdict = _verdict(row)
        verdict = f"[red]{verdict}[/red]" if verdict == "missed" else verdict
        figures = (row["case"], row["metric"], _text(row["value"]), row["unit"], row["target"])
        table.add_row(*figures, verdict, row.get("note", ""))
    return table


# --- serve


@app.command(epilog=_examples("bnnviz serve", "bnnviz serve --port 5007 --no-show"))
def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 5006,
    no_show: Annotated[
        bool, typer.Option("--no-show", help="Open no browser; without a screen none is opened anyway.")
    ] = False,
    address: Annotated[
        str, typer.Option(help="The address to listen on; the default lets nobody but this machine in.")
    ] = "127.0.0.1",
) -> None:
    """Serve the dashboard on this machine, and open it in a browser where there is one."""
    from bnnviz.serve import serve as serve_app

    serve_app(port=port, address=address, show=not no_show)


# --- what is printed


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)


def _print_json(value: Any) -> None:
    print(json.dumps(_plain(value), ensure_ascii=False))


def _plain(value: Any) -> Any:
    """Turn what NumPy made into what JSON knows; a number that is not finite becomes null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _print_summary(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        _print_json(summary)
        return
    summary = _plain(summary)
    table = _table("", "")
    for name, value in summary.items():
        if not isinstance(value, list):
            table.add_row(name, _text(value))
    _console().print(table)
    if "mean" in summary:
        _console().print(_moments_table(summary))


def _moments_table(summary: dict[str, Any]) -> Table:
    table = _table("coordinate", "mean", "± s.e.", "variance", "± s.e.")
    dimension = len(summary["mean"])
    for i in range(min(dimension, SHOWN_COORDINATES)):
        numbers = (summary["mean"][i], summary["mean_se"][i], summary["cov"][i][i], summary["cov_se"][i][i])
        table.add_row(str(i + 1), *map(_text, numbers))
    if dimension > SHOWN_COORDINATES:
        table.caption = f"the first {SHOWN_COORDINATES} of {dimension}; --json has them all"
    return table


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}={_text(item)}" for key, item in value.items())
    return "-" if value is None else str(value)


if __name__ == "__main__":
    main()

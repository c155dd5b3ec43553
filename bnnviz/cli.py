"""The command line: ``bnnviz sample``, ``sweep``, ``recordings``, ``replay``, ``reproduce``, ``serve`` and others.

Results go to stdout, everything else to stderr. Input that cannot be used ends with exit code 2 and
one sentence. Nothing here imports torch before something is sampled.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from bnnviz import __version__, optional
from bnnviz.errors import BnnvizError
from bnnviz.files import plain
from bnnviz.specs import catalogue
from bnnviz.specs.race import DEFAULT_BUDGET, SHARED, RaceSpec
from bnnviz.specs.run import Spec

BAD_INPUT = 2

if not (optional.has("typer") and optional.has("rich")):
    print(
        "bnnviz: The command line needs typer and rich; install them with: pip install 'bnnviz[cli]'.", file=sys.stderr
    )
    sys.exit(BAD_INPUT)

import typer  # noqa: E402

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from bnnviz import experiments
    from bnnviz.data import OwnTable
    from bnnviz.engine.cluster.jobs import Cluster
    from bnnviz.engine.evaluation.prior_search import PriorSearch
    from bnnviz.engine.race.race import Race
    from bnnviz.engine.recording.reader import Recording
    from bnnviz.engine.recording.writer import Recorder
    from bnnviz.engine.sweep.sweep import Sweep
    from bnnviz.engine.viewed_run import ViewedRun

KINDS = ("targets", "samplers", "data", "papers")
FAILED = 1
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
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:8786 or tls://...; default: BNNVIZ_SCHEDULER."),
]


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
    except ImportError as error:
        explained = optional.explain(error, "This command needs")
        if explained is None:
            raise
        code = _complain(explained.sentence)
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
    return importlib.import_module("bnnviz.experiments")


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
    places = {}
    for name in names:
        print(f"Fetching {name} ...", file=sys.stderr, flush=True)
        places[name] = [str(place) for place in sets.fetch_all(name)]
    if as_json:
        _print_json(places)
    else:
        print("\n".join(place for found in places.values() for place in found))


# --- sample


@app.command(
    epilog=_examples(
        "bnnviz reproduce pdmp-boston --repetitions 3",
        "bnnviz reproduce pdmp-boston --json",
        "bnnviz reproduce pdmp-table2 --data mnist --scheduler tcp://head:8786",
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
    scheduler: Scheduler = None,
    as_json: Json = False,
) -> None:
    """Run a paper's experiment and set our figures beside the published ones."""
    # What a run comes to is kept: figures that are missing would be kept as missing.
    optional.check(("arviz_stats", "sklearn"), "The figures of the papers' tables need")
    found = _papers().find(experiment).at(data, scale)
    found.check()
    out = _check_figure(found, out)
    done: dict[str, list[dict[str, Any]]] = {}
    begun = time.perf_counter()
    try:
        where = _reproduce(found, repetitions, scheduler, done)
    except KeyboardInterrupt:
        kept = sum(map(len, done.values()))
        said = f"; {kept} runs are kept, and the same command goes on with the others" if found.keeps else ""
        print(f"bnnviz: stopped{said}.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    importlib.import_module("bnnviz.experiments.results").keep(found, done, time.perf_counter() - begun, where)
    rows = [found.row(case, done[case.name]) for case in found.cases]
    if out is not None:
        _draw_experiment(found, rows, done, out)
    if as_json:
        _print_json(rows)
        return
    _console().print(_draws_table(found, rows) if found.keeps else _runs_table(found, rows))
    for note in _notes(rows):
        _console().print(note)


def _reproduce(
    experiment: experiments.Experiment,
    repetitions: int | None,
    scheduler: str | None,
    done: dict[str, list[dict[str, Any]]],
) -> str | None:
    """Fill ``done`` with what the runs came to; return what they ran on, None where that is this process."""
    with _cluster(scheduler) as cluster:
        where = None if cluster is None else f"{cluster.slots()} workers of a Dask cluster"
        _announce(experiment, repetitions, cluster)
        for case, i, summary in _with_progress(experiment, repetitions, cluster):
            done.setdefault(case.name, []).append(summary)
            known = summary.get("figures", summary)
            figures = ", ".join(f"{key} {_text(known.get(key))}" for key in experiment.measures)
            print(f"{case.name}, run {i + 1}: {figures}", file=sys.stderr, flush=True)
    return where


def _cluster(scheduler: str | None) -> AbstractContextManager[Cluster | None]:
    """Return the cluster of an address, or of ``BNNVIZ_SCHEDULER``; None: the runs are this process's."""
    if scheduler is None and not os.environ.get("BNNVIZ_SCHEDULER"):
        return nullcontext()
    from bnnviz.engine.cluster.jobs import Cluster

    return Cluster(scheduler)


def _announce(experiment: experiments.Experiment, repetitions: int | None, cluster: Cluster | None) -> None:
    """Say how much there is to do, before it begins."""
    runs, all_runs = experiment.runs(repetitions), experiment.runs()
    print(experiment.doc, file=sys.stderr, flush=True)
    if cluster is not None:
        kept = f", {experiment.kept(repetitions)} of them kept from before" if experiment.keeps else ""
        print(f"{experiment.title}: {runs} runs{kept}, {cluster.slots()} at a time.", file=sys.stderr, flush=True)
        return
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
    experiment: experiments.Experiment, repetitions: int | None, cluster: Cluster | None
) -> Iterator[tuple[experiments.Case, int, dict[str, Any]]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True, redirect_stderr=True) as bar:
        task = bar.add_task("", total=experiment.runs(repetitions))
        for result in experiment.reproduce(repetitions, cluster):
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


def _runs_table(experiment: experiments.Experiment, rows: list[dict[str, Any]]) -> Table:
    heads = [f"{_papers().LABELS.get(key, key)} (± s.e.; published)" for key in experiment.measures]
    table = _table("case", "runs", *heads)
    for row in rows:
        table.add_row(row["case"], str(row["runs"]), *(_beside(row, key) for key in experiment.measures))
    return table


def _draws_table(experiment: experiments.Experiment, rows: list[dict[str, Any]]) -> Table:
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


def _check_figure(experiment: experiments.Experiment, out: Path | None) -> Path | None:
    """Refuse a figure that cannot be drawn before the runs, not after them."""
    if out is not None and not experiment.drawn:
        raise BnnvizError(f"{experiment.name} is a table and has no figure; leave out --out.", "out")
    return _place_for_figure(out, "out")


def _place_for_figure(out: Path | None, option: str) -> Path | None:
    if out is None:
        return None
    optional.check("bokeh", "A figure needs", option)
    return _free_place(out, ".html", option)


def _draw_experiment(
    experiment: experiments.Experiment, rows: list[dict[str, Any]], done: dict[str, list[dict[str, Any]]], out: Path
) -> None:
    from bnnviz.views.comparison.small_multiples import page, small_multiples
    from bnnviz.views.predictive.band_multiples import Panel, band_multiples

    if experiment.keeps:
        from bnnviz.views.comparison import panels as drawn

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
        "bnnviz sample --data boston --sampler boomerang --draws 20000 --record boston",
        "bnnviz sample --data boston --sampler bps --draws 1000 --seed 1 --start boston",
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
    record: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Keep the run on disk while it goes on, under this name or in this folder (a path)."
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(metavar="RECORDING", help="Set out from the draws of this recording: its name, or its folder."),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(
            metavar="last|draws",
            help="Chain by chain from the last draw, or from draws that the seed chooses; default: last.",
        ),
    ] = None,
    start_sha256: Annotated[
        str | None,
        typer.Option(metavar="DIGITS", help="Refuse a recording that has other draws than a spec said."),
    ] = None,
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
    _apply_start(request, {"recording": start, "points": start_from, "sha256": start_sha256})
    checked = Spec.from_json(request, None if table is None else table.pack())
    if checked.draws is None:
        raise BnnvizError("This spec describes a live run without an end; say how many --draws to make.", "draws")
    out = _check_out(out)
    for note in table.notes if table is not None else ():
        print(f"bnnviz: {note}", file=sys.stderr)
    folder = None if record is None else _new_recording(record)
    raise typer.Exit(_sample(checked, out, folder, as_json, search_by if search else None))


def _read_text(path: str, what: str, kind: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text"
        raise BnnvizError(f"Cannot read the {what} {path} ({reason}); give the path of {kind}.") from None


def _read(path: str) -> dict[str, Any]:
    text = _read_text(path, "spec", "a JSON file")
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


def _apply_start(request: dict[str, Any], options: dict[str, str | None]) -> None:
    """Enter the options that say where chains set out from."""
    given = {key: value for key, value in options.items() if value is not None}
    if not given:
        return
    if "recording" in given:
        from bnnviz.engine.recording.warm_start import named

        given["recording"] = named(given["recording"])
        request["start"] = given
    elif isinstance(request.get("start"), dict):
        request["start"] = request["start"] | given
    else:
        raise BnnvizError("--start-from and --start-sha256 go with --start RECORDING; give that too.", "start")


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
    from bnnviz.engine.recording import arviz as recording

    optional.check(recording.NETCDF, "Saving a run needs", "out")
    return _free_place(out, ".nc")


def _free_place(out: Path, suffix: str, option: str = "out") -> Path:
    out = out if out.suffix else out.with_suffix(suffix)
    if out.exists():
        raise BnnvizError(f"{out} exists already; choose another name for --{option}.", option)
    if not out.absolute().parent.is_dir():
        raise BnnvizError(f"There is no folder {out.absolute().parent} to save it in; make it first.", option)
    return out


def _new_recording(word: str) -> Path:
    from bnnviz.engine.recording import reader

    reader.check_zarr("record")
    return reader.new_place(word)


def _sample(spec: Spec, out: Path | None, folder: Path | None, as_json: bool, search_by: str | None) -> int:
    from bnnviz.engine.recording.warm_start import resolved
    from bnnviz.engine.viewed_run import ViewedRun

    found = None
    if search_by is not None:
        try:
            found = _search(spec, search_by)
        except KeyboardInterrupt:
            print("bnnviz: stopped; no prior was chosen and nothing was kept.", file=sys.stderr)
            return INTERRUPTED
        spec = found.spec
    run = ViewedRun(resolved(spec.checked()))
    run.search = None if found is None else found.record()
    return _carry_out(run, out, folder, as_json)


def _carry_out(run: ViewedRun, out: Path | None, folder: Path | None, as_json: bool) -> int:
    """Sample to the end or to Ctrl-C, print and save what came out, and return the exit code."""
    recorder = None
    if folder is not None:
        from bnnviz.engine.recording.writer import Recorder

        recorder = Recorder(run, folder)
    try:
        interrupted = _drive(run, recorder)
    except KeyboardInterrupt:
        kept = "nothing was kept" if folder is None else f"what was written before is kept in {folder}"
        print(f"bnnviz: stopped at once; {kept}.", file=sys.stderr)
        return INTERRUPTED
    unwritten = _close(recorder)
    made, doubts = run.draws.shape[1], []
    if made or run.phase == "done":
        summary = run.summary()
        doubts = summary["warnings"]
        _print_summary(summary, as_json)
    if out is not None and made:
        run.save(out)
    for note in [*run.notes, *doubts]:
        print(f"bnnviz: {note}", file=sys.stderr)
    if run.error is not None:
        print(f"bnnviz: {run.error}", file=sys.stderr)
    if run.error is not None or unwritten:
        return FAILED
    if not interrupted:
        return 0
    places = [f"they are saved in {out}"] if out is not None and made else []
    places += [f"bnnviz resume {_recording_word(folder)} goes on"] if folder is not None else []
    hint = "; --out would have saved them" if made and not places else ""
    saved = "".join(f"; {place}" for place in places)
    print(f"bnnviz: stopped after {made} of {run.spec.draws} draws of each chain{saved}{hint}.", file=sys.stderr)
    return INTERRUPTED


def _close(recorder: Recorder | None) -> bool:
    """Write the rest of a recording; return whether it could not be written."""
    if recorder is None:
        return False
    try:
        recorder.close()
    except BnnvizError as error:
        print(f"bnnviz: {error.sentence}", file=sys.stderr)
        return True
    return False


def _recording_word(folder: Path) -> str:
    from bnnviz.engine.recording import reader

    return folder.name if folder.parent == reader.shelf() else str(folder)


def _search(spec: Spec, by: str) -> PriorSearch:
    """Choose the prior by the validation rows, telling each try on stderr."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from bnnviz.engine.evaluation.prior_search import TRIES, search_prior

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task("prior", total=TRIES)
        found = search_prior(spec, by=by, progress=lambda done, share: bar.update(task, completed=done + share))
    for one in found.tries:
        print(f"bnnviz: prior_sd {one['prior_sd']:.4g}: validation {by} {_text(one['value'])}", file=sys.stderr)
    print(f"bnnviz: prior_sd = {found.prior_sd:.4g} was chosen by the validation rows.", file=sys.stderr)
    return found


def _drive(run: ViewedRun | Race, recorder: Recorder | None = None) -> bool:
    """Advance a run or a race to its end or to Ctrl-C, showing how far it is; return whether it was stopped.

    A recording that cannot be written is said once and tried again: sampling goes on.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from bnnviz.engine.drive import drive

    columns = (TextColumn("{task.description:<9}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        task, said = bar.add_task(run.phase, total=None), ""
        run.prepare()
        with _hold_interrupt() as pressed:

            def show_and_write() -> None:
                nonlocal said
                bar.update(task, description=run.phase, total=1.0, completed=run.progress)
                said = _note(recorder, said)

            drive(run, SLICE_S, show_and_write, stopped=lambda: bool(pressed))
    return bool(pressed)


def _note(recorder: Recorder | None, said: str) -> str:
    """Write what is new to a recording; return what is wrong with that, which is printed when it is another thing."""
    if recorder is None:
        return ""
    try:
        return "" if recorder.note() else said
    except BnnvizError as error:
        if error.sentence != said:
            print(f"bnnviz: {error.sentence} Sampling goes on.", file=sys.stderr)
        return error.sentence


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


# --- recordings

RecordingWord = Annotated[str, typer.Argument(metavar="RUN", help="A recording: its name, or its folder.")]
recordings_app = typer.Typer(help="The runs that were recorded: list, check, rename, delete, pack and unpack them.")
app.add_typer(recordings_app, name="recordings")


@app.command(epilog=_examples("bnnviz resume boston", "bnnviz resume runs/boston --json"))
def resume(run: RecordingWord, as_json: Json = False) -> None:
    """Go on with a recorded run to its end, with the draws that it would have made."""
    from bnnviz.engine.recording import reader
    from bnnviz.engine.recording import resume as resuming

    reader.check_zarr("run")
    folder = reader.find(run)
    found = resuming.resume(folder)
    if found.spec.draws is None:
        raise BnnvizError("This run has no end; a live run goes on from its recording on the dashboard.", "run")
    if found.finished:
        print("bnnviz: this run has all its draws.", file=sys.stderr)
        _print_summary(found.summary(), as_json)
        return
    raise typer.Exit(_carry_out(found, None, folder, as_json))


@app.command(epilog=_examples("bnnviz export boston --format netcdf", "bnnviz export boston --format torch --out e.pt"))
def export(
    run: RecordingWord,
    form: Annotated[str, typer.Option("--format", help="netcdf, zarr, npz, csv, or torch (state dicts).")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: the recording's name, here.")] = None,
) -> None:
    """Write a recording's draws to a file that other programs open; print where it is."""
    from bnnviz.engine.recording import reader
    from bnnviz.engine.recording.export import export as write
    from bnnviz.engine.recording.export import suffix

    reader.check_zarr("run")
    recording = reader.Recording(reader.find(run))
    print(write(recording, form, out or Path(recording.name).with_suffix(suffix(form))))


@recordings_app.command("list", epilog=_examples("bnnviz recordings list", "bnnviz recordings list --json"))
def recordings_list(as_json: Json = False) -> None:
    """List the recordings on the shelf, the newest first, and what is wrong with a broken one."""
    from bnnviz.engine.recording import reader

    rows = [_recording_row(recording, wrong) for recording, wrong in reader.recordings()]
    if as_json:
        _print_json(rows)
        return
    table = _table("name", "target", "sampler", "draws", "", "size", "begun with")
    for row in rows:
        if row["wrong"]:
            table.add_row(row["name"], *[""] * 5, row["wrong"])
            continue
        state = "done" if row["finished"] else "not done"
        size = f"{row['bytes'] / 1e6:,.1f} MB"
        table.add_row(row["name"], row["target"], row["sampler"], str(row["draws"]), state, size, row["version"])
    _console().print(table)


def _recording_row(recording: Recording, wrong: str | None) -> dict[str, Any]:
    if wrong is not None:
        return {"name": recording.name, "folder": str(recording.folder), "wrong": wrong}
    header, progress = recording.header, recording.progress
    return {
        "name": recording.name,
        "folder": str(recording.folder),
        "wrong": None,
        "target": header["spec"]["target"],
        "sampler": header["spec"]["sampler"],
        "draws": recording.whole,
        "finished": progress["finished"],
        "seconds": progress["seconds"],
        "bytes": recording.size,
        "version": header["bnnviz"],
    }


@recordings_app.command("check", epilog=_examples("bnnviz recordings check boston"))
def recordings_check(run: RecordingWord) -> None:
    """Read all of a recording, and say whether it is what was written."""
    from bnnviz.engine.recording import reader

    recording = reader.Recording(reader.find(run))
    recording.check()
    print(f"{recording.folder}: {recording.whole} draws of each chain, {recording.size / 1e6:.1f} MB, sound.")


@recordings_app.command("rename", epilog=_examples("bnnviz recordings rename boston boston-2"))
def recordings_rename(run: RecordingWord, name: Annotated[str, typer.Argument(help="Its new name.")]) -> None:
    """Give a recording on the shelf another name."""
    from bnnviz.engine.recording import reader

    print(reader.rename(run, name))


@recordings_app.command("delete", epilog=_examples("bnnviz recordings delete boston --yes"))
def recordings_delete(
    run: RecordingWord, yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False
) -> None:
    """Remove a recording from the shelf, for good."""
    from bnnviz.engine.recording import reader

    folder = reader.find(run)
    if folder != reader.place(folder.name):
        raise BnnvizError(f"{folder} is not on the shelf {reader.shelf()}; remove that folder by hand.", "run")
    if not yes:
        typer.confirm(f"Remove the recording {folder}?", abort=True, err=True)
    reader.delete(folder.name)


@recordings_app.command("pack", epilog=_examples("bnnviz recordings pack boston --out boston.zip"))
def recordings_pack(
    run: RecordingWord,
    out: Annotated[Path | None, typer.Option(metavar="FILE.zip", help="Default: the recording's name, here.")] = None,
) -> None:
    """Put a recording into one file, to be sent; print where it is."""
    from bnnviz.engine.recording import reader
    from bnnviz.engine.recording.archive import pack

    recording = reader.Recording(reader.find(run))
    print(pack(recording, _free_place(out or Path(recording.name).with_suffix(".zip"), ".zip")))


@recordings_app.command("unpack", epilog=_examples("bnnviz recordings unpack boston.zip"))
def recordings_unpack(
    file: Annotated[Path, typer.Argument(metavar="FILE.zip", help="What `bnnviz recordings pack` made.")],
    name: Annotated[str | None, typer.Option(help="Its name on the shelf; default: the file's.")] = None,
) -> None:
    """Put a recording that was sent on the shelf, once it is known to be one; print where it is."""
    from bnnviz.engine.recording.archive import unpack

    print(unpack(file, name))


# --- sweep


@app.command(
    epilog=_examples(
        "bnnviz sweep sweep.yaml --out runs",
        "bnnviz sweep sweep.yaml --out runs --workers 4 --json",
        "bnnviz sweep sweep.yaml --out runs --scheduler tcp://head:8786",
    )
)
def sweep(
    runs: Annotated[
        str,
        typer.Argument(metavar="SWEEP.yaml", help="The runs: base, grid and specs, as YAML or JSON; - reads stdin."),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where each run becomes a recording.")],
    scheduler: Scheduler = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Worker processes on this machine; default: one for each GPU, or each core but one."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run all combinations of settings and seeds on the workers of a cluster, each into a recording.

    The same command goes on where it was stopped. A run that fails is named, and the others finish; the exit code is
    then 1. Ctrl-C lets the runs write what they have.
    """
    from bnnviz.engine.recording import reader
    from bnnviz.engine.sweep.sweep import Sweep
    from bnnviz.specs.sweep import SweepSpec

    spec = SweepSpec.from_text(_read_text(runs, "sweep", "a YAML file"))
    reader.check_zarr("out")
    with Sweep(spec, out, scheduler=scheduler, workers=workers) as found:
        raise typer.Exit(_sweep(found, as_json))


def _sweep(sweep: Sweep, as_json: bool) -> int:
    from bnnviz import cli_sweep

    sentence = None
    try:
        with _hold_interrupt() as pressed:
            cli_sweep.drive(sweep, _console(stderr=True), pressed)
    except KeyboardInterrupt:
        print("bnnviz: stopped at once; what was written is kept, and the same command goes on.", file=sys.stderr)
        return INTERRUPTED
    except BnnvizError as error:
        sentence = error.sentence
    rows = sweep.rows()
    if as_json:
        _print_json(rows)
    else:
        _console().print(_sweep_table(rows, cli_sweep.COLUMNS))
    if (said := cli_sweep.pace(sweep, rows)) is not None:
        print(f"bnnviz: {said}", file=sys.stderr)
    counts = {state: sum(row["state"] == state for row in rows) for state in ("failed", "left")}
    if sentence is not None:
        return _complain(sentence)
    if counts["left"] and pressed:
        left = f"stopped with {counts['left']} of {len(rows)} runs left; the same command goes on with them."
        print(f"bnnviz: {left}", file=sys.stderr)
        return INTERRUPTED
    if counts["failed"]:
        print(f"bnnviz: {counts['failed']} of {len(rows)} runs failed.", file=sys.stderr)
        return FAILED
    return FAILED if counts["left"] else 0


def _sweep_table(rows: list[dict[str, Any]], columns: dict[str, str]) -> Table:
    shown = [key for key in columns if any(row["figures"].get(key) is not None for row in rows)]
    table = _table("run", "", *(columns[key] for key in shown), "seconds")
    for row in rows:
        state = {"done": "", "failed": "[red]failed[/red]"}.get(row["state"], row["state"])
        figures = [_short(row["figures"].get(key)) for key in shown]
        table.add_row(row["name"], state, *figures, _short(row["seconds"]))
    return table


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
    from bnnviz.engine.race.race import Race

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
        from bnnviz.views.comparison.leaderboard import race_page

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
    rows, caption = plain(frame["table"]["rows"]), frame["caption"]
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
    from bnnviz.specs.double_well import WellsSpec, described

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
        "bnnviz replay recording --recorded --html run.html",
        "bnnviz replay recording --svg figures --png figures --at 200 --dark",
    )
)
def replay(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="A recording: its name or folder; a saved run (.nc), a spec (.json), a film (.npz)."
        ),
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
    recorded: Annotated[
        bool | None,
        typer.Option(
            "--recorded/--again",
            help="Show the frames that a recording kept, or do the run again; default: again where its device is here.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[int | None, typer.Option(min=1, help="Frame of --png and --svg, from 1; default: the last.")] = None,
    speed: Annotated[int, typer.Option(min=1, max=60, help="Frames a second of --gif and --mp4.")] = 10,
    dark: Annotated[bool, typer.Option("--dark", help="Dark colours; the page else follows its reader's.")] = False,
) -> None:
    """Do a run again from its spec and change log, or show what was recorded: a page that plays without a server."""
    from bnnviz import cli_replay
    from bnnviz.engine.recording.recorded_frames import film_of

    files = {"html": html, "gif": gif, "mp4": mp4, "csv": csv, "film": film}
    suffixes = {name: ".npz" if name == "film" else f".{name}" for name in files}
    places = {name: _free_place(path, suffixes[name], name) for name, path in files.items() if path is not None}
    folders = {name: folder for name, folder in (("png", png), ("svg", svg)) if folder is not None}
    cli_replay.check(places, folders)
    try:
        with _replaying() as told:
            found = film_of(run, frames, steps=steps, recorded=recorded, progress=told)
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
    from bnnviz.benchmarks import find

    rows = []
    with _console(stderr=True).status("Starting.") as said:
        for row in _until_interrupt(find(suite).run(case, seconds, said.update)):
            rows.append(row)
            print(_row_line(plain(row)), file=sys.stderr, flush=True)
    if as_json:
        _print_json(rows)
    else:
        _console().print(_rows_table(plain(rows)))


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
    print(json.dumps(plain(value), ensure_ascii=False))


def _print_summary(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        _print_json(summary)
        return
    summary = plain(summary)
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

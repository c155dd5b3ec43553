"""Run ``bnnviz sample``: sample a target and print the results."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnnviz import optional, paths
from bnnviz.cli import options
from bnnviz.cli.output import FAILED, INTERRUPTED, hold_interrupt, progress, say
from bnnviz.cli.summary_table import print_summary
from bnnviz.errors import BnnvizError
from bnnviz.progress_bar import doing, share
from bnnviz.specs.run import Spec

if TYPE_CHECKING:
    from bnnviz.engine.race.race import Race
    from bnnviz.engine.recording.writer import RecordingWriter
    from bnnviz.engine.viewed_run import ViewedRun

_SLICE_S = 0.2  # seconds of sampling between two looks at the progress and at Ctrl-C

app = typer.Typer()


@app.command(
    epilog=options.examples(
        "bnnviz sample --target banana --sampler bps --chains 16 --set refresh_rate=0.5",
        "bnnviz sample --data concrete --json > concrete.json",
        "bnnviz sample --data houses.csv --target-column price --report price.html",
        "bnnviz sample spec.json --seed 2 --out run2.nc",
        "bnnviz sample --data concrete --minutes 2 --record concrete",
    )
)
def sample(
    spec: Annotated[
        str | None, typer.Argument(metavar="SPEC.json", help="The run as JSON; - reads it from stdin.")
    ] = None,
    target: options.Target = None,
    data: options.Data = None,
    target_column: options.TargetColumn = None,
    task: options.Task = None,
    decimal: options.Decimal = None,
    missing: options.Missing = None,
    leave_out: options.LeaveOut = None,
    likelihood: options.Likelihood = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler",
            "-s",
            help="A sampler of `bnnviz list samplers`; auto, the default on a table: a pilot chooses one, and what of"
            " the network is not set.",
        ),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Time limit: the run ends with the draws so far. Default with auto: 0.25.")
    ] = None,
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
    device: options.Device = None,
    kernel: Annotated[str | None, typer.Option(help="eager, or compiled (machine code of the step).")] = None,
    out: Annotated[Path | None, typer.Option(metavar="RUN.nc", help="Save the run here; ArviZ opens it.")] = None,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Record the run on disk while it runs, under this name or in this folder (a path)."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write a page with the verdict and figures of a run on a table here."),
    ] = None,
    details: options.Details = False,
    as_json: options.Json = False,
) -> None:
    """Sample a target, and print the results.

    Ctrl-C stops early and keeps the draws made so far.
    """
    request = options.read_request(spec) if spec is not None else {}
    folder = None if record is None else _new_recording(record)
    task = options.task_of(likelihood) if task is None and target_column is not None else task
    reading = options.TableOptions(target_column, task, decimal, missing, leave_out)
    table = options.enter_target(request, target, data, reading)
    chooses = _chooses(request, sampler, by_default=spec is None)
    sampler = None if sampler == options.AUTO else sampler
    if sampler is not None and request.get("sampler") != sampler:
        request["sampler"] = sampler
        request["settings"] = {}
    options.enter_options(request, draws=draws, chains=chains, seed=seed, device=device, kernel=kernel)
    settings = [*(settings or []), *([] if likelihood is None else [f"target.family={likelihood}"])]
    given = options.apply_settings(request, settings, to_sampler=not chooses)
    if table is not None and spec is None:
        options.enter_table_defaults(request)
    checked = Spec.from_json(request, None if table is None else table.pack())
    if checked.draws is None:
        raise BnnvizError("This spec describes an unlimited run. Specify --draws.", "draws")
    if out is not None:  # refuse a place that cannot be written before the run, not after it
        from bnnviz.engine.recording import arviz

        optional.check(arviz.NETCDF, "Saving a run needs")
        out = options.free_place(out, ".nc")
    if report is not None:
        if not options.is_table(request["target"]):
            raise BnnvizError("A report requires a table. Specify --data.", "report")
        optional.check(("holoviews", "jinja2"), "A report needs", extra="plots")
        report = options.free_place(report, ".html", "report")
    for note in table.notes if table is not None else ():
        say(note)
    if minutes is not None and not minutes > 0:
        raise BnnvizError(f"minutes = {minutes:g} must be above 0.", "minutes")
    given |= {name for name in ("chains", "draws", "warmup") if name in request} | {*request.get("target_settings", {})}
    raise typer.Exit(_sample(checked, out, folder, report, as_json, details, given if chooses else None, minutes))


def _chooses(request: dict[str, Any], sampler: str | None, by_default: bool) -> bool:
    """Return whether a pilot chooses the sampler: on request, or on a table without sampler options."""
    able = options.is_table(request["target"])
    if sampler == options.AUTO and not able:
        raise BnnvizError("auto requires a table. Specify a sampler.", "sampler")
    return able and (sampler == options.AUTO or (sampler is None and by_default))


def _new_recording(word: str) -> Path:
    """Return the folder of a recording that is not there yet."""
    from bnnviz.engine.recording import reader

    reader.check_zarr()
    folder = reader.new_place(word)
    options.check_writable(next(each for each in (folder, *folder.absolute().parents) if each.is_dir()), "record")
    return folder


def _sample(
    spec: Spec,
    out: Path | None,
    folder: Path | None,
    report: Path | None,
    as_json: bool,
    details: bool,
    given: set[str] | None,
    minutes: float | None,
) -> int:
    """Choose the settings that are not given by a pilot, unless ``given`` is None; sample; return the exit code."""
    from bnnviz.engine.automatic.tables import Limit, automatic
    from bnnviz.engine.viewed_run import ViewedRun

    if given is None:
        run = ViewedRun(spec)
        if minutes is not None:
            Limit(run, 60 * minutes)
    else:
        try:
            with progress() as bar:
                bar.add_task("pilot", total=None)
                chosen = automatic(spec, given, minutes)
        except KeyboardInterrupt:
            say("stopped; no sampler was chosen and nothing was kept.")
            return INTERRUPTED
        run = ViewedRun(chosen.spec)
        chosen.attach(run)
    code = carry_out(run, out, folder, as_json, details)
    if report is not None and run.draws.shape[1]:
        from bnnviz.cli.report import write

        write(run, report, "" if folder is None else _word(folder))
        say(f"the report is in {report}.")
    return code


# --- driving


def carry_out(run: ViewedRun, out: Path | None, folder: Path | None, as_json: bool, details: bool) -> int:
    """Sample to the end or to Ctrl-C, print and save the results, and return the exit code."""
    writer = None
    if folder is not None:
        from bnnviz.engine.recording.writer import RecordingWriter

        writer = RecordingWriter(run, folder)
    try:
        interrupted = drive(run, writer)
    except KeyboardInterrupt:
        kept = "nothing was kept" if folder is None else f"earlier draws are kept in {folder}"
        say(f"stopped before the first draw; {kept}.")
        return INTERRUPTED
    unwritten = _close(writer)
    if out is not None and run.draws.shape[1]:
        # Save the draws first: printing may fail.
        unwritten = not _save(run, out) or unwritten
    print_results(run, as_json, details)
    if run.error is not None or unwritten:
        return FAILED
    if not interrupted:
        if folder is not None:
            use = f"bnnviz export {_word(folder)} --format netcdf makes a file for ArviZ of it"
            if run.spec.attachment:
                use = f"bnnviz predict {_word(folder)} --data FILE.csv predicts new rows"
            say(f"the run is recorded in {folder}; {use}.")
        return 0
    say(_stopped(run, out, folder))
    return INTERRUPTED


def drive(run: ViewedRun | Race, writer: RecordingWriter | None = None) -> bool:
    """Advance a run or a race to its end or to Ctrl-C; return whether it was stopped.

    A failure to write the recording is reported once and retried; sampling continues.
    """
    from bnnviz.engine.drive import drive as advance

    with progress() as bar:
        task, message = bar.add_task(run.phase, total=None), ""
        run.prepare()
        with hold_interrupt() as pressed:

            def show_and_write() -> None:
                nonlocal message
                bar.update(task, description=doing(run), total=1.0, completed=share(run))
                message = _write(writer, message)

            advance(run, _SLICE_S, show_and_write, stopped=lambda: bool(pressed))
    return bool(pressed)


def _write(writer: RecordingWriter | None, message: str) -> str:
    """Write new draws to a recording; return the write error, which is printed once if it stays the same."""
    if writer is None:
        return ""
    try:
        return "" if writer.note() else message
    except BnnvizError as error:
        if error.sentence != message:
            say(f"{error.sentence} Sampling continues.")
        return error.sentence


def _close(writer: RecordingWriter | None) -> bool:
    """Write the rest of a recording; return whether it could not be written."""
    if writer is None:
        return False
    try:
        writer.close()
    except BnnvizError as error:
        say(error.message)
        return True
    return False


def _save(run: ViewedRun, out: Path) -> bool:
    """Save a run in its file, or in another place where that cannot be written; return whether the file has it."""
    try:
        run.save(out)
    except BnnvizError as error:
        say(error.message)
        rescued = Path(tempfile.mkdtemp(prefix="bnnviz-")) / out.name
        try:
            say(f"the draws are kept in {run.save(rescued)} instead.")
        except BnnvizError as again:
            say(again.message)
        return False
    return True


def print_results(run: ViewedRun, as_json: bool, details: bool) -> None:
    """Print the summary of a run that has draws, its warnings and its error; of a table only the verdict by default."""
    details, warnings = details or run.spec.file is None, []
    if run.draws.shape[1] or run.phase == "done":
        summary = run.summary()
        warnings = summary["warnings"]
        print_summary(summary, as_json, details)
        if "verdict" in summary:
            say(summary["verdict"])
    for note in [*run.notes, *warnings] if details else ():
        say(note)
    if run.error is not None:
        say(run.error)


def _stopped(run: ViewedRun, out: Path | None, folder: Path | None) -> str:
    """Return how far a run came that was stopped, and where its draws are."""
    made = run.draws.shape[1]
    places = [f"they are saved in {out}"] if out is not None and made else []
    places += [f"bnnviz resume {_word(folder)} resumes the run"] if folder is not None else []
    hint = "; --out would have saved them" if made and not places else ""
    saved = "".join(f"; {place}" for place in places)
    return f"stopped after {made} of {run.spec.draws} draws of each chain{saved}{hint}."


def _word(folder: Path) -> str:
    """Return a recording's name on the command line: its name in the recordings folder, or else its path."""
    return folder.name if folder.parent == paths.recordings() else str(folder)

"""Run ``bnnviz sweep``: many runs on a cluster, each into a recording."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnnviz.cli.options import Insecure, Json, Scheduler, examples, read_text
from bnnviz.cli.output import FAILED, INTERRUPTED, complain, console, failure, hold_interrupt, print_rows, say, short
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.text import Text

    from bnnviz.engine.cluster.jobs import scheduling
    from bnnviz.engine.sweep.sweep import Sweep

#: What the table at the end shows of a run's figures, where any run has them.
_COLUMNS = {
    "ess_min": "ESS",
    "weight_ess": "weight ESS",
    "rhat_max": "R-hat",
    "rmse": "RMSE",
    "nll": "NLL",
    "accuracy": "accuracy",
    "grad_evals": "gradients",
}

_LINES = 8  # runs with a line of their own while they go on

app = typer.Typer()


@app.command(
    epilog=examples(
        "bnnviz sweep sweep.yaml --out runs",
        "bnnviz sweep sweep.yaml --out runs --workers 4 --json",
        "bnnviz sweep sweep.yaml --out runs --scheduler tls://head:8786",
    )
)
def sweep(
    runs: Annotated[
        str,
        typer.Argument(metavar="SWEEP.yaml", help="The runs: base, grid and specs, as YAML or JSON; - reads stdin."),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where each run becomes a recording.")],
    scheduler: Scheduler = None,
    insecure: Insecure = False,
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

    spec = SweepSpec.from_text(read_text(runs, "sweep", "a YAML file"))
    reader.check_zarr("out")
    with Sweep(spec, out, scheduler=scheduler, workers=workers, insecure=insecure) as found:
        raise typer.Exit(_sweep(found, as_json))


def _sweep(sweep: Sweep, as_json: bool) -> int:
    """Run a sweep to its end or to Ctrl-C, print what the runs came to, and return the exit code."""
    wrong = None
    try:
        with hold_interrupt() as pressed:
            _drive(sweep, console(stderr=True), pressed)
    except KeyboardInterrupt:
        say("stopped at once; what was written is kept, and the same command goes on.")
        return INTERRUPTED
    except BnnvizError as error:
        wrong = error.sentence
    rows = sweep.rows()
    shown = {key: head for key, head in _COLUMNS.items() if any(row["figures"].get(key) is not None for row in rows)}
    print_rows(rows, as_json, ("run", "", *shown.values(), "seconds"), (_cells(row, shown) for row in rows))
    if (sentence := _pace(sweep, rows)) is not None:
        say(sentence)
    return _exit_code(rows, bool(pressed)) if wrong is None else complain(wrong)


def _exit_code(rows: list[dict[str, Any]], stopped: bool) -> int:
    """Say how many runs failed, or are left where Ctrl-C stopped the sweep; return the exit code."""
    failed, left = (sum(row["state"] == state for row in rows) for state in ("failed", "left"))
    if left and stopped:
        say(f"stopped with {left} of {len(rows)} runs left; the same command goes on with them.")
        return INTERRUPTED
    if failed:
        say(f"{failed} of {len(rows)} runs failed.")
    return FAILED if failed or left else 0


def _cells(row: dict[str, Any], shown: Iterable[str]) -> tuple[str | Text, ...]:
    state = failure("failed") if row["state"] == "failed" else row["state"].replace("done", "")
    return row["name"], state, *(short(row["figures"].get(key)) for key in shown), short(row["seconds"])


def _pace(sweep: Sweep, rows: list[dict[str, Any]]) -> str | None:
    """Return how long the sweep took, and how much of that was none of the runs' own; None where nothing was run."""
    here = [row for row in rows if row["worker_s"] is not None]
    if not here or not sweep.slots:
        return None
    own = sum(row["seconds"] for row in here)
    over = (sweep.wall * min(sweep.slots, len(here)) - own) / len(here)
    return (
        f"{len(here)} runs in {sweep.wall:.1f} s, {sweep.slots} at a time; their own seconds are {own:.1f}, and"
        f" {over:.2f} s a run went into everything else."
    )


# --- progress


def _drive(sweep: Sweep, console: Console, pressed: list[int]) -> None:
    """Let a sweep go on to its end or to Ctrl-C, which ``pressed`` collects, and show how far each run is."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[message]}"))
    if sweep.before:
        console.print(f"bnnviz: {len(sweep.before)} of {len(sweep.names)} runs are done already.", highlight=False)
        for row in sweep.rows():
            if row["error"]:
                _print(console, f"{row['name']}: {row['error']}")
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        bars = _Bars(bar, sweep)
        for event in sweep.events(lambda: bool(pressed)):
            bars.take(event)


class _Bars:
    """Show a bar of all runs, and one of each that goes on."""

    def __init__(self, bar: Progress, sweep: Sweep) -> None:
        self._bar, self._names = bar, sweep.names
        self._all = bar.add_task("all runs", total=len(sweep.names), completed=len(sweep.before), message="")
        self._lines: dict[int, TaskID] = {}
        self._ended = len(sweep.before)

    def take(self, event: scheduling.Event) -> None:
        """Show what has happened to a run, or to the cluster."""
        from bnnviz.engine.cluster.jobs import scheduling, worker

        number, kind, value = event
        if kind == scheduling.WAITING:
            self._say(value)
        elif kind == scheduling.LOST:
            self._say(f"{self._names[number]}: its worker was lost; another one goes on with it.")
        elif kind == worker.BEGAN and len(self._lines) < _LINES:
            self._end(number)
            self._lines[number] = self._bar.add_task(self._names[number], total=1.0, message="")
        elif kind == worker.TOLD and number in self._lines:
            self._bar.update(self._lines[number], completed=value["progress"], message=value["phase"])
        elif kind in (worker.DONE, worker.FAILED, worker.STOPPED):
            self._end(number)
            self._ended += kind != worker.STOPPED
            self._bar.update(self._all, completed=self._ended, message=f"{self._ended} of {len(self._names)}")
        if kind == worker.FAILED:
            self._say(f"{self._names[number]}: {value}")

    def _say(self, sentence: str) -> None:
        _print(self._bar.console, sentence)

    def _end(self, number: int) -> None:
        line = self._lines.pop(number, None)
        if line is not None:
            self._bar.remove_task(line)


def _print(console: Console, sentence: str) -> None:
    console.print(f"bnnviz: {sentence}", highlight=False, markup=False, soft_wrap=True)

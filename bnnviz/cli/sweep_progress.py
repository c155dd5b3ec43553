"""Show how far a sweep is while it goes on: a bar of all runs, and one of each that is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bnnviz.engine.cluster import job_worker, jobs

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from bnnviz.engine.sweep.sweep import Sweep

_LINES = 8  # runs with a line of their own while they go on


def drive(sweep: Sweep, console: Console, pressed: list[int]) -> None:
    """Let a sweep go on to its end or to Ctrl-C, which ``pressed`` collects, and show how far each run is."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
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
        self._all = bar.add_task("all runs", total=len(sweep.names), completed=len(sweep.before), said="")
        self._lines: dict[int, TaskID] = {}
        self._ended = len(sweep.before)

    def take(self, event: jobs.Event) -> None:
        """Show what has happened to a run, or to the cluster."""
        number, kind, value = event
        if kind == jobs.WAITING:
            self._say(value)
        elif kind == jobs.LOST:
            self._say(f"{self._names[number]}: its worker was lost; another one goes on with it.")
        elif kind == job_worker.BEGAN and len(self._lines) < _LINES:
            self._end(number)
            self._lines[number] = self._bar.add_task(self._names[number], total=1.0, said="")
        elif kind == job_worker.TOLD and number in self._lines:
            self._bar.update(self._lines[number], completed=value["progress"], said=value["phase"])
        elif kind in (job_worker.DONE, job_worker.FAILED, job_worker.STOPPED):
            self._end(number)
            self._ended += kind != job_worker.STOPPED
            self._bar.update(self._all, completed=self._ended, said=f"{self._ended} of {len(self._names)}")
        if kind == job_worker.FAILED:
            self._say(f"{self._names[number]}: {value}")

    def _say(self, sentence: str) -> None:
        _print(self._bar.console, sentence)

    def _end(self, number: int) -> None:
        line = self._lines.pop(number, None)
        if line is not None:
            self._bar.remove_task(line)


def _print(console: Console, sentence: str) -> None:
    console.print(f"bnnviz: {sentence}", highlight=False, markup=False, soft_wrap=True)

"""Show the progress and remaining time of a run in a terminal or notebook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

from bnnviz import optional

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def bar(console: Console, shown: bool) -> Progress:
    """Return a progress bar that disappears at its end: phase, share, time left."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<9}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not shown)


def doing(run: Any) -> str:
    """Return the phase of a run or race, and the time until it makes draws."""
    waiting = getattr(run, "waiting", None)  # each run of a race has one
    found = None if waiting is None else waiting.message()
    return run.phase if found is None else f"{run.phase}: {found.text}"


def share(run: Any) -> float:
    """Return the completed share, 0 to 1, of a run or race, or of the reference that a race waits for."""
    if run.phase != "reference":
        return run.progress
    status = run.measure.reference_status
    return status["draws"] / max(status["goal"], 1)


class RunProgress:
    """Show the progress of a run of this process on stderr during a block."""

    def __init__(self, shown: bool | None) -> None:
        if shown:
            optional.require("rich", "A progress bar needs")
        self._bar: Progress | None = None
        if shown or (shown is None and sys.stderr.isatty() and optional.has("rich")):
            from rich.console import Console

            self._bar = bar(Console(stderr=True), True)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._bar.add_task("preparing", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, run: Any) -> None:
        """Update the progress of a run or race."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=doing(run), total=1.0, completed=share(run))

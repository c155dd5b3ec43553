"""Options that several commands share, and checks of the files that they name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bnnviz import optional
from bnnviz.errors import BnnvizError

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:8786 or tls://...; default: BNNVIZ_SCHEDULER."),
]
RecordingWord = Annotated[str, typer.Argument(metavar="RUN", help="A recording: its name, or its folder.")]
Target = Annotated[str | None, typer.Option("--target", "-t", help="A target of `bnnviz list targets`.")]
Data = Annotated[
    str | None,
    typer.Option(help="A data set of `bnnviz list data`, or a CSV file: the target is a network on it."),
]
TargetColumn = Annotated[str | None, typer.Option(metavar="NAME", help="The column of the CSV file that is predicted.")]
Task = Annotated[
    str | None,
    typer.Option(metavar="TASK", help="What that column is: regression or classification; default: told apart."),
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")]


def examples(*commands: str) -> str:
    """Return an epilog with one command on each line."""
    return "Examples:\n\n" + "\n\n".join(commands)


def free_place(out: Path, suffix: str, option: str = "out") -> Path:
    """Return where a file is written, with a suffix; refuse a file that exists and a folder that does not."""
    out = out if out.suffix else out.with_suffix(suffix)
    if out.exists():
        raise BnnvizError(f"{out} exists already; choose another name for --{option}.", option)
    if not out.absolute().parent.is_dir():
        raise BnnvizError(f"There is no folder {out.absolute().parent} to save it in; make it first.", option)
    return out


def figure_place(out: Path | None, option: str) -> Path | None:
    """Return where a figure is written; refuse one that cannot be drawn or written."""
    if out is None:
        return None
    optional.check("bokeh", "A figure needs", option)
    return free_place(out, ".html", option)

"""Run the program ``bnnviz``: its commands, ``--version``, and how errors become exit codes."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, NoReturn, TextIO

import typer

from bnnviz import __version__, optional
from bnnviz.cli import data, lessons, predict, race, recordings, replay, reproduce, sample, serve, sweep
from bnnviz.cli.output import INTERRUPTED, complain
from bnnviz.errors import BnnvizError

app = typer.Typer(
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal cannot encode must not stop the remaining output.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as head, closed the pipe: discard the remaining output.
        code = 0
        for stream in (sys.stdout, sys.stderr):
            _stop_writing(stream)
    sys.exit(code)


def _stop_writing(stream: TextIO) -> None:
    """Discard the output still buffered for a closed pipe."""
    try:
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str] | None) -> int:
    """Run a command; return its exit code."""
    try:
        return app(args=arguments, prog_name="bnnviz", standalone_mode=False) or 0
    except BnnvizError as error:
        return complain(error.message)
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in optional.EXTRAS:
            raise
        text = str(error)
        return complain(text if "pip install" in text else f"{text}; {optional.install(package)}.")
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "bnnviz"
        message = " ".join(error.format_message().split()).rstrip(".")
        return complain(f"{message}; see {command} --help.")
    except typer.Abort:
        return INTERRUPTED


def _print_version(requested: bool) -> None:
    if requested:
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


# `bnnviz --help` lists the commands in this order, and the groups of commands after them.
for commands in (
    *(data.app, reproduce.app, sample.app, predict.app, recordings.app, sweep.app),
    *(race.app, race.wells_app, replay.app, lessons.app, serve.app),
):
    app.add_typer(commands)
app.add_typer(data.group, name="data")
app.add_typer(recordings.group, name="recordings")

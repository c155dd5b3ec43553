"""Print messages on stderr, tables and JSON on stdout; stop at Ctrl-C between two steps; define the exit codes."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from bnnviz import progress_bar
from bnnviz.files import to_json
from bnnviz.messages import Message
from bnnviz.specs.url import write_value

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
_OF_OTHERS = ("settings", "target_settings")  # options that are dicts in Python
_BY_SET = ("warmup", "dtype")  # settings of the run without a dedicated option


# --- messages


def say(message: str | Message, command: str = "") -> None:
    """Print a message on stderr, with options as the command line takes them."""
    print(f"bnnviz: {shown(worded(message, command))}", file=sys.stderr)


def worded(message: str | Message, command: str = "") -> str:
    """Return a message with options as the command line takes them."""
    return message if isinstance(message, str) else message.render(partial(_options, command))


def _options(command: str, values: dict[str, Any]) -> str:
    """Write the values of Python's options as the command line takes them."""
    words = [command] if command else []
    for name, value in values.items():
        given = value if isinstance(value, list) else [value]
        if name in _OF_OTHERS:
            words += [f"--set {key}={shlex.quote(write_value(each))}" for key, each in value.items()]
        elif name in _BY_SET:
            words.append(f"--set {name}={shlex.quote(write_value(value))}")
        else:
            option = f"--{name.replace('_', '-')}"
            words += [f"{option} {shlex.quote(write_value(each))}" for each in given or ["none"]]
    return " ".join(words)


def shown(text: str) -> str:
    """Escape control characters: foreign text must not move the terminal's cursor or clear it."""
    return "".join("\ufffd" if _moves_cursor(letter) else letter for letter in text)


def _moves_cursor(letter: str) -> bool:
    return letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Cf", "Cs")


def complain(message: str | Message) -> int:
    """Print the problem with the input on stderr; return its exit code."""
    say(message)
    return BAD_INPUT


# --- results


def print_json(value: Any) -> None:
    """Print a value as one line of JSON; numbers that JSON does not know become null."""
    # Escapes are valid JSON everywhere; a terminal without UTF-8 would garble the letters.
    print(json.dumps(to_json(value), ensure_ascii=(sys.stdout.encoding or "").lower().replace("-", "") != "utf8"))


def print_rows(value: Any, as_json: bool, heads: Iterable[str], rows: Iterable[Iterable[str | Text]]) -> None:
    """Print a value as JSON, or a table of it."""
    if as_json:
        print_json(value)
    else:
        console().print(table(*heads, rows=rows))


# --- contents of the tables


def console(stderr: bool = False) -> Console:
    """Return a console of rich on stdout or stderr."""
    from rich.console import Console

    return Console(stderr=stderr)


def table(*columns: str, rows: Iterable[Iterable[str | Text]] = (), caption: str | None = None) -> Table:
    """Return a table with these heads and rows."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, caption=caption)
    for row in rows:
        made.add_row(*(each if isinstance(each, Text) else Text(shown(each or "")) for each in row))
    return made


def failure(text: str, before: str = "") -> Text:
    """Return a text in red, with an optional prefix, for a cell of a table."""
    from rich.text import Text

    return Text.assemble(shown(before), (shown(text), "red"))


def progress() -> Progress:
    """Return a progress bar on stderr that disappears at the end: phase, share, time left."""
    raise_interrupt()
    shown_on = console(stderr=True)
    return progress_bar.bar(shown_on, shown_on.is_terminal)


def text(value: Any) -> str:
    """Return a value with four digits, or without decimals, "-" for None."""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}={text(item)}" for key, item in value.items())
    return "-" if value is None else str(value)


def short(value: float | None) -> str:
    """Return a number with two digits or without decimals, "–" for None."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


# --- signals

_ENDINGS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def raise_interrupt() -> None:
    """Make Ctrl-C raise KeyboardInterrupt; before, it ends the process (`bnnviz.__main__`)."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def hold_interrupt() -> Iterator[list[int]]:
    """Collect the first Ctrl-C, SIGTERM or SIGHUP instead of ending amid a step; a second one ends it as usual."""
    pressed: list[int] = []
    before = {number: signal.getsignal(number) for number in _ENDINGS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: Any) -> None:
        pressed.append(number)
        restore()

    for number in _ENDINGS:
        signal.signal(number, note)
    try:
        yield pressed
    finally:
        restore()

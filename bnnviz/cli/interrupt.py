"""Let Ctrl-C end a command between two of its steps."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def hold_interrupt() -> Iterator[list[int]]:
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


def until_interrupt(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
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

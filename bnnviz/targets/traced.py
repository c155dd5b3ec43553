"""Mark operations as traced, so that targets avoid data-dependent branches and calls outside PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TRACED: ContextVar[bool] = ContextVar("traced", default=False)


def is_traced() -> bool:
    """Return whether operations of this thread are being traced."""
    return _TRACED.get()


@contextmanager
def tracing() -> Iterator[None]:
    """Mark the operations of a block as traced."""
    token = _TRACED.set(True)
    try:
        yield
    finally:
        _TRACED.reset(token)

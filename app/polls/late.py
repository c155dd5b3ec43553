"""Change a page from outside of its own requests, once its browser has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from bokeh.document import Document
from panel.io.document import hold
from panel.io.state import set_curdoc, state


class LateChange:
    """Bring a page up to date, as often as something happens elsewhere."""

    def __init__(self, doc: Document, change: Callable[[], None]) -> None:
        self._doc, self._change = doc, change
        self._loaded = False
        self._tasks: set[asyncio.Task] = set()
        state.onload(self._load)

    @property
    def session(self) -> Any:
        """The server's session of the page; None where there is none, or no longer."""
        context = self._doc.session_context
        session = None if context is None else context.session
        return None if session is None or session.destroyed else session

    def make(self) -> None:
        """Change the page soon; what changes before the browser has it would be lost, so that it waits for that."""
        if self._loaded and self.session is not None:
            task = asyncio.ensure_future(self._make())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _load(self) -> None:
        self._loaded = True
        self.make()

    async def _make(self) -> None:
        def apply(doc: Document) -> None:
            with set_curdoc(doc), hold(doc):
                self._change()

        session = self.session
        if session is not None:
            await session.with_document_locked(apply, self._doc)

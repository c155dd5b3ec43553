"""Work on the documents of pages in another thread, so that the frames of other pages go out meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from bokeh.document import Document
from panel.io.state import set_curdoc, state

#: Held by the page that is worked on. It takes this before its document, whose frames go out until then.
PAGE_TURN = asyncio.Lock()


async def in_page_thread(document: Document, function: Callable[[], None]) -> None:
    """Let a function change a document, which nothing else changes meanwhile."""

    def work() -> None:
        loop = state._thread_id_.get(document)
        state._thread_id_[document] = threading.get_ident()  # else Panel would leave each change to the loop
        try:
            function()
        finally:
            state._thread_id_[document] = loop

    with set_curdoc(document):
        await asyncio.to_thread(work)

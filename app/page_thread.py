"""Work on the documents of pages in one thread, so that the frames of other pages go out meanwhile."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bokeh.document import Document
from panel.io.state import set_curdoc, state

_THREAD = ThreadPoolExecutor(1, thread_name_prefix="bnnviz-page")


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
        run = contextvars.copy_context().run
    await asyncio.get_running_loop().run_in_executor(_THREAD, run, work)

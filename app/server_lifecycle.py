"""Starts the workers when the server starts, in a thread: neither the server nor a page waits for them.

Runs outside the app's own folder of modules: it imports only what is installed. A failure stays in the
future, and the page says it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import panel as pn
from bokeh.server.views.ws import WSHandler

from bnnviz.engine.backend import Backend

_START_S = 60.0


def on_server_loaded(server_context: Any) -> None:
    """Connect to the workers in the background."""
    _send_at_once()
    starter = ThreadPoolExecutor(1, thread_name_prefix="bnnviz-connect")
    pn.state.cache["backend"] = starter.submit(Backend.connect)
    starter.shutdown(wait=False)


def on_server_unloaded(server_context: Any) -> None:
    """Release the workers."""
    future = pn.state.cache.pop("backend")
    # Workers that are still starting would outlive the server, or die of its end with a traceback.
    if future.exception(timeout=_START_S) is None:
        future.result().close()


def _send_at_once() -> None:
    """Have the server send every piece of a message when it is written.

    Bokeh writes a message in several pieces, and a socket holds the second one back until the browser has
    acknowledged the first, which it does after 40 ms.
    """
    opened = WSHandler.open

    def open_without_delay(handler: WSHandler) -> None:
        opened(handler)
        handler.set_nodelay(True)

    WSHandler.open = open_without_delay

"""Start the workers with the server, and describe each visitor to the session of a page.

Bokeh finds these functions in `app_hooks.py`. A failure to connect stays in the future; the page shows it.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import panel as pn
from bokeh.server.tornado import BokehTornado
from bokeh.settings import settings
from tornado.httputil import HTTPServerRequest
from tornado.ioloop import IOLoop
from tornado.websocket import WebSocketClosedError

from bnnviz import memory
from bnnviz.engine.cluster.backend import Backend
from bnnviz_app import kept_runs
from bnnviz_app.access import roles
from bnnviz_app.access.gate import GATE, Gate
from bnnviz_app.access.guard import guard

_COMES_S = 1.5  # the browser that the server opens comes within this time: the first page is built before Dask loads
_COLLECTED_S = 5.0  # after a page has closed


def on_server_loaded(server_context: Any) -> None:
    """Connect to the workers in the background."""
    if GATE not in pn.state.cache:
        _guard_panel_serve()
    IOLoop.current().asyncio_loop.set_exception_handler(_log_unexpected)
    pn.state.cache["leaving"] = threading.Event()
    # Another thread: Ctrl-C interrupts the main thread anywhere, and pages wait for this future.
    starter = ThreadPoolExecutor(1, thread_name_prefix="bnnviz-connect")
    pn.state.cache["backend"] = starter.submit(_connect, pn.state.cache["leaving"])
    starter.shutdown(wait=False)


def _guard_panel_serve() -> None:
    """Put a gate without a token in front of the server of `panel serve app`, whose hooks cannot access it."""
    for application in [each for each in gc.get_objects() if isinstance(each, BokehTornado)]:
        origins = settings.allowed_ws_origin() or application.websocket_origins
        ports = {origin.rpartition(":")[2] for origin in origins}
        own = {f"{host}:{port}" for host in ("localhost", "127.0.0.1") for port in ports if port.isdigit()}
        pn.state.cache[GATE] = Gate.at("127.0.0.1", None, None, {*origins, *own})
        guard(application, pn.state.cache[GATE])


def process_request(request: HTTPServerRequest) -> dict[str, Any]:
    """Return role, person and browser of a visitor for the signed token of the session."""
    return roles.visitor(request) | kept_runs.visitor(request)


def on_session_created(session_context: Any) -> None:
    """Count a page."""
    roles.OPEN_PAGES.opened(session_context)


def on_session_destroyed(session_context: Any) -> None:
    """Count a page no longer, and collect its objects soon."""
    roles.OPEN_PAGES.closed(session_context)
    # Panel collects once no page has closed for five seconds: with pages that come and go, memory would only grow.
    if "collection" not in pn.state.cache:
        pn.state.cache["collection"] = IOLoop.current().call_later(_COLLECTED_S, _collect)


def on_server_unloaded(server_context: Any) -> None:
    """Release the workers."""
    pn.state.cache.pop("leaving").set()
    # Workers that are still starting would outlive the server, or end with a traceback.
    future = pn.state.cache.pop("backend")
    if future.exception() is None and (backend := future.result()) is not None:
        backend.close()


def _collect() -> None:
    """Collect the objects of closed pages, and return their memory to the system."""
    del pn.state.cache["collection"]
    gc.collect()
    memory.give_back()


def _log_unexpected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log exceptions of background tasks, except writes to a closed page."""
    if not isinstance(context.get("exception"), WebSocketClosedError):
        loop.default_exception_handler(context)


def _connect(leaving: threading.Event) -> Backend | None:
    """Connect after the first page is built; return None if the server ends before."""
    if leaving.wait(_COMES_S):
        return None
    # The garbage collector need not scan the imported modules again.
    gc.freeze()
    # A collection of all objects stops every page for 0.1 s and more: one follows when pages have closed.
    gc.set_threshold(700, 10, 1000)
    gc.enable()
    return Backend.connect()

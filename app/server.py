"""Run the dashboard's server: scripts go ahead of a page, messages at once, workers start when there is time.

Bokeh finds these functions in `server_lifecycle.py`. A failure to connect stays in the future, and the page says it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import re
import socket
from collections.abc import Awaitable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import panel as pn
from bokeh.document import Document
from bokeh.document.events import DocumentChangedEvent, ModelChangedEvent, TitleChangedEvent
from bokeh.resources import Resources as BokehResources
from bokeh.server.views.static_handler import StaticHandler
from bokeh.server.views.ws import WSHandler
from bokeh.settings import settings
from panel.io import document as panel_document
from panel.io.resources import Resources, bundle_resources
from panel.io.server import DocHandler
from panel.io.state import set_curdoc
from panel.reactive import Syncable
from tornado.ioloop import IOLoop
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError

from bnnviz.engine.cluster.backend import Backend
from bnnviz_app import BACKGROUND, THEME_COOKIE, broadcast, prepared, steps
from bnnviz_app.access.guard import guard_all
from bnnviz_app.memory import COLLECTOR
from bnnviz_app.pages import FIRST, PAGES

_START_S = 60.0
_CORKED_S = 0.002
_COMES_S = 1.5  # who comes sooner than that waits for the server, or is the browser that it opens, and has it first
_MOMENT_S = 0.1
# The background of the page, light and dark, until it brings its own: the browser would show white. The library's sheet
# takes it from the variable.
_OPENING = """<!DOCTYPE html>
<html lang="en" data-theme-managed="true">
<head>
<meta charset="utf-8">
<style>html {{background: {background}}} html {{--mui-palette-background-default: {background}}}</style>
"""
_BEGINNING = re.compile(r"\s*<!DOCTYPE html>\s*<html[^>]*>\s*<head>")
_SCRIPT = re.compile(r"<script\b[^>]*>.*?</script>", re.DOTALL)
_BUNDLE = '<script>importShim("{}")</script>\n'
_PAGE_S = 6.0  # a page that is not there by then, in a browser that has gone perhaps, is waited for no longer


def on_server_loaded(server_context: Any) -> None:
    """Connect to the workers in the background.

    Importing Dask takes a second of the interpreter, and workers take a core. Who opens the page at once, as a browser
    does that waits for the server, has both first.
    """
    guard_all()
    steps.install()
    prepared.install()
    broadcast.install()
    _send_at_once()
    _send_all()
    _lock_events()
    _send_early()
    _send_ahead()
    IOLoop.current().asyncio_loop.set_exception_handler(_lament)
    # Sessions of which the page is not painted yet: `page.py` takes them out.
    pn.state.cache["loading"] = set()
    pn.state.cache["backend"] = Future()
    IOLoop.current().call_later(_COMES_S, _when_painted, pn.state.cache["backend"], _PAGE_S)


def _lament(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong where nobody waits for it; not that a page has gone while it was written to."""
    if not isinstance(context.get("exception"), WebSocketClosedError):
        loop.default_exception_handler(context)


def on_session_created(session_context: Any) -> None:
    """Note that a page is being built."""
    COLLECTOR.opened()
    pn.state.cache["loading"].add(session_context.id)


def on_session_destroyed(session_context: Any) -> None:
    """Forget a page that was never painted, and free the memory of one that was."""
    pn.state.cache["loading"].discard(session_context.id)
    COLLECTOR.closed()


def _when_painted(future: Future, patience_s: float) -> None:
    if pn.state.cache["loading"] and patience_s > 0:
        IOLoop.current().call_later(_MOMENT_S, _when_painted, future, patience_s - _MOMENT_S)
    else:
        _connect(future)


def _connect(future: Future) -> None:
    # What has been imported and built so far stays: it is looked at no more when memory is collected.
    gc.freeze()
    COLLECTOR.begin()
    gc.enable()
    if not future.set_running_or_notify_cancel():
        return
    if (shelf := pn.state.cache.get(prepared.SHELF)) is not None:
        shelf.begin()
    starter = ThreadPoolExecutor(1, thread_name_prefix="bnnviz-connect")
    starter.submit(Backend.connect).add_done_callback(lambda done: _settle(future, done))
    starter.shutdown(wait=False)


def _settle(future: Future, done: Future) -> None:
    if (error := done.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(done.result())


def on_server_unloaded(server_context: Any) -> None:
    """Release the workers."""
    future = pn.state.cache.pop("backend")
    # Workers that are still starting would outlive the server, or die of its end with a traceback.
    if not future.cancel() and future.exception(timeout=_START_S) is None:
        future.result().close()


def _send_ahead() -> None:
    """Have the browser read the scripts of a page while the server is still importing and building it."""
    if settings.resources(default="server") != "server":
        return
    scripts = _scripts()
    importer = ThreadPoolExecutor(1, thread_name_prefix="bnnviz-import")
    imported = importer.submit(_import)
    importer.shutdown(wait=False)
    get = DocHandler.get

    async def get_ahead(handler: DocHandler, *args: Any, **kwargs: Any) -> None:
        if _may_begin(handler):
            await _begin(handler, scripts, imported)
        # Whatever is built meanwhile would import the same at the same time, and a half of it may be there.
        await asyncio.wait([asyncio.wrap_future(imported)])
        await get(handler, *args, **kwargs)

    DocHandler.get = get_ahead


def _scripts() -> str:
    """Return the script elements of every page of a server without a prefix."""
    resources = BokehResources(mode="server", root_url="/", path_versioner=StaticHandler.append_version)
    document = Document()
    pn.state._extensions_[document] = []  # else the scripts of everything that Panel could load are among them
    with set_curdoc(document):
        return str(bundle_resources([], Resources.from_bokeh(resources))._render_js())


def _import() -> str:
    """Import the first page, in a thread, so that the server can hand out scripts; return the widgets' bundle."""
    widgets = importlib.import_module("panel_material_ui")
    importlib.import_module("bnnviz_app.page")
    importlib.import_module(PAGES[FIRST].module)
    return widgets.Button._render_esm(True, server=True)


def _may_begin(handler: DocHandler) -> bool:
    """Return whether the answer will be a page, and not a login or an address to go to instead."""
    refused = handler.current_user is None or pn.config.authorize_callback is not None
    return not (refused or handler.application.prefix)


async def _begin(handler: DocHandler, scripts: str, imported: Future) -> None:
    """Send the beginning of a page; what is written later goes on from there."""
    handler.set_header("Content-Type", "text/html; charset=UTF-8")
    handler.set_header("Cache-Control", "no-store")
    dark = handler.get_query_argument("theme", handler.get_cookie(THEME_COOKIE, "")) == "dark"
    handler.write(_OPENING.format(background=BACKGROUND[dark]) + scripts)
    await _flush(handler)
    await asyncio.wait([asyncio.wrap_future(imported)])
    # What could not be imported the page itself says.
    if imported.exception() is None:
        handler.write(_BUNDLE.format(imported.result()))
        await _flush(handler)
    write = handler.write
    handler.write = lambda page: write(_rest(page, scripts))


async def _flush(handler: DocHandler) -> None:
    with contextlib.suppress(StreamClosedError):  # the browser has gone meanwhile, and the page is built for nobody
        await handler.flush()


def _rest(page: str, scripts: str) -> str:
    """Return a page without its beginning, which has been sent."""
    for script in _SCRIPT.findall(scripts):
        page = page.replace(script, "", 1)
    return _BEGINNING.sub("", page, count=1)


def _send_at_once() -> None:
    """Have the server send the pieces of a message together, as soon as they are written.

    Bokeh writes a message in a dozen pieces. A socket would hold all but the first back until the browser has
    acknowledged that, which it does after 40 ms; sent singly, each would wake the browser up.
    """
    opened, write = WSHandler.open, WSHandler.write_message

    def open_without_delay(handler: WSHandler) -> None:
        opened(handler)
        handler.set_nodelay(True)

    def write_corked(handler: WSHandler, *args: Any, **kwargs: Any) -> Awaitable[None]:
        _cork(handler)
        return write(handler, *args, **kwargs)

    WSHandler.open = open_without_delay
    if hasattr(socket, "TCP_CORK"):
        WSHandler.write_message = write_corked


def _send_all() -> None:
    """Have Panel send what is written to a page while it waits for the browser to take what was written before.

    Panel marks a page as being written to until the browser has taken its messages, and then takes the mark away, even
    where more have come meanwhile. Those would stay until something else is written: a page that waits for its browser
    to acknowledge a frame, which was never sent, would stand still.
    """
    dispatch = panel_document._dispatch_msgs
    if getattr(dispatch, "sends_all", False):
        return

    async def dispatch_all(document: Document) -> None:
        await dispatch(document)
        if document in panel_document._WRITE_MSGS and document not in panel_document._WRITE_BLOCK:
            panel_document._WRITE_BLOCK[document] = True
            panel_document._dispatch_write_task(document, dispatch_all, document)

    dispatch_all.sends_all = True
    panel_document._dispatch_msgs = dispatch_all


def _lock_events() -> None:
    """Have Panel lock the document for what a reader does while a widget's change waits, as it does at any other time.

    Panel puts such an event off until the change has been made, and would then handle it without the lock: the first
    property of a figure that it writes raises an error, and the page stays half-way between two pictures.
    """
    if not getattr(Syncable._event_coroutine, "lock", False):
        Syncable._event_coroutine = pn.io.with_lock(Syncable._event_coroutine)


def _send_early() -> None:
    """Have Panel send what changes after a browser has read its page, and before it says that it has painted it.

    Panel drops such changes: the page is yet to be read, it takes for granted, with the changes in it. What was pressed
    in these moments would be done, and never be seen. To set a property twice does no harm.
    """
    drain = panel_document._drain_unconnected_events
    if getattr(drain, "sends_early", False):
        return

    def drain_early(document: Document, lock: Any) -> list[DocumentChangedEvent]:
        session = getattr(document.session_context, "session", None)
        held = (document.callbacks._held_events or []) if session is not None and session.connection_count else []
        set_anew = [event for event in held if isinstance(event, ModelChangedEvent | TitleChangedEvent)]
        return [*set_anew, *drain(document, lock)]

    drain_early.sends_early = True
    panel_document._drain_unconnected_events = drain_early


def _cork(handler: WSHandler) -> None:
    """Hold back what is written to a socket for a moment, then let it go at once."""
    connection = None if handler.ws_connection is None else handler.ws_connection.stream.socket
    if connection is None or getattr(handler, "bnnviz_corked", False):
        return

    def uncork() -> None:
        handler.bnnviz_corked = False
        with contextlib.suppress(OSError):  # the page has gone meanwhile
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)

    handler.bnnviz_corked = True
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    asyncio.get_running_loop().call_later(_CORKED_S, uncork)

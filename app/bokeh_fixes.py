"""Work around bugs of Bokeh and Panel, each by replacing one attribute; no other module replaces attributes.

Tested with the versions in `TESTED`; a warning is logged for others. When a version without a bug is the oldest one
that `pyproject.toml` allows, its fix goes.

1. ``bokeh.server.urls.per_app_patterns``: the socket handler cannot be chosen by an option, and Bokeh's takes any
   change from a browser, any origin that equals the host, delays small packets, and sends before messages that Panel
   has queued (`bnnviz_app.access.socket`).
   Panel itself replaces entries of this list.
2. ``panel.io.document._dispatch_msgs``: messages that come while a page's socket is busy stay until the next change.
3. ``panel.io.document._drain_unconnected_events``: changes after the page was read and before it is painted are lost.
4. ``panel.reactive.Syncable._event_coroutine``: an event that waits for a change is handled without the document lock.
5. ``panel.util.edit_readonly``: it makes the parameters of a class writable for a moment, for all threads. A page that
   is built in a thread would fail when an event on the loop makes them read-only again too early.

In the browser (`SCRIPT`):

6. ``VisualProperties._get_css_value``: each figure makes the browser compute all styles, for colours that no figure of
   ours takes from a style sheet; a tenth of the time of opening a page.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import panel as pn
import panel.util
from bokeh.document import Document
from bokeh.document.events import DocumentChangedEvent, ModelChangedEvent, TitleChangedEvent
from bokeh.server.urls import per_app_patterns
from bokeh.server.views.ws import WSHandler
from panel.io import document as panel_document
from panel.reactive import Syncable

from bnnviz_app.access.socket import PageSocket

#: The beginnings of the versions that the fixes were tested with.
TESTED = {"bokeh": "3.9.", "panel": "1.9."}

#: For the page's template.
SCRIPT = """
{
  const {VisualProperties} = Bokeh.require("core/visuals/visual")
  VisualProperties.prototype._get_css_value = () => ""
}
"""

log = logging.getLogger(__name__)
_dispatch, _drain = panel_document._dispatch_msgs, panel_document._drain_unconnected_events
_make_writable, _writable = panel.util.edit_readonly, threading.RLock()


def untested() -> list[str]:
    """Return the installed libraries whose versions the fixes were not tested with."""
    return [f"{name} {version(name)}" for name, tested in TESTED.items() if not version(name).startswith(tested)]


def apply() -> None:
    """Apply all fixes, before a server is made; a second call changes nothing."""
    for name in untested():
        log.warning("The dashboard was not tested with %s; install the versions of constraints.txt.", name)
    per_app_patterns[:] = [
        (route, PageSocket if issubclass(handler, WSHandler) else handler, *rest)
        for route, handler, *rest in per_app_patterns
    ]
    panel_document._dispatch_msgs = _dispatch_all
    panel_document._drain_unconnected_events = _drain_early
    for module in [each for each in sys.modules.values() if vars(each).get("edit_readonly") is _make_writable]:
        module.edit_readonly = _edit_readonly
    if not getattr(Syncable._event_coroutine, "lock", False):
        Syncable._event_coroutine = pn.io.with_lock(Syncable._event_coroutine)


async def _dispatch_all(document: Document) -> None:
    """Send a page's messages, and then those that came while the browser took the first ones."""
    await _dispatch(document)
    if document in panel_document._WRITE_MSGS and document not in panel_document._WRITE_BLOCK:
        panel_document._WRITE_BLOCK[document] = True
        panel_document._dispatch_write_task(document, _dispatch_all, document)


def _drain_early(document: Document, lock: Any) -> list[DocumentChangedEvent]:
    """Return the changes to send to a page that is not painted yet: also those made after its browser read it."""
    session = getattr(document.session_context, "session", None)
    held = (document.callbacks._held_events or []) if session is not None and session.connection_count else []
    set_anew = [event for event in held if isinstance(event, ModelChangedEvent | TitleChangedEvent)]
    return [*set_anew, *_drain(document, lock)]


@contextmanager
def _edit_readonly(parameterized: Any) -> Iterator[None]:
    """Make parameters writable, in one thread at a time."""
    with _writable, _make_writable(parameterized):
        yield

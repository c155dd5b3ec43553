"""Serve an application in this process as `bnnviz serve` does: behind a gate, with signed sessions and all fixes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from bokeh.application import Application
from bokeh.document import Document
from bokeh.server.server import Server
from bokeh.server.urls import per_app_patterns
from bokeh.util.token import generate_jwt_token, generate_session_id
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop

from bnnviz_app import bokeh_fixes
from bnnviz_app.access import connections
from bnnviz_app.access.gate import Gate
from bnnviz_app.access.guard import guard
from bnnviz_app.launch import session_options

BROWSER = {"Accept": "text/html"}


@asynccontextmanager
async def serving(
    application: Application | Callable[[Document], None], gate: Callable[[int], Gate] | None = None, **how: Any
) -> AsyncIterator[Server]:
    """Serve at ``/app`` of a free port, and restore the handlers of Bokeh afterwards."""
    patterns = list(per_app_patterns)
    bokeh_fixes.apply()
    connections.bound()
    server = Server(
        {"/app": application}, io_loop=IOLoop.current(), port=0, address="127.0.0.1", **session_options(), **how
    )
    HTTPServer.configure(None)
    guard(server._tornado, Gate.at("127.0.0.1", server.port, None) if gate is None else gate(server.port))
    server.start()
    try:
        yield server
    finally:
        server.stop()
        per_app_patterns[:] = patterns


def token_of(server: Server, **payload: Any) -> str:
    """Return a token that a server takes for its own."""
    key = server._tornado.secret_key
    name = generate_session_id(secret_key=key, signed=True)
    return generate_jwt_token(name, secret_key=key, signed=True, expiration=300, extra_payload=payload)

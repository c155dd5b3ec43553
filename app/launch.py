"""Run the dashboard's server until it is stopped, by the command that `panel serve` is."""

from __future__ import annotations

import importlib
import re
import secrets
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.application import Application
from bokeh.server.server import Server
from panel.command.serve import Serve
from tornado.web import RedirectHandler

from bnnviz.errors import BnnvizError
from bnnviz_app import THEME_COOKIE, bokeh_fixes
from bnnviz_app.access import connections
from bnnviz_app.access.gate import GATE, Gate
from bnnviz_app.access.guard import guard
from bnnviz_app.access.secret import Secret
from bnnviz_app.classroom.requests import answer_class
from bnnviz_app.lessons import serve_lessons

# How long a page waits for its browser's connection: a slower browser gets the page built again, with style sheets from
# elsewhere. A page whose connection has ended is freed at once (`bnnviz_app.access.socket`).
SESSION_LIFETIME_MS = 15_000
SESSION_CHECK_MS = 1000
MOST_MESSAGE = 20 << 20  # bytes of a browser's message: a file comes in pieces of 10 MiB
MOST_BODY = 1 << 20  # bytes of a form: there is only the login
SWITCH_S = 0.001  # after which the event loop gets the interpreter from the thread that builds a page
_FIRST_PAGES = ("bnnviz_app.page", "bnnviz_app.pages.lab")


def session_options() -> dict[str, Any]:
    """Return how a server makes sessions: tokens are signed, and hold no header and no cookie that lets anyone in."""
    return {
        "sign_sessions": True,
        "secret_key": secrets.token_bytes(32),
        "include_headers": [],
        "include_cookies": [THEME_COOKIE],
    }


class _ServeAt(Serve):
    """Run Panel's command, which reads Panel's and Bokeh's environment variables, with a route of our own."""

    def __init__(self, parser: ArgumentParser, route: str, gate: Gate) -> None:
        super().__init__(parser)
        self._route, self._gate = route, gate

    def customize_applications(self, args: Namespace, applications: dict[str, Application]) -> dict[str, Application]:
        """Serve the application at the route."""
        (application,) = applications.values()
        application.add(importlib.import_module("bnnviz_app.page").BuildInThread())
        return super().customize_applications(args, {self._route: application})

    def customize_kwargs(self, args: Namespace, server_kwargs: dict[str, Any]) -> dict[str, Any]:
        """Sign sessions, and take no larger body of a request than a form has."""
        limits = {"http_server_kwargs": {"max_body_size": MOST_BODY}}
        return super().customize_kwargs(args, server_kwargs) | limits | session_options()

    def customize_server(self, server: Server) -> Server:
        """Put the gate in front of the server before it answers."""
        guard(server._tornado, self._gate)
        pn.state.cache[GATE] = self._gate
        # Bokeh's own redirect from the root drops the query.
        root = (f"{re.escape(server.prefix)}/", RedirectHandler, {"url": f".{self._route}", "permanent": False})
        server._tornado.add_handlers(".*", [root])
        serve_lessons(server._tornado, self._route, self._gate.students is not None)
        if self._gate.students is not None:
            answer_class(server._tornado, self._gate, self._route)
        return super().customize_server(server)


def launch(
    folder: Path,
    route: str,
    port: int,
    address: str,
    *,
    secret: Secret | None,
    hosts: Sequence[str] = (),
    frames: Sequence[str] = (),
    prefix: str = "",
    students: Secret | None = None,
) -> None:
    """Serve a folder until Ctrl-C or SIGTERM."""
    bokeh_fixes.apply()
    connections.bound()
    sys.setswitchinterval(SWITCH_S)
    for module in _FIRST_PAGES:  # while the workers start in separate processes
        importlib.import_module(module)
    gate = Gate.at(address, port, secret, hosts, frames, students)
    parser = ArgumentParser(prog="bnnviz serve")
    command = _ServeAt(parser, route, gate)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the server ends its workers
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # the terminal was closed
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        options = [str(folder), "--port", str(port), "--address", address, "--prefix", prefix, "--log-level", "warning"]
        options += ["--unused-session-lifetime", str(SESSION_LIFETIME_MS)]
        options += ["--check-unused-sessions", str(SESSION_CHECK_MS)]
        options += ["--websocket-max-message-size", str(MOST_MESSAGE)]
        command.invoke(parser.parse_args(options))
    except (RuntimeError, ValueError) as error:
        raise BnnvizError(f"The dashboard cannot be served: {error}") from error

"""Run the dashboard's server until it is stopped, by the command that `panel serve` is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.application import Application
from bokeh.server.server import Server
from panel.command.serve import Serve

from bnnviz.errors import BnnvizError
from bnnviz_app.access.gate import Gate
from bnnviz_app.access.guard import guard
from bnnviz_app.access.limits import MOST_BODY, MOST_MESSAGE
from bnnviz_app.access.roles import GATE
from bnnviz_app.access.secret import Secret
from bnnviz_app.polls.answers import take_answers
from bnnviz_app.prepared import SHELF, Shelf

# A page ends the run of a closed tab itself, within seconds; this is when its own memory is freed. A browser that takes
# longer from the page to its connection gets the page built again, with style sheets from elsewhere.
SESSION_LIFETIME_MS = 15_000
SESSION_CHECK_MS = 200


class _ServeAt(Serve):
    """Run Panel's command, which reads Panel's and Bokeh's environment variables, with a route of our own."""

    def __init__(self, parser: ArgumentParser, route: str, gate: Gate) -> None:
        super().__init__(parser)
        self._route, self._gate = route, gate

    def customize_applications(self, args: Namespace, applications: dict[str, Application]) -> dict[str, Application]:
        """Serve the application at the route."""
        (application,) = applications.values()
        return super().customize_applications(args, {self._route: application})

    def customize_kwargs(self, args: Namespace, server_kwargs: dict[str, Any]) -> dict[str, Any]:
        """Take no larger body of a request than a form has."""
        return super().customize_kwargs(args, server_kwargs | {"http_server_kwargs": {"max_body_size": MOST_BODY}})

    def customize_server(self, server: Server) -> Server:
        """Put the gate before the server, which has not begun to answer."""
        guard(server._tornado, self._gate)
        pn.state.cache[GATE] = self._gate
        if self._gate.students is not None:
            take_answers(server._tornado, self._gate, self._route)
            pn.state.cache[SHELF] = Shelf(server._tornado, self._gate, self._route)
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
    unix_socket: Path | None = None,
    students: Secret | None = None,
) -> None:
    """Serve a folder until Ctrl-C or SIGTERM."""
    gate = Gate.at(address, port if unix_socket is None else None, secret, hosts, frames, students)
    parser = ArgumentParser(prog="bnnviz serve")
    command = _ServeAt(parser, route, gate)
    try:
        place = ["--port", str(port), "--address", address]
        place = place if unix_socket is None else ["--unix-socket", str(unix_socket)]
        command.invoke(parser.parse_args(_options(folder, [*place, "--prefix", prefix])))
    except (RuntimeError, ValueError) as error:
        raise BnnvizError(f"The dashboard cannot be served: {error}") from error


def _options(folder: Path, place: Sequence[str]) -> list[str]:
    options = [str(folder), *place, "--log-level", "warning"]
    options += ["--unused-session-lifetime", str(SESSION_LIFETIME_MS)]
    options += ["--check-unused-sessions", str(SESSION_CHECK_MS)]
    options += ["--websocket-max-message-size", str(MOST_MESSAGE)]
    return options

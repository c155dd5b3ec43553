"""Run the dashboard's server until it is stopped, by the command that `panel serve` is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bokeh.application import Application
from panel.command.serve import Serve

from bnnviz.errors import BnnvizError

# A page ends the run of a closed tab itself, within seconds; this is when its own memory is freed. A browser that takes
# longer from the page to its connection gets the page built again, with style sheets from elsewhere.
SESSION_LIFETIME_MS = 15_000
SESSION_CHECK_MS = 200


class _ServeAt(Serve):
    """Run Panel's command, which reads Panel's and Bokeh's environment variables, with a route of our own.

    Parameters
    ----------
    parser : ArgumentParser
        Takes the command's options.
    route : str
        Where the one application is served; Bokeh would call it by the name of its folder.
    """

    def __init__(self, parser: ArgumentParser, route: str) -> None:
        super().__init__(parser)
        self._route = route

    def customize_applications(self, args: Namespace, applications: dict[str, Application]) -> dict[str, Application]:
        """Serve the application at the route."""
        (application,) = applications.values()
        return super().customize_applications(args, {self._route: application})


def launch(folder: Path, route: str, port: int, address: str) -> None:
    """Serve a folder until Ctrl-C or SIGTERM.

    Parameters
    ----------
    folder : Path
        The folder with ``main.py`` and ``server_lifecycle.py``.
    route : str
        Where the page is, such as ``/app``.
    port : int
        The port to listen on.
    address : str
        The address to listen on.

    Raises
    ------
    BnnvizError
        If the folder's scripts fail, or an environment variable gives Panel or Bokeh an option that it refuses.
    """
    parser = ArgumentParser(prog="bnnviz serve")
    command = _ServeAt(parser, route)
    try:
        command.invoke(parser.parse_args(_options(folder, port, address)))
    except (RuntimeError, ValueError) as error:
        raise BnnvizError(f"The dashboard cannot be served: {error}") from error


def _options(folder: Path, port: int, address: str) -> list[str]:
    options = [str(folder), "--port", str(port), "--address", address, "--log-level", "warning"]
    options += ["--unused-session-lifetime", str(SESSION_LIFETIME_MS)]
    options += ["--check-unused-sessions", str(SESSION_CHECK_MS)]
    for host in dict.fromkeys((address, "127.0.0.1", "localhost")):
        options += ["--allow-websocket-origin", f"{host}:{port}"]
    return options

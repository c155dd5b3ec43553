"""Run ``bnnviz serve``: the dashboard on this machine."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import socket
import sys
import threading
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from bnnviz import optional
from bnnviz.cli.options import examples
from bnnviz.errors import BnnvizError

_ROUTE = "/app"  # of the page, whatever the folder is called that it is served from
#: Ports above 1023 at which browsers open no page (WHATWG Fetch standard, "bad port").
_UNSAFE_PORTS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, *range(6665, 6670), 6679, 6697, 10080}
)

app = typer.Typer()


@app.command(epilog=examples("bnnviz serve", "bnnviz serve --port 5007 --no-show"))
def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 5006,
    no_show: Annotated[
        bool, typer.Option("--no-show", help="Open no browser; without a screen none is opened anyway.")
    ] = False,
    address: Annotated[
        str, typer.Option(help="The address to listen on; the default lets nobody but this machine in.")
    ] = "127.0.0.1",
) -> None:
    """Serve the dashboard on this machine, and open it in a browser where there is one."""
    serve_dashboard(port=port, address=address, show=not no_show)


def serve_dashboard(port: int, address: str, show: bool) -> None:
    """Serve the dashboard until it is stopped.

    Parameters
    ----------
    port : int
        The port to listen on.
    address : str
        The address to listen on; 127.0.0.1 lets nobody but this machine in.
    show : bool
        Open the page in a browser, where this machine has a screen.

    Raises
    ------
    BnnvizError
        If Panel is not installed, if the address or the port cannot be had, or no browser would open a page there.
    """
    optional.check(("panel", "panel_material_ui", "distributed"), "The dashboard needs", extra="app")
    folder = find_app()
    if port in _UNSAFE_PORTS:
        raise BnnvizError(f"Browsers open no page at port {port}, which is another service's; try 5006.", "port")
    _check_free(address, port)
    threading.Thread(target=_announce, args=(address, port, show), daemon=True).start()
    # Dask tells of every connection otherwise, here and in the workers, which inherit this.
    os.environ.setdefault("DASK_DISTRIBUTED__LOGGING__DISTRIBUTED", "warning")
    # A page binds some thousand callbacks, and Bokeh would look at the signature of each.
    os.environ.setdefault("BOKEH_PERFORM_ERROR_DIAGNOSTICS", "no")
    if not os.environ.get("BNNVIZ_SCHEDULER"):
        from bnnviz.engine.cluster import local_cluster

        local_cluster.start_ahead()
    # What Panel's import makes stays, so that looking for garbage in it takes time for nothing: a sixth of the import.
    # The server looks again when it has started (app/server.py).
    gc.disable()
    importlib.import_module("bnnviz_app.launch").launch(folder, _ROUTE, port, address)


def find_app() -> Path:
    """Return the folder of the dashboard's package: `app` in a checkout, `bnnviz_app` in an environment."""
    spec = importlib.util.find_spec("bnnviz_app")
    if spec is None or spec.origin is None:
        raise BnnvizError("The dashboard is missing; install bnnviz again.")
    return Path(spec.origin).parent


def _announce(address: str, port: int, show: bool) -> None:
    """Say where the dashboard is, and open it, as soon as it answers."""
    host = "127.0.0.1" if address in ("0.0.0.0", "::") else address
    while not _answers(host, port):
        time.sleep(0.05)
    url = f"http://{host}:{port}{_ROUTE}"
    print(f"The dashboard is at {url} (Ctrl-C ends it).", file=sys.stderr, flush=True)
    if show and _has_screen():
        webbrowser.open(url)


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def _check_free(address: str, port: int) -> None:
    try:
        family, _, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BnnvizError(
            f"Cannot listen on {address}:{port} ({reason}); choose another with --port or --address.", "port"
        ) from None


def _has_screen() -> bool:
    """Return whether a browser has somewhere to appear: Python would open a text browser otherwise."""
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

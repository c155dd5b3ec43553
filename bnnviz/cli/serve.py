"""Run ``bnnviz serve``: the dashboard on this machine."""

from __future__ import annotations

import gc
import html
import importlib
import importlib.util
import ipaddress
import os
import re
import socket
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from bnnviz import optional
from bnnviz.cli import classroom as classes
from bnnviz.cli.options import examples
from bnnviz.cli.output import say
from bnnviz.errors import BnnvizError

_NEEDED = ("panel", "panel_material_ui", "distributed", "cryptography")
_LEAST_TOKEN = 16  # letters of a token: it may be guessed at any pace
_READ_S = 60.0  # until a browser that was started has read the page that sends it to the dashboard
_ROUTE = "/app"  # of the page, whatever the folder is called that it is served from
_PREFIX = re.compile(r"((/[A-Za-z0-9._~-]+)*)/?")
#: Ports above 1023 at which browsers open no page (WHATWG Fetch standard, "bad port").
_UNSAFE_PORTS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, *range(6665, 6670), 6679, 6697, 10080}
)

app = typer.Typer()


@app.command(epilog=examples("bnnviz serve", "bnnviz serve --port 5007 --no-show", "bnnviz serve --class"))
def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 5006,
    no_show: Annotated[
        bool, typer.Option("--no-show", help="Open no browser; without a screen none is opened anyway.")
    ] = False,
    address: Annotated[
        str | None,
        typer.Option(
            help="The address to listen on; default: 127.0.0.1, which only this machine can reach, or for a class the"
            " address of the network card."
        ),
    ] = None,
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a password now, and each browser for it, in place of a token.")
    ] = False,
    classroom: Annotated[
        bool,
        typer.Option("--class", help="Serve a class: one link for the teacher, one for students, who may do less."),
    ] = False,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let in every account of this machine without a token.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="Another name it is reached by, such as a proxy's.")
    ] = None,
    embed_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="A site whose pages may show it in a frame.")
    ] = None,
    prefix: Annotated[
        str, typer.Option(metavar="/PATH", help="Path prefix that a proxy keeps in front of the dashboard's paths.")
    ] = "",
) -> None:
    """Serve the dashboard on this machine, and open it in a browser if one is available.

    The printed address has a token that lets a browser in; BNNVIZ_TOKEN sets it.
    """
    if classroom and (password or no_token):
        raise BnnvizError("A class uses the tokens in its two links. Omit --password and --no-token.", "class")
    address = address or (classes.network_address() if classroom else "127.0.0.1")
    secret = _secret(address, password, no_token)
    students = None
    if classroom:
        optional.check(("segno",), "A class needs", extra="app")
        students = importlib.import_module("bnnviz_app.access.secret").Secret(_token_of("BNNVIZ_STUDENT_TOKEN"))
    if not _PREFIX.fullmatch(prefix):
        raise BnnvizError(f"{prefix[:100]!r} is not a path; give --prefix one such as /lab.", "prefix")
    serve_dashboard(
        port=port,
        address=address,
        show=not no_show,
        secret=secret,
        hosts=allow_host or [],
        frames=embed_origin or [],
        prefix=prefix.rstrip("/"),  # as Bokeh expects it
        students=students,
    )


def _secret(address: str, password: bool, no_token: bool) -> Any:
    """Return the requirements on browsers, or None."""
    optional.check(_NEEDED, "The dashboard needs", extra="app")
    gate = importlib.import_module("bnnviz_app.access.secret")
    if password and no_token:
        raise BnnvizError("Choose --password or --no-token, not both.", "password")
    if no_token:
        if not is_loopback(address):
            raise BnnvizError(
                f"Without a token anyone who can connect to {address} could run code and delete your recordings; remove"
                " --no-token, or --address.",
                "no_token",
            )
        say("no token: every account of this machine can use the dashboard.")
        return None
    if not password:
        return gate.Secret(_token_of("BNNVIZ_TOKEN"))
    word = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return gate.Password(word)


def _token_of(variable: str) -> str | None:
    """Return the token from an environment variable, or None if it is not set."""
    token = os.environ.get(variable) or None
    if token is not None and len(token) < _LEAST_TOKEN:
        raise BnnvizError(f"{variable} has fewer than {_LEAST_TOKEN} characters; take more, or unset it.", "token")
    return token


def is_loopback(address: str) -> bool:
    """Return whether an address is reachable only from this machine."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def serve_dashboard(
    port: int,
    address: str,
    show: bool,
    *,
    secret: Any,
    hosts: Sequence[str] = (),
    frames: Sequence[str] = (),
    prefix: str = "",
    students: Any = None,
) -> None:
    """Serve the dashboard until it is stopped."""
    folder = find_app()
    if port in _UNSAFE_PORTS:
        raise BnnvizError(f"Browsers open no page at port {port}, which is another service's; try 5006.", "port")
    _check_free(address, port)
    _announce_later(address, port, prefix + _ROUTE, secret, students, show)
    # Dask otherwise logs every connection, here and in the workers, which inherit this.
    os.environ.setdefault("DASK_DISTRIBUTED__LOGGING__DISTRIBUTED", "warning")
    os.environ.setdefault("DASK_DISTRIBUTED__LOGGING__BOKEH", "error")
    # Bokeh would check the signature of each of a page's thousand callbacks, and then all models of the page.
    os.environ.setdefault("BOKEH_PERFORM_ERROR_DIAGNOSTICS", "no")
    os.environ.setdefault("BOKEH_VALIDATE_DOC", "no")
    # The objects of Panel's import are permanent; collecting garbage among them would take a sixth of the import.
    # The server enables the collector when it has started (app/server.py).
    gc.disable()
    launch = importlib.import_module("bnnviz_app.launch").launch
    launch(
        folder,
        _ROUTE,
        port,
        address,
        secret=secret,
        hosts=hosts,
        frames=frames,
        students=students,
        prefix=prefix,
    )


def find_app() -> Path:
    """Return the folder of the dashboard's package: `app` in a checkout, `bnnviz_app` in an environment."""
    spec = importlib.util.find_spec("bnnviz_app")
    if spec is None or spec.origin is None:
        raise BnnvizError("The dashboard is not installed. Reinstall bnnviz.")
    return Path(spec.origin).parent


def _announce_later(address: str, port: int, page: str, secret: Any, students: Any, show: bool) -> None:
    """Print the address, or the links of a class, when the dashboard answers."""

    def announce() -> None:
        url = _url_when_up(address, port, page, secret)
        if students is not None:
            classes.show(url, _url_when_up(address, port, page, students))
            return
        print(f"The dashboard is at {url} (Ctrl-C stops it).", file=sys.stderr, flush=True)
        if show and _has_screen():
            _open(url)

    threading.Thread(target=announce, daemon=True).start()


def _url_when_up(address: str, port: int, page: str, secret: Any) -> str:
    """Wait until the dashboard answers, and return its address with a token."""
    host = "127.0.0.1" if address in ("0.0.0.0", "::") else address
    while True:
        try:
            socket.create_connection((host, port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.05)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}{page}"
    return url if secret is None or secret.token is None else f"{url}?token={quote(secret.token)}"


def _open(url: str) -> None:
    """Open an address in a browser by a page that only this user reads: others see the command lines of browsers."""
    if "?" not in url:
        webbrowser.open(url)
        return
    with tempfile.TemporaryDirectory(prefix="bnnviz-") as folder:
        page = Path(folder) / "open.html"
        page.write_text(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={html.escape(url, quote=True)}">')
        webbrowser.open(page.as_uri())
        time.sleep(_READ_S)


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

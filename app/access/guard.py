"""Put a gate in front of all requests: pages, scripts, sockets, errors."""

from __future__ import annotations

import html
import math
import posixpath
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from bokeh.server.tornado import BokehTornado
from tornado.httputil import HTTPServerRequest
from tornado.routing import AnyMatches, Router, Rule
from tornado.web import RequestHandler

from bnnviz_app.access import connections
from bnnviz_app.access.gate import GATE, Gate
from bnnviz_app.access.headers import guarding
from bnnviz_app.access.secret import Secret

_TOKEN, _NEXT, _LOGIN = "token", "next", "/login"
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>bnnviz</title>{head}
<link rel="icon" href="data:,">
<style>
body {{font: 16px system-ui, sans-serif; max-width: 30rem; margin: 15vh auto; padding: 0 1rem;
color-scheme: light dark}}
input, button {{font: inherit; padding: .4rem .6rem}}
</style></head><body>{body}</body></html>
"""
_FORM = """<h1>bnnviz</h1><p>{statement}</p>
<form method="post" action="{action}">
<input type="hidden" name="next" value="{next}">
<label for="word">{label}</label><br>
<input id="word" name="word" type="password" autocomplete="current-password" required autofocus>
<button>Open</button></form>"""
_ASKED = {
    "token": "This dashboard requires a token. It is part of the address that bnnviz serve prints.",
    "password": "This dashboard requires a password.",
}


def guard(application: BokehTornado, gate: Gate) -> None:
    """Restrict an application to requests that a gate accepts."""
    application.settings[GATE] = gate
    application.settings["websocket_ping_interval"] = connections.ANSWER_S
    application.default_router.rules.insert(0, Rule(AnyMatches(), _Barrier(application, gate)))
    application.add_transform(guarding(gate.frames))


class _Barrier(Router):
    """Answer the requests that a gate does not let through."""

    def __init__(self, application: BokehTornado, gate: Gate) -> None:
        self._application, self._gate = application, gate

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        """Return a handler that refuses or redirects a request, or None if the gate accepts it."""
        gate = self._gate

        def instead(handler: type[RequestHandler], **how: Any) -> Any:
            return self._application.get_handler_delegate(request, handler, how)

        sentence = gate.refusal(request)
        if sentence is not None:
            return instead(_Refused, status=403, sentence=sentence)
        if gate.secret is not None and request.path == self._application.prefix + _LOGIN:
            return instead(_Login)
        if _TOKEN in request.query_arguments and request.method == "GET":
            return instead(_TakeToken)
        if gate.lets_in(request):
            connections.STRANGERS.discard(request.connection.stream)
            return None
        if "Authorization" in request.headers and (early := gate.attempts.take(request.remote_ip)):
            return instead(_Refused, status=429, sentence=_too_many(early), early=early)
        if _asks_for_page(request):
            return instead(_ToLogin)
        return instead(_Refused, status=403, sentence=f"This needs the {gate.secret.what}.")


def _too_many(early: float) -> str:
    return f"This address has tried too many wrong words; wait {math.ceil(early)} s."


def _asks_for_page(request: HTTPServerRequest) -> bool:
    wants = "text/html" in request.headers.get("Accept", "")
    return request.method == "GET" and wants and "Upgrade" not in request.headers


def _local(path: str, home: str) -> str:
    """Return an address on this server, or ``home`` for an address elsewhere."""
    parts = urlsplit(path)
    plain = not (parts.scheme or parts.netloc) and path.startswith("/") and path[1:2] not in ("/", "\\")
    return path if plain and path.isprintable() else home


def _relative(address: str, here: str) -> str:
    """Return an address on this server as it is seen from a page: a proxy may show the server under another path."""
    path, mark, query = address.partition("?")
    way = posixpath.relpath(path, posixpath.dirname(here))
    # With a dot before it no part of it is taken for a scheme.
    return (way if way.startswith("..") else "./" + way.removeprefix(".")) + mark + query


class _Refused(RequestHandler):
    """Report why a request is refused."""

    def initialize(self, status: int, sentence: str, early: float = 0.0) -> None:
        self._refusal = status, sentence, early

    def prepare(self) -> None:
        status, sentence, early = self._refusal
        self.set_status(status)
        if early:
            self.set_header("Retry-After", math.ceil(early))
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        self.finish(sentence + "\n")


class _Door(RequestHandler):
    """Share methods of the pages before the dashboard."""

    def set_default_headers(self) -> None:
        self.set_header("Cache-Control", "no-store")

    @property
    def _gate(self) -> Gate:
        return self.settings[GATE]

    def _seen(self, address: str) -> str:
        """Return an address relative to this page, which a proxy may serve under another path."""
        return _relative(address, self.request.path)

    def _let_in(self, secret: Secret) -> None:
        gate = self._gate
        how = {"path": "/", "httponly": True, "samesite": "Strict", "secure": self.request.protocol == "https"}
        self.set_cookie(gate.cookie_of(secret), secret.cookie, **how)
        if secret is gate.students and gate.person_cookie not in self.request.cookies:
            self.set_cookie(gate.person_cookie, gate.new_person(), **how)

    def _refuse(self, early: float) -> None:
        """Answer a word that was tried too early."""
        self.set_status(429)
        self.set_header("Retry-After", math.ceil(early))
        self.finish(_PAGE.format(head="", body=f"<h1>bnnviz</h1><p>{_too_many(early)}</p>"))

    def _to_login(self, address: str) -> None:
        """Redirect to the login, and from there to an address on this server."""
        self.redirect(self._seen(f"{self.application.prefix}{_LOGIN}?{urlencode({_NEXT: address})}"))

    def _go(self, address: str) -> None:
        """Redirect to an address on this server by a script of the page.

        A browser sends no strict cookie when coming from another site, not even after an HTTP redirect.
        """
        address = self._seen(address)
        if self.request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
            self.redirect(address)
            return
        head = f'<meta http-equiv="refresh" content="0; url={html.escape(address, quote=True)}">'
        self.finish(_PAGE.format(head=head, body=""))


class _TakeToken(_Door):
    """Move the token from the address to a cookie and redirect."""

    async def get(self) -> None:
        """Keep a right token as a cookie."""
        gate = self._gate
        left = [pair for pair in parse_qsl(self.request.query, keep_blank_values=True) if pair[0] != _TOKEN]
        address = _local(self.request.path + ("?" + urlencode(left) if left else ""), "/")
        if gate.secret is None:
            self._go(address)
            return
        if gate.secret.token is None:
            self._to_login(address)
            return
        secret, early = await gate.attempt(self.get_query_argument(_TOKEN), self.request.remote_ip)
        if secret is not None:
            self._let_in(secret)
            self._go(address)
        elif early:
            self._refuse(early)
        else:
            self._to_login(address)


class _ToLogin(_Door):
    """Send a browser without a secret to the login; one that follows a link of another site reloads first."""

    def get(self) -> None:
        """Redirect to the login, and from there back."""
        here = _local(self.request.uri, "/")
        if self.request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
            self._to_login(here)
        else:
            self._go(here)


class _Login(_Door):
    """Ask for the token or the password."""

    @property
    def _next(self) -> str:
        home = f"{self.application.prefix}/"
        return _local(self.get_argument(_NEXT, home), home)

    def get(self) -> None:
        """Show the form."""
        self._ask(_ASKED[self._gate.secret.what])

    async def post(self) -> None:
        """Accept the right word."""
        secret, early = await self._gate.attempt(self.get_body_argument("word", ""), self.request.remote_ip)
        if secret is not None:
            self._let_in(secret)
            self.redirect(self._seen(self._next))
        elif early:
            self._refuse(early)
        else:
            self.set_status(403)
            self._ask(f"That is not the {self._gate.secret.what}.")

    def _ask(self, statement: str) -> None:
        action, label = self._seen(self.request.path), self._gate.secret.what.capitalize()
        fields = {"statement": statement, "action": action, "next": self._next, "label": label}
        body = _FORM.format(**{name: html.escape(text, quote=True) for name, text in fields.items()})
        self.finish(_PAGE.format(head="", body=body))

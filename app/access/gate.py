"""Decide which requests are answered, by host, origin and secret."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tornado.httputil import HTTPServerRequest

from bnnviz.errors import BnnvizError
from bnnviz_app.access.attempts import EVERY_S, Attempts
from bnnviz_app.access.secret import Password, Secret

#: The name of the gate among the settings of a server and in Panel's cache.
GATE = "gate"
_ANYWHERE = ("0.0.0.0", "::", "")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?)(:[0-9]{1,5})?", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://([^/\s]+)", re.IGNORECASE)
_PLAIN_PATH = re.compile(r"(/[\w.~-]+)*/?")
_REMEDY = "add a name with bnnviz serve --allow-host."
_OF_SESSIONS = {"bokeh-token", "bokeh-session-id"}
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
#: Compares passwords, each for 50 ms: those of many addresses do not hold up the threads that write pages.
_COMPARING = ThreadPoolExecutor(2, thread_name_prefix="bnnviz-password")


@dataclass(frozen=True)
class Gate:
    """The hosts, origins and secrets that a server accepts."""

    hosts: frozenset[str]
    secret: Secret | None = None
    any_address: bool = False
    frames: tuple[str, ...] = ()
    cookie: str = "bnnviz-access"
    students: Secret | None = None
    attempts: Attempts = field(default_factory=Attempts, repr=False)
    #: Signs the ids of students, so that a browser cannot invent one.
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    @property
    def student_cookie(self) -> str:
        """The cookie that the students' link sets; a teacher who opens that link stays a teacher."""
        return f"{self.cookie}-student"

    @property
    def person_cookie(self) -> str:
        """The cookie that identifies a student."""
        return f"{self.cookie}-person"

    def new_person(self) -> str:
        """Return a signed id for a student's browser."""
        name = secrets.token_urlsafe(12)
        return f"{name}.{self._signature(name)}"

    def person(self, request: HTTPServerRequest) -> str:
        """Return the sender of a request: the browser's signed id, or its address without one."""
        given = _cookie(request, self.person_cookie)
        name, _, signature = given.partition(".")
        known = name and hmac.compare_digest(signature.encode(), self._signature(name).encode())
        return given if known else request.remote_ip

    def _signature(self, name: str) -> str:
        return hmac.new(self.key, name.encode(), hashlib.sha256).hexdigest()[:32]

    @classmethod
    def at(
        cls,
        address: str,
        port: int | None,
        secret: Secret | None,
        hosts: Iterable[str] = (),
        frames: Iterable[str] = (),
        students: Secret | None = None,
    ) -> Gate:
        """Return the gate of a server that listens at an address."""
        own = () if port is None else (*_LOOPBACK, *(() if address in _ANYWHERE else (bracketed(address),)))
        names = {f"{host}:{port}" for host in own}
        for host in hosts:
            if not _HOST.fullmatch(host):
                raise BnnvizError(
                    f"{host[:100]!r} is not a host; give a name, and a port if it differs, such as"
                    " lab.example.org:8443.",
                    "allow_host",
                )
            names |= {host} if port is None or re.search(r":\d+$", host) else {host, f"{host}:{port}"}
        for origin in frames:
            match = _ORIGIN.fullmatch(origin)
            if match is None or not _HOST.fullmatch(match[1]):
                raise BnnvizError(
                    f"{origin[:100]!r} is not an origin; give one such as https://course.example.org.", "embed_origin"
                )
        lowered = frozenset(name.lower() for name in names)
        anywhere = port is not None and address in _ANYWHERE
        cookie = f"bnnviz-access-{port or 'socket'}"
        return cls(lowered, secret, anywhere, tuple(frames), cookie=cookie, students=students)

    def refusal(self, request: HTTPServerRequest) -> str | None:
        """Return why a request is refused regardless of its sender, or None."""
        host = request.headers.get("Host", "")
        if not self._takes(host, request):
            return f"This server does not answer as {host[:100]!r}; {_REMEDY}"
        origin = request.headers.get("Origin")
        if origin is not None:
            if not self.takes_origin(origin, request):
                return f"Pages of {origin[:100]!r} have no access; {_REMEDY}"
        elif _from_elsewhere(request):
            return "Pages of other sites have no access to this server."
        return self._odd_arguments(request)

    def takes_origin(self, origin: str, request: HTTPServerRequest) -> bool:
        """Return whether pages of an origin may connect to this server."""
        match = _ORIGIN.fullmatch(origin)
        if match is None:
            return False
        # Another server on this machine has the same name and another port.
        given, default = match[1], _DEFAULT_PORTS[origin.partition(":")[0].lower()]
        bare = given.removesuffix(default)
        return any(self._takes(host, request) for host in {given, bare})

    def lets_in(self, request: HTTPServerRequest) -> bool:
        """Return whether a request shows an accepted secret."""
        return self.secret is None or self._shows(request, self.secret) or self._shows(request, self.students)

    def opened_by(self, word: str) -> Secret | None:
        """Return the secret that matches a token or a password, or None."""
        return next((secret for secret in (self.secret, self.students) if secret and secret.opens(word)), None)

    async def attempt(self, word: str, address: str) -> tuple[Secret | None, float]:
        """Return the secret that a word matches, and by how many seconds the attempt came too early.

        The correct token is always accepted: it is too long for guessing. Passwords are compared at a bounded rate.
        """
        if not isinstance(self.secret, Password):
            secret = self.opened_by(word)
            return secret, 0.0 if secret is not None else self.attempts.take(address)
        early = self.attempts.take(address)
        if early > EVERY_S:
            return None, early
        await asyncio.sleep(early)
        secret = await asyncio.get_running_loop().run_in_executor(_COMPARING, self.opened_by, word)
        if secret is not None:
            self.attempts.give_back(address)
        return secret, early

    def is_student(self, request: HTTPServerRequest) -> bool:
        """Return whether a request comes from a student of a class."""
        return self.students is not None and not self._shows(request, self.secret)

    def cookie_of(self, secret: Secret) -> str:
        """Return the name of the cookie that keeps a secret."""
        return self.student_cookie if secret is self.students else self.cookie

    def _shows(self, request: HTTPServerRequest, secret: Secret | None) -> bool:
        if secret is None:
            return False
        kept = _cookie(request, self.cookie_of(secret))
        return secret.is_shown(kept, request.headers.get("Authorization", ""))

    def _takes(self, host: str, request: HTTPServerRequest) -> bool:
        host = host.lower()
        if not _HOST.fullmatch(host):
            return False
        return host in self.hosts or (self.any_address and host == _reached(request))

    def _odd_arguments(self, request: HTTPServerRequest) -> str | None:
        """Refuse arguments by which a client would choose its session, or the addresses of scripts."""
        if request.arguments.keys() & _OF_SESSIONS or "Bokeh-Session-Id" in request.headers:
            return "The server chooses the session of a page."
        for value in _arguments(request, "bokeh-absolute-url"):
            found = urlsplit(value)
            if not self.takes_origin(f"{found.scheme}://{found.netloc}", request):
                return "The argument bokeh-absolute-url names another server."
        for value in _arguments(request, "bokeh-app-path"):
            if not _PLAIN_PATH.fullmatch(value):
                return "The argument bokeh-app-path is not a path."
        return None


def bracketed(address: str) -> str:
    """Return an address in the form of a URL."""
    try:
        return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    except ValueError:  # a name
        return address


def _cookie(request: HTTPServerRequest, name: str) -> str:
    kept = request.cookies.get(name)
    return "" if kept is None else kept.value


def _arguments(request: HTTPServerRequest, name: str) -> list[str]:
    return [value.decode(errors="replace") for value in request.query_arguments.get(name, [])]


def _from_elsewhere(request: HTTPServerRequest) -> bool:
    """Return whether a page of another site requests a resource; following a link is allowed."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    return site not in ("none", "same-origin") and request.headers.get("Sec-Fetch-Mode") != "navigate"


def _reached(request: HTTPServerRequest) -> str | None:
    """Return the local address and port of a connection, in the form of a URL."""
    connection: Any = request.connection
    try:
        address, port = connection.stream.socket.getsockname()[:2]
    except (AttributeError, OSError, ValueError):  # a socket of another kind, or one that is closed
        return None
    return f"{bracketed(address.removeprefix('::ffff:'))}:{port}"

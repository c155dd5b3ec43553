"""Accept connections within limits: those that have not shown a secret cannot use up the files of the process."""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream

MOST_STRANGERS = 128  # connections of an address that have shown no secret
GRACE_S = 5.0  # for which a connection is kept above that: a class behind one address arrives at once
MOST_FILES = 65_536
REQUEST_S = 10.0  # until a connection has sent its next request
ANSWER_S = 300.0  # until a browser has answered a ping: its upload may be slow, and what it does not read is kept
PAUSE_S = 1.0  # after the process has run out of files
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

log = logging.getLogger(__name__)


class Strangers:
    """Track connections without a secret by address; above the limit, a new one replaces old ones."""

    def __init__(self) -> None:
        self._of: dict[str, dict[IOStream, float]] = {}  # when each was accepted, the oldest first
        self._from: dict[IOStream, str] = {}

    def add(self, stream: IOStream, address: str) -> None:
        """Count a connection, and close old ones of its address above the limit."""
        self._from[stream] = address
        same, now = self._of.setdefault(address, {}), time.monotonic()
        same[stream] = now
        while len(same) > MOST_STRANGERS and now - same[oldest := next(iter(same))] > GRACE_S:
            self._close(oldest)

    def discard(self, stream: IOStream) -> None:
        """Count a connection no longer: it has shown a secret or is closed."""
        address = self._from.pop(stream, None)
        if address is not None:
            del self._of[address][stream]
            if not self._of[address]:
                del self._of[address]

    def close_half(self) -> None:
        """Close the older half of the connections of each address."""
        for stream in [stream for same in self._of.values() for stream in list(same)[: (len(same) + 1) // 2]]:
            self._close(stream)

    def _close(self, stream: IOStream) -> None:
        self.discard(stream)
        stream.close()


STRANGERS = Strangers()


class BoundedServer(HTTPServer):
    """Serve like tornado's server, and bound connections of strangers."""

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        """Close a connection that sends no request, or no complete one, for some seconds."""
        super().initialize(*args, **{"idle_connection_timeout": REQUEST_S, "body_timeout": REQUEST_S} | kwargs)

    def add_sockets(self, sockets: Iterable[socket.socket]) -> None:
        """Listen at sockets that wait when the process has no file left."""
        super().add_sockets([_PatientSocket(fileno=each.detach()) for each in sockets])

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        """Count a connection as a stranger's before it is read."""
        STRANGERS.add(stream, network(address[0]) if address else "")
        super().handle_stream(stream, address)

    def on_close(self, server_conn: Any) -> None:
        """Count a closed connection no longer."""
        STRANGERS.discard(server_conn.stream)
        super().on_close(server_conn)


class _PatientSocket(socket.socket):
    """Accept nothing for a while after the process has run out of files, with one line in the log."""

    def accept(self) -> tuple[socket.socket, Any]:
        try:
            return super().accept()
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            loop = IOLoop.current()
            loop.update_handler(self, 0)
            loop.call_later(PAUSE_S, self._again)
            log.warning("No connection is accepted for %g s: %s.", PAUSE_S, error.strerror)
            STRANGERS.close_half()
            raise BlockingIOError from error

    def _again(self) -> None:
        with suppress(KeyError, ValueError):  # the server has stopped
            IOLoop.current().update_handler(self, IOLoop.READ)


def network(address: str) -> str:
    """Return the unit of the limits: this machine, an IPv4 address, or the network of an IPv6 address."""
    with suppress(ValueError):
        found = ipaddress.ip_address(address.partition("%")[0])
        found = getattr(found, "ipv4_mapped", None) or found
        if found.is_loopback:  # a client may choose any address of 127.0.0.0/8
            return "127.0.0.1"
        return str(found if found.version == 4 else ipaddress.ip_network((found, 64), strict=False))
    return address


def bound() -> None:
    """Limit the connections of this process's servers, and raise its soft limit of open files."""
    HTTPServer.configure(BoundedServer)
    with suppress(ImportError, OSError, ValueError):  # Windows, or a limit that cannot be raised
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))

"""Let no name but this machine's own be resolved: what a test needs is in the repository.

The tests put this folder into PYTHONPATH, so that Python runs this file at the start of each process that they start.
"""

from __future__ import annotations

import ipaddress
import socket

_LOCAL = {None, "", "localhost", "localhost.localdomain", socket.gethostname()}


def _is_local(host: str | bytes | None) -> bool:
    name = host.decode(errors="replace") if isinstance(host, bytes) else host
    if name in _LOCAL:
        return True
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True  # an address is no name


def _only_local(resolve):
    def resolved(host, *given, **options):
        if not _is_local(host):
            raise socket.gaierror(socket.EAI_NONAME, f"the tests resolve no name of another machine: {host!r}")
        return resolve(host, *given, **options)

    return resolved


for _name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
    setattr(socket, _name, _only_local(getattr(socket, _name)))

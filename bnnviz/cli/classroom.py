"""Prepare ``bnnviz serve --class``: the address that a class reaches, two links, and a QR code of one."""

from __future__ import annotations

import socket
import sys

from bnnviz import optional
from bnnviz.errors import BnnvizError


def network_address() -> str:
    """Return the address of this machine's network card."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of documentation (RFC 5737); nothing is sent
            found = probe.getsockname()[0]
        except OSError:
            found = ""
    if not found or found.startswith("127."):
        raise BnnvizError("No network address was found. Specify one by --address.")
    return found


def show(teacher: str, student: str) -> None:
    """Print both links, and a QR code of the students'."""
    print(f"Teacher: {teacher}\nStudents: {student}", file=sys.stderr, flush=True)
    segno = optional.require("segno", "A class needs")
    try:
        "▀▄█".encode(sys.stderr.encoding or "ascii")
    except UnicodeEncodeError:
        return  # the terminal cannot show the code
    segno.make(student, error="l", micro=False).terminal(out=sys.stderr, border=2, compact=True)
    sys.stderr.flush()

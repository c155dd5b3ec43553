"""Prepare ``bnnviz serve --class``: the address that a class reaches, two links, a picture of one, and what fits."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from dataclasses import dataclass

from bnnviz import optional
from bnnviz.errors import BnnvizError

FRAMES = 8  # a second, of a student who plays
PLACES_VARIABLE = "BNNVIZ_PLACES"  # the workers read it (bnnviz.engine.cluster.places)
MOST_PLACES, FEWEST_PLACES = 40, 4
MOST_FOLLOWERS = 120
# Of the server's one thread, which has pages to open beside: with more, what comes at once (turns, slow views of many
# pages) holds all of them up for longer than .3 s.
_SHARE = 0.6
# What a frame of one's own run costs the server's thread, in units of `unit_s`: 11 ms where the unit was 0.45 ms; and
# what one costs that is passed on to a follower: a write of some 50 kB.
_OWN_UNITS, _FOLLOWED_UNITS = 25.0, 0.45
_UNIT = {f"column {number}": [0.5 * number] * 60 for number in range(40)}


@dataclass(frozen=True)
class Capacity:
    """Say how many a machine can hold."""

    places: int
    followers: int

    @property
    def sentence(self) -> str:
        """What the server says of it."""
        return (
            f"{self.places} students can play at {FRAMES} frames a second; {self.followers} can follow the teacher's"
            " run. What limits it is the one thread that writes the pages."
        )


def unit_s(rounds: int = 300) -> float:
    """Return the seconds of this machine for a piece of work like that of a frame: the median of some, when warm."""
    took = []
    for _ in range(rounds):
        begun = time.perf_counter()
        json.dumps(_UNIT)
        took.append(time.perf_counter() - begun)
    return sorted(took[rounds // 3 :])[rounds // 3]


def measured() -> Capacity:
    """Return what this machine can hold, measured in a moment."""
    unit = unit_s()
    places = int(_SHARE / (FRAMES * _OWN_UNITS * unit))
    followers = int(_SHARE / 2 / (FRAMES * _FOLLOWED_UNITS * unit))
    return Capacity(min(max(places, FEWEST_PLACES), MOST_PLACES), min(max(followers, MOST_PLACES), MOST_FOLLOWERS))


def network_address() -> str:
    """Return the address of this machine's network card."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of documentation (RFC 5737); nothing is sent
            found = probe.getsockname()[0]
        except OSError:
            found = ""
    if not found or found.startswith("127."):
        raise BnnvizError("This machine has no network address that a class could reach; give it by --address.")
    return found


def hold(capacity: Capacity) -> None:
    """Have the workers that are started from now on advance so many runs at a time."""
    os.environ.setdefault(PLACES_VARIABLE, str(capacity.places))


def show(teacher: str, student: str, capacity: Capacity) -> None:
    """Print both links, a QR code of the students', and what the machine can hold."""
    print(f"Teacher: {teacher}\nStudents: {student}", file=sys.stderr)
    picture(student)
    print(capacity.sentence, file=sys.stderr, flush=True)


def picture(link: str) -> None:
    """Print a QR code, where the terminal can show one."""
    segno = optional.require("segno", "A class needs")
    try:
        "▀▄█".encode(sys.stderr.encoding or "ascii")
    except UnicodeEncodeError:
        return
    segno.make(link, error="l", micro=False).terminal(out=sys.stderr, border=2, compact=True)

"""Give the places of a worker to runs that advance, and have the others wait for one in a queue.

A place belongs to who plays: a run that rests, and that nobody has touched for a while, keeps its state and gives its
place back. It gets one again when it is asked to move, at once where one is free. Where more play than there are
places, they take turns.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from bnnviz.engine.cluster.slot import MOVES, Slot

CAPACITY = 8  # live runs that a worker advances at a time, unless BNNVIZ_PLACES says another; more wait for their turn
REST_S = 30.0  # a run that rests keeps its place for so long
TURN_S = 30.0  # a run that plays keeps its place for so long where others wait
MOST_HELD = 8  # for each place: runs that are built, whether they rest or not; the memory is bounded


def usual() -> int:
    """Return the number of places of a worker of this process."""
    return int(os.environ.get("BNNVIZ_PLACES", CAPACITY))


class Places:
    """Decide which runs of a worker may advance."""

    def __init__(self, capacity: int = CAPACITY, rest_s: float = REST_S, turn_s: float = TURN_S) -> None:
        self.capacity, self.rest_s, self.turn_s = capacity, rest_s, turn_s

    def has_place(self, slot: Slot, now: float) -> bool:
        """Tell whether a run takes a place: it advances, or somebody has touched it lately."""
        if slot.state == "starting":
            return True
        if slot.state != "running" or slot.held_back or slot.run.finished:
            return False
        return slot.going or now - slot.touched < self.rest_s

    def lets_on(self, slot: Slot, slots: Sequence[Slot], now: float) -> bool:
        """Tell whether a run gets a place now; if not, its message says how many are before it."""
        full = self._is_full(slots)
        if full and slot.state == "queued":
            held = MOST_HELD * self.capacity
            slot.message = f"This worker already holds {held} live runs; this one starts when one of them ends."
            return False
        taken = sum(self.has_place(other, now) for other in slots if other is not slot)
        before = sum(_waits(other, full) and other.asked < slot.asked for other in slots)
        if before < self.capacity - taken:
            return True
        then = "starts" if slot.state == "queued" else "goes on"
        slot.message = (
            f"This worker already advances {taken} live runs; this one is number {before + 1} in the queue and {then}"
            f" in its turn, each of which is {self.turn_s:g} s."
        )
        return False

    def take_turns(self, slots: Sequence[Slot], now: float) -> None:
        """Have the run that has played longest wait in its turn, where it has played for long and others wait."""
        full = self._is_full(slots)
        if not any(_waits(slot, full) for slot in slots):
            return
        if sum(self.has_place(slot, now) for slot in slots) < self.capacity:
            return
        long = [slot for slot in slots if slot.plays and now - slot.since >= self.turn_s]
        if long:
            slot = min(long, key=lambda slot: slot.since)
            slot.playing = False
            slot.hold_back("play", {})
            slot.touch()

    def _is_full(self, slots: Sequence[Slot]) -> bool:
        """Tell whether there is no room for another run, whoever plays."""
        return sum(slot.run is not None for slot in slots) >= MOST_HELD * self.capacity

    def hold_back(self, slot: Slot, name: str, args: dict[str, Any], slots: Sequence[Slot]) -> bool:
        """Keep a command that needs a place until there is one; return whether it has to wait."""
        now = time.monotonic()
        if name == "pause" and slot.held_back:
            slot.held_back.clear()
            slot.message = ""
        if name not in MOVES or slot.run.finished:
            return False
        if slot.held_back or not self.has_place(slot, now):
            slot.hold_back(name, args)
            if len(slot.held_back) > 1 or not self.lets_on(slot, slots, now):
                return True
            slot.held_back.clear()
        slot.touched = now
        return False

    def let_on(self, slot: Slot, slots: Sequence[Slot]) -> None:
        """Have a run do what it has waited with, where there is a place now."""
        now = time.monotonic()
        if slot.held_back and self.lets_on(slot, slots, now):
            slot.message, slot.touched = "", now
            slot.commands.extendleft((name, args, None) for name, args in reversed(slot.held_back))
            slot.held_back.clear()


def _waits(slot: Slot, full: bool) -> bool:
    """Tell whether a run waits for a place that somebody can give it."""
    return slot.waits and not (full and slot.state == "queued")

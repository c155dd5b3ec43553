"""Limit how often an address may try a word that is not the secret."""

from __future__ import annotations

import time

from bnnviz_app.access.connections import network

MOST_AT_ONCE = 5  # wrong words of an address, before it has to wait
EVERY_S = 2.0  # between two further ones
_MOST_ADDRESSES = 10_000


class Attempts:
    """Count failed attempts by address; waiting restores attempts one by one."""

    def __init__(self) -> None:
        self._whole_at: dict[str, float] = {}  # when an address has all of its attempts again

    def take(self, address: str) -> float:
        """Count an attempt, and return how many seconds it is early; one that is too early is not counted."""
        address, now = network(address), time.monotonic()
        if len(self._whole_at) > _MOST_ADDRESSES:
            self._whole_at = {each: at for each, at in self._whole_at.items() if at > now}
        whole_at = max(now, self._whole_at.get(address, now))
        early = max(0.0, whole_at - now - (MOST_AT_ONCE - 1) * EVERY_S)
        if early <= EVERY_S:
            self._whole_at[address] = whole_at + EVERY_S
        return early

    def give_back(self, address: str) -> None:
        """Take back an attempt that was right."""
        self._whole_at[network(address)] -= EVERY_S

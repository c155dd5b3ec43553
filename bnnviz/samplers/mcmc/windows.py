"""Divide a warm-up into windows: short ones at first, then each twice as long as the one before."""

from __future__ import annotations

import functools
from typing import NamedTuple

#: Number of moves below which only the initial step size is found.
FEWEST = 20
_FIRST, _SLOW, _LAST = 75, 25, 50  # as in Stan: before the metric's first window, that window, and after the last
_SHARES = 0.15, 0.1  # of the first and the last, for short warm-ups
_EARLY = 10  # moves before the metric is first learned
_LEAST = 10  # minimum moves of the last window, in which the step size settles


class WarmupWindows(NamedTuple):
    """The windows of a warm-up; the metric is learned at the end of each but the last."""

    lengths: tuple[int, ...]  # tuple of int: Moves of each
    early: int  # Number of windows in the first phase, during convergence


@functools.cache
def windows(moves: int) -> WarmupWindows:
    """Return the windows of a warm-up of ``moves`` moves; very short ones have a single window."""
    if moves < FEWEST:
        return WarmupWindows((moves,), 0)
    first, last = _FIRST, _LAST
    if first + _SLOW + last > moves:
        first, last = (int(share * moves) for share in _SHARES)
        last = max(last, min(_LEAST, moves // 2))
        early, slow = _doubling(first, min(_EARLY, first)), (moves - first - last,)
    else:
        early, slow = _doubling(first, _EARLY), _doubling(moves - first - last, _SLOW)
    return WarmupWindows((*early, *slow, last), len(early))


def _doubling(moves: int, first: int) -> tuple[int, ...]:
    """Return window lengths with sum ``moves``, each twice the previous one; the last takes the rest."""
    lengths, length = [], first
    while moves:
        length = moves if moves < 3 * length else length
        lengths.append(length)
        moves, length = moves - length, 2 * length
    return tuple(lengths)

"""Divide a warm-up into windows: short ones at first, then each twice as long as the one before."""

from __future__ import annotations

import functools
from typing import NamedTuple

#: Moves below which only the first step size is found.
FEWEST = 20
_FIRST, _SLOW, _LAST = 75, 25, 50  # of Stan: before the first window of the metric, that window, and after the last
_SHARES = 0.15, 0.1  # of the first and the last where the moves are too few for these
_EARLY = 10  # moves until the metric is learned for the first time
_LEAST = 10  # moves of the last window, which the step size settles in


class WarmupWindows(NamedTuple):
    """The windows of a warm-up; the metric is learned at the end of each but the last."""

    lengths: tuple[int, ...]  # tuple of int: Moves of each
    early: int  # How many of them are the first phase, in which chains are still on their way


@functools.cache
def windows(moves: int) -> WarmupWindows:
    """Return the windows of a warm-up of so many moves; of very few there is one."""
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
    """Return lengths of so many moves together, each twice the one before; the last takes what is left."""
    lengths, length = [], first
    while moves:
        length = moves if moves < 3 * length else length
        lengths.append(length)
        moves, length = moves - length, 2 * length
    return tuple(lengths)

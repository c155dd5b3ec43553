"""Lay out the views of a run on the stage: the grid of visible views, and pairs that share a position."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

# Columns with a prediction next to the trajectory, and with the trajectory alone.
_BOTH = "minmax(0, 11fr) minmax(0, 6fr) minmax(0, 9fr)"
_ALONE = "minmax(0, 13fr) minmax(0, 6fr) minmax(0, 9fr)"
# Columns of a map and its spread.
_MAPS = "minmax(0, 10fr) minmax(0, 8fr) minmax(0, 8fr)"
_MAP, _FLAT = "minmax(0, 1.3fr)", "minmax(0, 1.05fr)"
_TALL, _LOW = "minmax(0, 1.2fr)", "minmax(0, 1fr)"
_OF_TABLE = "minmax(0, 1.3fr)"  # the lowest of three rows, in which the table of figures has eight of them
WIDE = "path"
BESIDE = ("envelope", "prediction", "density")
FIGURED = frozenset(BESIDE[1:])  # figures of the draws, next to the trajectory
BELOW = ("trace", "acf", "table")
#: Cards of populations take the places of those of chains: no run has both.
PLACES = {"population": WIDE, "gauge": BELOW[0], "history": BELOW[1]}


class CardPair(NamedTuple):
    """Two parts of a frame that share a place, the labels of their buttons, and the parts that move with them.

    A part may be the front of several pairs.
    """

    front: str
    back: str
    to_front: str
    to_back: str
    along: tuple[str, ...] = ()


CARD_PAIRS = (
    # The coordinate selected in the correlations is shown next to them.
    CardPair("path", "weights", "Trajectory", "Weights", ("acf",)),
    CardPair("path", "graph", "Trajectory", "Network", ("acf",)),
    CardPair("acf", "marginal", "ACF", "Density"),
    CardPair("envelope", "ratios", "Segment", "Ratios"),
)
BACKS = frozenset(pair.back for pair in CARD_PAIRS)


def grid(shown: Set[str]) -> str:
    """Return the CSS grid template of these cards; the caption always has its line."""
    beside = [part for part in BESIDE if part in shown]
    below = [part for part in BELOW if part in shown]
    rows = [("caption caption caption", "auto")]
    if WIDE not in shown:
        rows += [(_pair(part, shown, 3), _TALL) for part in beside]
        rows += [(_spread(below, 3), _LOW)] if below else []
    elif FIGURED & shown or not below:
        rows += [(f"{WIDE} {_pair(part, shown, 2)}", _height(part, shown)) for part in beside or [WIDE]]
        rows += [(_spread(below, 3), _LOW)] if below else []
    else:
        stack = [f"{part} {part}" for part in beside] + ([f"{below[0]} {below[0]}"] if len(below) != 2 else [])
        rest = below[1:] if len(below) != 2 else below
        stack += [_spread(rest, 2)] if rest else []
        rows += [(f"{WIDE} {line}", _TALL if i == 0 else _LOW) for i, line in enumerate(stack)]
    if len(rows) > 3 and "table" in rows[-1][0].split():
        rows[-1] = (rows[-1][0], _OF_TABLE)
    lines = "\n".join(f'"{names}" {height}' for names, height in rows)
    columns = _MAPS if "spread" in shown else _BOTH if FIGURED & shown else _ALONE
    return f"\n{lines} / {columns}\n"


def _height(part: str, shown: Set[str]) -> str:
    """Return the height of a row; maps are higher than the envelope above them."""
    if "spread" not in shown:
        return _TALL
    return _MAP if part == "prediction" else _FLAT


def _pair(part: str, shown: Set[str], columns: int) -> str:
    """Fill the given number of columns with a part, and a map with its spread."""
    beside = [part, "spread"] if part == "prediction" and "spread" in shown else [part]
    return " ".join(beside[:1] * (columns - len(beside) + 1) + beside[1:])


def _spread(parts: list[str], columns: int) -> str:
    """Fill the given number of columns with these parts; the last one takes the remaining width."""
    return " ".join(parts + parts[-1:] * (columns - len(parts)))

"""Describe a figure as marks on two axes, independent of the renderer.

A figure returns a `Drawing`: marks, axes, and the words around them. Two renderers draw it: a canvas in the browser
(`bnnviz.figures.live`) and HoloViews (`bnnviz.figures.still`). Colours are roles of the palette, so that a drawing is
the same on a light and on a dark page. A mark without points is drawn nowhere, but the canvas keeps its legend entry.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from bnnviz.figures.palette import Kind
from bnnviz.figures.ranges import Ends, extent, joined

#: Dashes of series, since colour alone does not distinguish lines for every reader.
DASHES = ((), (8, 4), (2, 3), (10, 3, 2, 3), (5, 2), (14, 4), (1, 2), (6, 3, 1, 3))
SERIES = len(DASHES)
FUTURES = 4  # of a run, at most
_SHAPES = ("circle", "square", "triangle", "diamond")


def chain(number: int) -> str:
    """Return the colour of a chain or of another series; from nine on colours repeat."""
    return f"chain {number % SERIES}"


def future(letter: str) -> int:
    """Return the number of a future of a run among the colours: A has the first one."""
    return ord(letter) - ord("A")


def dash_of(number: int) -> tuple[int, ...]:
    """Return the dashes of a series."""
    return DASHES[number % SERIES]


def series_kind(number: int) -> Kind:
    """Return the mark of a series."""
    number %= SERIES
    return Kind("", _SHAPES[number % 4], chain(number), filled=(number % 2 == 0) == (number < 4))


@dataclass(frozen=True, eq=False, kw_only=True)
class Mark:
    """The base class of marks: a colour, and an entry in the legend; ``still`` ones seldom change."""

    columns: ClassVar[tuple[str, ...]] = ()
    colour: str = "ink"
    opacity: float = 1.0
    label: str = ""
    hint: str = ""
    still: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not np.size(getattr(self, self.columns[0]))

    def style(self) -> tuple[Any, ...]:
        """Return everything but the data."""
        return (type(self), *_GETTERS[type(self)](self), *self.column_names)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns that are packed: of those that may be missing, the given ones."""
        return [name for name in self.columns if getattr(self, name) is not None]

    def packed(self) -> list[np.ndarray]:
        """Return the data as columns of one length."""
        return [np.asarray(getattr(self, name), dtype=np.float32).ravel() for name in self.column_names]


@dataclass(frozen=True, eq=False)
class Line(Mark):
    """A line through points; NaN interrupts it. The older part of a ``fading`` line, which comes first, is paler."""

    columns = ("x", "y")
    x: Any
    y: Any
    width: float = 2.0
    dash: tuple[float, ...] = ()
    fading: bool = False


@dataclass(frozen=True, eq=False)
class Band(Mark):
    """The area between two curves."""

    columns = ("x", "low", "high")
    x: Any
    low: Any
    high: Any
    opacity: float = field(default=0.25, kw_only=True)


@dataclass(frozen=True, eq=False)
class Bars(Mark):
    """Bars from zero; ``size`` is their width in units of the axis."""

    columns = ("x", "y")
    x: Any
    y: Any
    size: float = 1.0


@dataclass(frozen=True, eq=False)
class Points(Mark):
    """Marks at points, as large as ``size`` pixels."""

    columns = ("x", "y", "alpha", "scale", "id_high", "id_low")
    x: Any
    y: Any
    kind: Kind = Kind("", "circle", "blue", True)
    size: float = 8.0
    width: float = 1.6
    fill: str = ""
    alpha: Any = None  # the opacity of each point
    scale: Any = None  # the relative size of each point
    ids: Any = None  # of points: the step of an event, or the draw in linked figures
    editable: bool = False  # whether they may be moved
    colour: str = field(default="", kw_only=True)

    @property
    def role(self) -> str:
        """The colour of the edge."""
        return self.colour or self.kind.role

    @property
    def face(self) -> str:
        """The colour inside; "" for none."""
        return self.fill or (self.role if self.kind.filled else "")

    @property
    def id_high(self) -> Any:
        """The first part of the ids: a float32 holds whole numbers up to 2^24."""
        return None if self.ids is None else np.asarray(self.ids) // PAGE

    @property
    def id_low(self) -> Any:
        """The rest of the ids."""
        return None if self.ids is None else np.asarray(self.ids) % PAGE


PAGE = 4096
#: The number of a draw in its chain is less than this; `ids` of draws are chain * CHAIN + draw.
CHAIN = 1_000_000_000


@dataclass(frozen=True, eq=False)
class Segments(Mark):
    """Straight lines from points; ``widths`` are in pixels, or relative to ``width`` if they are an array."""

    columns = ("x", "y", "dx", "dy", "widths")
    x: Any
    y: Any
    dx: Any
    dy: Any
    width: float = 1.2
    widths: Any = None
    dash: tuple[float, ...] = ()
    ids: Any = None


@dataclass(frozen=True, eq=False)
class Arrows(Mark):
    """Arrows from points along a direction, ``size`` pixels long; of size 0 as long as the direction."""

    columns = ("x", "y", "dx", "dy")
    x: Any
    y: Any
    dx: Any
    dy: Any
    size: float = 0.0
    width: float = 2.2


@dataclass(frozen=True, eq=False)
class Rule(Mark):
    """A straight line across the whole figure, at a place of one axis, with words at its end."""

    columns = ("at",)
    at: Any
    axis: str = "y"
    width: float = 1.0
    dash: tuple[float, ...] = ()
    text: str = ""


@dataclass(frozen=True, eq=False)
class Text(Mark):
    """Words at points."""

    columns = ("x", "y")
    x: Any
    y: Any
    texts: tuple[str, ...] = ()
    size: float = 12.0
    colours: tuple[str, ...] = ()  # of each, instead of one role


@dataclass(frozen=True, eq=False)
class Image(Mark):
    """Values (rows, columns) on a grid, the lowest row first, in the colours of a ramp of roles."""

    columns = ("values",)
    values: Any
    box: tuple[float, float, float, float]  # centres of the first and last column and row
    across: int
    ramp: tuple[str, ...]
    low: float = 0.0
    high: float = 1.0
    blended: bool = True
    ends: tuple[str, str] = ("", "")


@dataclass(frozen=True, eq=False)
class Area(Mark):
    """Regions without an edge: each polygon is its outer ring and the rings of its holes, (points, 2) each."""

    columns = ("x", "y")
    polygons: Sequence[Sequence[np.ndarray]] = ()

    @cached_property
    def _rings(self) -> np.ndarray:
        """All rings as one line with gaps; where rings overlap, there is a hole."""
        return joined(ring for polygon in self.polygons for ring in polygon)

    @property
    def x(self) -> np.ndarray:
        """The horizontal coordinates of all rings."""
        return self._rings[:, 0]

    @property
    def y(self) -> np.ndarray:
        """The vertical coordinates of all rings."""
        return self._rings[:, 1]


_STYLES = {
    mark: tuple(f.name for f in fields(mark) if f.name not in {*mark.columns, "ids", "polygons", "still", "hint"})
    for mark in Mark.__subclasses__()
}
_GETTERS = {mark: attrgetter(*names) for mark, names in _STYLES.items()}


def style_of(mark: Mark) -> dict[str, Any]:
    """Return the style of a mark by name."""
    return {name: getattr(mark, name) for name in _STYLES[type(mark)]}


@dataclass(frozen=True, eq=False)
class Axis:
    """Describe an axis, and how a live figure moves it."""

    label: str = ""
    ends: Ends = None  # the range to include; None changes nothing
    #: A live axis grows in round steps to include its ends ("grow"), takes them exactly ("exact"), scrolls when old
    #: points leave ("scroll"), also shrinks after some time ("settle"), or has content of one moment ("segment").
    follow: str = "grow"
    key: Hashable = None  # if it changes, the axis starts again; with "segment" the number of the visible segment
    ticks: Mapping[float, str] | None = None
    count: int = 5
    whole: bool = False  # ticks at whole numbers only
    turned: bool = False  # words of the ticks
    grid: bool = True
    shown: bool = True
    room_at: float = float("nan")  # a place where a large mark needs room
    memory: int = 20  # frames that "settle" looks back


@dataclass(frozen=True, eq=False)
class Drawing:
    """The content of a figure at one instant."""

    marks: Sequence[Mark] = ()  # in the order of drawing
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    title: str = ""
    note: str = ""  # a few figures for the heading
    words: str = ""  # for screen readers; by default the note
    equal: bool = False  # whether a unit has one length on both axes
    size: tuple[int, int] = (520, 300)  # pixels of a figure of a finished run, without its legend


WIDE, SQUARE = (520, 300), (400, 350)


@dataclass(frozen=True, eq=False)
class Panels:
    """Drawings in rows, ``across`` in each; None is an empty place. With ``one_legend`` only the first has one."""

    drawings: Sequence[Drawing | None]
    across: int = 1
    one_legend: bool = False


def curve(x: Any, y: Any, number: int, label: str, mark: Kind | None = None, size: float = 7.0) -> list[Mark]:
    """Return a series: its line, and a mark at each point, since the first point alone makes no line."""
    look = {"colour": chain(number), "label": label}
    return [Line(x, y, 2.2, dash_of(number), **look), Points(x, y, mark or series_kind(number), size, **look)]


def diagonal(label: str) -> Line:
    """Return the line on which two shares are equal."""
    return Line([0, 1], [0, 1], 1.2, (4, 4), colour="muted", label=label)


def scores(entries: Sequence[Mapping[str, Any]], score: str, label: str) -> str:
    """Write a score of each series that has one, with their names if there are several."""
    known = [each for each in entries if each.get(score) is not None and np.isfinite(each[score])]
    texts = (f"{each['name']} {each[score]:.3f}" if len(entries) > 1 else f"{each[score]:.3f}" for each in known)
    return f"{label} {'; '.join(texts)}" if known else ""


def whiskers(x: Any, low: Any, high: Any, width: float = 1.2, **look: Any) -> Segments:
    """Return vertical lines from low to high values."""
    low = np.asarray(low, dtype=float)
    return Segments(x, low, np.zeros(low.shape), np.asarray(high, dtype=float) - low, width, **look)


def reach(marks: Sequence[Mark]) -> tuple[Ends, Ends]:
    """Return the ranges of the points of lines and of points."""
    drawn = [mark for mark in marks if isinstance(mark, Line | Points)]
    return extent(*(mark.x for mark in drawn)), extent(*(mark.y for mark in drawn))

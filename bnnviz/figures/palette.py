"""Define the colours, and the look of each kind of event."""

from __future__ import annotations

from dataclasses import dataclass

FONT = "Roboto, Inter, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
LABEL_SIZE, TICK_SIZE = 13, 12  # pixels
POWER = 7  # of ten, from which on numbers at axes have an exponent


@dataclass(frozen=True)
class Palette:
    """Colours by role: blue is the target (rate, prediction), orange the present, red the observations.

    A test checks contrasts against `surface` (text 4.5:1, marks 3:1) and distances for colour-blind readers.
    """

    surface: str
    ink: str
    muted: str
    grid: str
    axis: str
    blue: str
    pale: str
    orange: str
    red: str
    purple: str
    magenta: str
    green: str
    grey: str
    contour: tuple[str, ...]
    contour_line: str
    chains: tuple[str, ...]

    def of(self, role: str) -> str:
        """Return the colour of a role, of a series ("chain 3") or contour, or of words over a cell ("over 0.3")."""
        name, _, number = role.partition(" ")
        if name != "over":
            return getattr(self, "chains" if name == "chain" else name)[int(number)] if number else getattr(self, role)
        # Black or white, whichever has the larger contrast (WCAG 2) to a cell of this share, from the grid's to blue.
        low, high = ([int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (self.grid, self.blue))
        mixed = [a + (b - a) * float(number) for a, b in zip(low, high, strict=True)]
        linear = (c / 3294.6 if c <= 10.314 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in mixed)
        cell = sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
        return "#ffffff" if 1.05 / (cell + 0.05) > (cell + 0.05) / 0.05 else "#000000"


#: On a light page and on a dark one.
_COLOURS = {
    "surface": ("#ffffff", "#1b2530"),
    "ink": ("#1f3347", "#e4ebf2"),
    "muted": ("#55677a", "#a9b7c5"),
    "grid": ("#e6ecf1", "#2a3744"),
    "axis": ("#93a1ae", "#6d7d8d"),
    "blue": ("#2b6cb0", "#66aaf0"),
    "pale": ("#6f9acb", "#5b8fc6"),
    "orange": ("#d97400", "#f5a43a"),
    "red": ("#c0282d", "#f66f67"),
    "purple": ("#7a3db8", "#c59bf5"),
    "magenta": ("#d3155f", "#ff6ba6"),
    "green": ("#1d7427", "#62c474"),
    "grey": ("#6a7581", "#a1aebc"),
    "contour_line": ("#a3bdd8", "#46688a"),
    "contour": (
        ("#f2f6fa", "#e3edf5", "#d0e0ee", "#b9d0e5"),
        ("#1f2d3b", "#243749", "#2a4359", "#32526d"),
    ),
    "chains": (
        ("#2b6cb0", "#219f7a", "#4d3660", "#c2337f", "#7a5c2e", "#6e8cdb", "#4a4b4c", "#d97400"),
        ("#66aaf0", "#62f9bf", "#eed7ff", "#ff5c91", "#cdb07a", "#00a28b", "#a6aec9", "#f5a43a"),
    ),
}
LIGHT, DARK = (Palette(**{role: pair[page] for role, pair in _COLOURS.items()}) for page in (0, 1))


@dataclass(frozen=True)
class Kind:
    """Define the name and the look of one kind of event."""

    label: str
    marker: str
    role: str
    filled: bool
    size: float = 1.0


KINDS: dict[int, Kind] = {
    0: Kind("probe", "dot", "grey", True),
    1: Kind("rejected", "x", "grey", False),
    2: Kind("bounce", "circle", "green", True),
    3: Kind("refresh", "square", "purple", False),
    4: Kind("horizon", "dash", "pale", False),
    5: Kind("violation", "triangle", "magenta", True, 1.25),
}
REJECTED, BOUNCE, REFRESH, VIOLATION = 1, 2, 3, 5
ACCEPTED = Kind("accepted", "circle", "green", True)
UNIFORM = Kind("u × envelope", "diamond", "ink", False)
NOW = Kind("now", "circle", "orange", False)
KNOWN = Kind("not picked", "circle", "green", False)
VISITED = Kind("leapfrog step", "circle", "magenta", True, 0.6)
PICKED = Kind("picked", "diamond", "green", True, 0.9)
DOT = Kind("", "dot", "ink", True)
EVENTS = (BOUNCE, VIOLATION, REFRESH)

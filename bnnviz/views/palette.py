"""Choose colours, and say in one place what each kind of event looks like."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """Hold colours by role. Text keeps 4.5:1 and marks 3:1 against `surface`, the card that a view lies on.

    Blue is what the target says (rate, prediction), orange is now, red is what was seen. Colours that mean
    different things in one figure stay apart for readers who do not see red, green or blue: a test holds how far.
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
        ("#2b6cb0", "#d97400", "#219f7a", "#4d3660", "#c2337f", "#7a5c2e", "#6e8cdb", "#4a4b4c"),
        ("#66aaf0", "#f5a43a", "#62f9bf", "#eed7ff", "#ff5c91", "#cdb07a", "#00a28b", "#a6aec9"),
    ),
}
LIGHT, DARK = (Palette(**{role: pair[page] for role, pair in _COLOURS.items()}) for page in (0, 1))


def in_light() -> dict[str, str]:
    """Return the colours of the light palette by those of the dark one."""
    found: dict[str, str] = {}
    for dark, light in ((getattr(DARK, role), getattr(LIGHT, role)) for role in _COLOURS):
        pairs = zip(dark, light, strict=True) if isinstance(dark, tuple) else [(dark, light)]
        found.update(pairs)
    return found


@dataclass(frozen=True)
class Kind:
    """Say what one kind of event is called and how it is drawn, everywhere."""

    label: str
    marker: str
    role: str
    filled: bool
    size: float = 1.0


KINDS: dict[int, Kind] = {
    0: Kind("probe", "dot", "grey", True),
    1: Kind("rejected", "x", "grey", False),
    2: Kind("bounce", "circle", "orange", True),
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
EVENTS = (BOUNCE, VIOLATION, REFRESH)

_SHAPES = {
    "circle": '<circle cx="6" cy="6" r="4.4"/>',
    "square": '<rect x="2" y="2" width="8" height="8"/>',
    "triangle": '<path d="M6 1 11.2 10.4H.8Z"/>',
    "x": '<path d="M2 2 10 10M10 2 2 10"/>',
    "diamond": '<path d="M6 1.5 10.5 6 6 10.5 1.5 6Z"/>',
    "dash": '<path d="M2 6H10"/>',
    "dot": '<circle cx="6" cy="6" r="2.2"/>',
    "ring": '<circle cx="6" cy="6" r="4.8"/>',
}


def mark_html(kind: Kind, palette: Palette, label: str | None = None, hint: str = "", colour: str = "") -> str:
    """Give a legend entry with the mark of a kind of event; the hint appears under the pointer.

    The colour is that of the kind's role unless another is given.
    """
    colour = colour or getattr(palette, kind.role)
    fill = colour if kind.filled else "none"
    shape = f'<g fill="{fill}" stroke="{colour}" stroke-width="1.7">{_SHAPES[kind.marker]}</g>'
    return _entry(shape, 12, label or kind.label, palette, hint)


def line_html(label: str, colour: str, palette: Palette, *, dash: str = "", width: float = 2.5) -> str:
    """Give a legend entry with a line."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    shape = f'<path d="M1 6H19" stroke="{colour}" stroke-width="{width}"{dashes}/>'
    return _entry(shape, 20, label, palette)


def band_html(label: str, colour: str, palette: Palette, opacities: tuple[float, ...]) -> str:
    """Give a legend entry with nested bands, the widest first."""
    shape = "".join(
        f'<rect x="1" y="{1 + 3 * i}" width="18" height="{10 - 6 * i}" fill="{colour}" opacity="{each}"/>'
        for i, each in enumerate(opacities)
    )
    return _entry(shape, 20, label, palette)


def ramp_html(low: str, high: str, colours: list[str], palette: Palette) -> str:
    """Give a legend entry with a ramp of colours between the words for its ends."""
    box = f"background:linear-gradient(90deg,{','.join(colours)});border:1px solid {palette.axis}"
    picture = f'<i style="display:inline-block;width:72px;height:10px;{box}"></i>'
    style = f"display:inline-flex;gap:5px;align-items:center;white-space:nowrap;color:{palette.muted};font-size:13px"
    return f'<span style="{style}">{low}{picture}{high}</span>'


def legend(*entries: str) -> str:
    """Join legend entries into one line that wraps between them."""
    style = "display:inline-flex;flex-wrap:wrap;gap:2px 12px;align-items:center;justify-content:flex-end"
    return f'<span class="bnnviz-legend" style="{style}">{"".join(entries)}</span>'


def _entry(shape: str, width: int, label: str, palette: Palette, hint: str = "") -> str:
    picture = f'<svg width="{width}" height="12" viewBox="0 0 {width} 12" aria-hidden="true">{shape}</svg>'
    layout = "display:inline-flex;gap:5px;align-items:center;white-space:nowrap"
    style = f"{layout};color:{palette.muted};font-size:13px"
    title = f' title="{hint}"' if hint else ""
    return f'<span style="{style}"{title}>{picture}{label}</span>'

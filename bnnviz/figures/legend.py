"""Write the legend of marks as HTML: one entry for each label."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from bnnviz.figures.marks import Area, Arrows, Band, Bars, Image, Line, Mark, Points, Rule, Segments
from bnnviz.figures.palette import Palette

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

_LAYOUT = "display:inline-flex;gap:5px;align-items:center;white-space:nowrap;font-size:13px"


def legend_entries(marks: Sequence[Mark], palette: Palette) -> dict[str, str]:
    """Return the legend's entry for each label as HTML."""
    named: dict[str, list[Mark]] = {}
    for mark in marks:
        if mark.label or isinstance(mark, Image):
            named.setdefault(mark.label, []).append(mark)
    return {label: _entry(label, own, palette) for label, own in named.items()}


def legend_html(entries: Iterable[str]) -> str:
    """Return the legend in one line that wraps between its entries; "" without any."""
    content = "".join(entries)
    style = "display:inline-flex;flex-wrap:wrap;gap:2px 12px;align-items:center;justify-content:flex-end"
    return f'<span class="bnnviz-legend" style="{style}">{content}</span>' if content else ""


def _entry(label: str, marks: Sequence[Mark], palette: Palette) -> str:
    """Return the entry of marks that share a label, drawn over each other."""
    picture, hint = "", next((mark.hint for mark in marks if mark.hint), "")
    pointed, dashed = [isinstance(mark, Points) for mark in marks], any(getattr(mark, "dash", ()) for mark in marks)
    # A point would cover the gaps of a short line.
    width = 12 if all(pointed) else 32 if any(pointed) and dashed else 20
    # Several series may share a label: the entry shows one mark of each type.
    for mark in {type(mark): mark for mark in reversed(marks)}.values():
        colour = palette.of(mark.colour) if mark.colour else ""
        if isinstance(mark, Image):
            return _ramp(mark, palette)
        if isinstance(mark, Points):
            edge, face = palette.of(mark.role), palette.of(mark.face) if mark.face else "none"
            shape = f'<g fill="{face}" stroke="{edge}" stroke-width="1.7">{_SHAPES[mark.kind.marker]}</g>'
            picture += f'<g transform="translate({(width - 12) / 2:g})">{shape}</g>'
        elif isinstance(mark, Band | Bars | Area):
            opacity = min(1.0, 1.6 * mark.opacity)
            picture += f'<rect x="1" y="1" width="18" height="10" fill="{colour}" opacity="{opacity:g}"/>'
        elif isinstance(mark, Line | Segments | Arrows | Rule):
            thick = 4.0 if isinstance(mark, Segments) and mark.widths is not None else min(mark.width, 4.0)
            dash = " ".join(f"{d:g}" for d in getattr(mark, "dash", ()))
            dashes = f' stroke-dasharray="{dash}"' if dash else ""
            picture += f'<path d="M1 6H{width - 1}" stroke="{colour}" stroke-width="{thick:g}"{dashes}/>'
    picture = f'<svg width="{width}" height="12" viewBox="0 0 {width} 12" aria-hidden="true">{picture}</svg>'
    title = f' title="{html.escape(hint)}"' if hint else ""
    return f'<span style="{_LAYOUT};color:{palette.muted}"{title}>{picture}{html.escape(label)}</span>'


def _ramp(mark: Image, palette: Palette) -> str:
    """Return a ramp of colours between the words for its ends."""
    if not any(mark.ends):
        return ""
    colours = ",".join(palette.of(role) for role in mark.ramp)
    box = f"background:linear-gradient(90deg,{colours});border:1px solid {palette.axis}"
    picture = f'<i style="display:inline-block;width:72px;height:10px;{box}"></i>'
    low, high = map(html.escape, mark.ends)
    name = f"{html.escape(mark.label)} " if mark.label else ""
    return f'<span style="{_LAYOUT};color:{palette.muted}">{name}{low}{picture}{high}</span>'

"""Draw a `Drawing` with HoloViews, for Bokeh and Matplotlib; compositions (``+``, ``*``) keep the style of each."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
from bokeh.core.properties import value

from bnnviz.figures import marks as m
from bnnviz.figures.marks import Axis, Drawing, Mark, Panels
from bnnviz.figures.palette import FONT, Palette
from bnnviz.figures.ranges import padded
from bnnviz.figures.still.style import PAINTS, PIXELS, POINT, apply

ID = "id"
#: More points are drawn as an image of their counts.
MOST_POINTS = 100_000
_LINKED = 6  # maximum panels whose legends act together: Bokeh follows each link recursively
_LEGEND, _LETTER, _RAMP = 44, 6.6, 70  # pixels of a legend without its words, of a letter, and of a ramp
_TITLE_LETTER = 7  # pixels
_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "x": "X", "dash": "s", "dot": "."}


def overlay(drawing: Drawing, dark: bool = False, legend: bool = True) -> hv.Overlay:
    """Return a drawing as an overlay."""
    paint = PAINTS[bool(dark)]
    palette = paint.palette
    dims = [
        hv.Dimension((axis.label or name, axis.label or " ")) for axis, name in ((drawing.x, "x"), (drawing.y, "y"))
    ]
    if dims[0].name == dims[1].name:
        dims[1] = hv.Dimension((f"{dims[1].name} ", drawing.y.label or " "))
    ends = _ends(drawing)
    names = {text for dim in dims for text in (dim.name, dim.label)} | {"chain", "draw", ID, "high"}
    drawn = []
    for mark in drawing.marks:
        for element, bokeh, matplotlib, both in () if mark.empty else _ELEMENTS[type(mark)](mark, dims, ends, palette):
            # HoloViews would take the name of an axis for its values. A space more is another name that looks the same.
            named = element.relabel(f"{element.label} ") if element.label in names else element
            hooks = {"hooks": [paint.bokeh], "tools": []}, {"hooks": [paint.matplotlib]}
            drawn.append(apply(named, hooks[0] | bokeh, hooks[1] | matplotlib, **both))
    labels = [mark.label for mark in drawing.marks if mark.label and not mark.empty and not isinstance(mark, m.Image)]
    shown = legend and bool(labels)
    width, height = drawing.size
    title = textwrap.fill(": ".join(filter(None, (drawing.title, drawing.note))), width // _TITLE_LETTER)
    beside = round(_LEGEND + _LETTER * max(map(len, labels))) if shown else 0
    beside += _RAMP if any(isinstance(mark, m.Image) and mark.label for mark in drawing.marks) else 0
    options: dict[str, Any] = {"xlim": ends[0], "ylim": tuple(sorted(ends[1])), "invert_yaxis": ends[1][0] > ends[1][1]}
    options |= _ticks(drawing.x, "x", ends[0]) | _ticks(drawing.y, "y", ends[1])
    options |= {"show_legend": shown} | ({"legend_position": "right"} if shown else {})
    return apply(
        hv.Overlay(drawn or [hv.Curve([(np.nan, np.nan)], *dims)]),  # no axes without an element
        {"width": width + beside, "height": height, "hooks": [paint.bokeh], "active_tools": []},
        {"aspect": width / height, "fig_inches": (width / PIXELS, height / PIXELS), "hooks": [paint.matplotlib]},
        show_grid=drawing.x.grid and drawing.y.grid,
        title=title,
        **options,
    )


def shown(found: Drawing | Panels, dark: bool = False) -> hv.Overlay | hv.Layout:
    """Return one drawing as an overlay, and several as a layout."""
    if isinstance(found, Drawing):
        return overlay(found, dark)
    drawings = found.drawings
    figures = [
        hv.Empty() if each is None else overlay(each, dark, legend=not found.one_legend or place == 0)
        for place, each in enumerate(drawings)
    ]
    if len(figures) == 1:
        return figures[0]
    width, height = next(each.size for each in drawings if each is not None)
    rows, across = -(-len(figures) // found.across), min(found.across, len(figures))
    inches = across * width / PIXELS, rows * height / PIXELS
    return apply(
        hv.Layout(figures).cols(found.across),
        {"shared_axes": False, "sync_legends": len(figures) <= _LINKED},
        {"fig_inches": inches, "sublabel_format": "", "tight": True},
    )


def _ends(drawing: Drawing) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ranges of both axes: exact ends, or the required range with some room."""
    found = []
    for axis in (drawing.x, drawing.y):
        ends = axis.ends or (0.0, 1.0)
        if axis.follow != "exact":
            ends = padded(ends, 0.03, 1e-6 * max(1.0, abs(ends[0])) if ends[0] != ends[1] else 0.5)
        found.append((float(ends[0]), float(ends[1])))
    return found[0], found[1]


def _ticks(axis: Axis, name: str, ends: tuple[float, float]) -> dict[str, Any]:
    if not axis.shown:
        return {f"{name}axis": None}
    if axis.ticks is None:
        whole = axis.whole and abs(ends[1] - ends[0]) <= 13
        return {f"{name}ticks": list(range(int(np.ceil(min(ends))), int(max(ends)) + 1))} if whole else {}
    found: dict[str, Any] = {f"{name}ticks": [(float(at), text) for at, text in axis.ticks.items()]}
    return found | ({f"{name}rotation": 35} if axis.turned else {})


# --- marks: an element with its options for Bokeh, for Matplotlib and for both


def _stroke(mark: Any, palette: Palette, element: Any) -> list[Any]:
    dash = tuple(mark.dash)
    bokeh = {"line_width": mark.width, "line_dash": " ".join(f"{d:g}" for d in dash) or "solid"}
    matplotlib = {"linewidth": mark.width * POINT, "linestyle": (0, tuple(d * POINT for d in dash)) if dash else "-"}
    both = {"color": palette.of(mark.colour), "alpha": mark.opacity}
    return [(element, bokeh, matplotlib, both)]


def _line(mark: m.Line, dims: Any, ends: Any, palette: Palette) -> list[Any]:
    return _stroke(mark, palette, hv.Curve((np.asarray(mark.x), np.asarray(mark.y)), *dims, label=mark.label))


def _rule(mark: m.Rule, dims: Any, ends: Any, palette: Palette) -> list[Any]:
    found = []
    for at in np.atleast_1d(np.asarray(mark.at, dtype=float)):
        if np.isfinite(at):
            pair = ([at, at], list(ends[1])) if mark.axis == "x" else (list(ends[0]), [at, at])
            found += _stroke(mark, palette, hv.Curve(pair, *dims, label=mark.label or mark.text))
    return found


def _segments(mark: m.Segments, dims: Any, ends: Any, palette: Palette) -> list[Any]:
    x, y, dx, dy = (np.asarray(each, dtype=float) for each in (mark.x, mark.y, mark.dx, mark.dy))
    names, columns = _draws(mark.ids)
    if mark.widths is not None:
        names, columns = ["width"], [mark.width * np.asarray(mark.widths, dtype=float)]
    element = hv.Segments((x, y, x + dx, y + dy, *columns), [*dims, "x1", "y1"], names, label=mark.label)
    ((element, bokeh, matplotlib, both),) = _stroke(mark, palette, element)
    if mark.widths is not None:
        bokeh["line_width"], matplotlib["linewidth"] = hv.dim("width"), hv.dim("width") * POINT
    return [(element, bokeh, matplotlib, both | {"show_legend": bool(mark.label)})]


def _arrows(mark: m.Arrows, dims: Any, ends: Any, palette: Palette) -> list[Any]:
    if mark.size:  # as long on the screen as that, whatever the axes show
        return []
    like = m.Segments(mark.x, mark.y, mark.dx, mark.dy, mark.width, colour=mark.colour, label=mark.label)
    return _segments(like, dims, ends, palette)


def _filled(mark: Mark, palette: Palette, element: Any) -> list[Any]:
    colour = palette.of(mark.colour)
    bokeh = {"fill_color": colour, "fill_alpha": mark.opacity, "line_alpha": 0.0}
    # Without a colour HoloViews takes the next one of its cycle.
    matplotlib = {"facecolor": colour, "color": colour, "alpha": mark.opacity, "linewidth": 0}
    return [(element, bokeh, matplotlib, {"show_legend": bool(mark.label)})]


def _band(mark: m.Band, dims: Any, ends: Any, palette: Palette) -> list[Any]:
    columns = [np.asarray(each, dtype=float) for each in (mark.x, mark.low, mark.high)]
    known = np.isfinite(columns).all(0)
    if not known.any():
        return []
    area = hv.Area(tuple(each[known] for each in columns), dims[0], [dims[1], "high"], label=mark.label)
    return _filled(mark, palette, area)


def _bars(mark: m.Bars, dims: Any, ends: Any, palette: Palette) -> list[Any]:
    x, y = np.asarray(mark.x, dtype=float), np.asarray(mark.y, dtype=float)
    half = mark.size / 2
    boxes = hv.Rectangles((x - half, np.zeros(len(x)), x + half, y), [*dims, "x1", "y1"], label=mark.label)
    return _filled(mark, palette, boxes)


def _area(mark: m.Area, dims: Any, ends: Any, palette: Palette) -> list[Any]:
    names = tuple(dim.name for dim in dims)
    polygons = [
        {names: rings[0], **({"holes": [list(rings[1:])]} if len(rings) > 1 else {})} for rings in mark.polygons
    ]
    return _filled(mark, palette, hv.Polygons(polygons, list(dims), label=mark.label))


def _points(mark: m.Points, dims: Any, ends: Any, palette: Palette) -> list[Any]:
    names, columns = _draws(mark.ids)
    columns = [np.asarray(mark.x, dtype=float), np.asarray(mark.y, dtype=float), *columns]
    size = mark.size * mark.kind.size
    if mark.scale is not None or mark.alpha is not None:
        scale = np.ones(len(columns[0])) if mark.scale is None else np.asarray(mark.scale, dtype=float)
        alpha = np.ones(len(columns[0])) if mark.alpha is None else np.asarray(mark.alpha, dtype=float)
        columns += [size * scale, (size * scale * POINT) ** 2, mark.opacity * alpha]
        names = [*names, "diameter", "area", "opacity"]
    element = hv.Points(tuple(columns), list(dims), names, label=mark.label)
    edge = palette.of(mark.role)
    if len(element) > MOST_POINTS:
        return [_counted(element, palette, edge)]
    face = palette.of(mark.face) if mark.face else palette.surface
    if mark.kind.marker in ("x", "dash"):
        face = edge
    bokeh: dict[str, Any] = {"marker": mark.kind.marker, "size": size, "line_color": edge, "fill_color": face}
    bokeh |= {"line_width": mark.width, "fill_alpha": mark.opacity, "line_alpha": mark.opacity}
    matplotlib: dict[str, Any] = {"marker": _MARKERS[mark.kind.marker], "s": (size * POINT) ** 2}
    matplotlib |= {"linewidth": mark.width * POINT, "alpha": mark.opacity, "facecolors": face, "edgecolors": edge}
    if "diameter" in names:
        bokeh |= {"size": hv.dim("diameter"), "fill_alpha": hv.dim("opacity"), "line_alpha": hv.dim("opacity")}
        # Matplotlib has one opacity for all points of a mark.
        matplotlib |= {"s": hv.dim("area"), "alpha": float(columns[-1].mean())}
    return [(element, bokeh, matplotlib, {})]


def _draws(ids: Any) -> tuple[list[str], list[np.ndarray]]:
    """Return the columns by which draws are linked; none where these are not known."""
    if ids is None:
        return [], []
    ids = np.asarray(ids, dtype=np.int64)
    return ["chain", "draw", ID], [ids // m.CHAIN, ids % m.CHAIN, ids]


def _counted(element: Any, palette: Palette, colour: str) -> Any:
    """Return an image of how many points there are at each place; places without any are clear."""
    x, y = (np.asarray(element.dimension_values(axis), dtype=float) for axis in (0, 1))
    known = np.isfinite(x) & np.isfinite(y)
    counts, *edges = np.histogram2d(x[known], y[known], bins=(600, 400))
    centres = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    picture = hv.Image((*centres, np.where(counts > 0, counts, np.nan).T), element.kdims, "count")
    return picture, {}, {}, {"cmap": blended([palette.grid, colour]), "cnorm": "log"}


def _text(mark: m.Text, dims: Any, ends: Any, palette: Palette) -> list[Any]:
    x, y = np.asarray(mark.x, dtype=float), np.asarray(mark.y, dtype=float)
    colours = np.array([palette.of(role) for role in mark.colours or (mark.colour,) * len(x)])
    texts = np.array(mark.texts, dtype=object)
    found = []
    for colour in dict.fromkeys(colours):
        own = colours == colour
        labels = hv.Labels((x[own], y[own], texts[own]), list(dims), "text")
        # A plain text would be the name of a column.
        bokeh = {"text_color": colour, "text_font": value(FONT), "text_font_size": f"{mark.size:g}px"}
        found.append((labels, bokeh, {"color": colour, "size": mark.size * POINT}, {}))
    return found


def _image(mark: m.Image, dims: Any, ends: Any, palette: Palette) -> list[Any]:
    grid = np.asarray(mark.values, dtype=float).reshape(-1, mark.across)
    left, right, bottom, top = mark.box
    across = (right - left) / max(grid.shape[1] - 1, 1) / 2 or 0.5
    up = (top - bottom) / max(grid.shape[0] - 1, 1) / 2 or 0.5
    bounds = (left - across, bottom - up, right + across, top + up)
    element = hv.Image(
        grid[::-1], list(dims), hv.Dimension((mark.label or "value", mark.label or "value")), bounds=bounds
    )
    ramp = blended([palette.of(role) for role in mark.ramp])
    both = {"cmap": ramp, "clim": (mark.low, mark.high), "colorbar": bool(mark.label)}
    return [(element, {"colorbar_opts": {"title": mark.label}}, {"cbar_width": 0.04}, both)]


_ELEMENTS: dict[type[Mark], Any] = {
    m.Line: _line,
    m.Band: _band,
    m.Bars: _bars,
    m.Points: _points,
    m.Segments: _segments,
    m.Arrows: _arrows,
    m.Rule: _rule,
    m.Text: _text,
    m.Image: _image,
    m.Area: _area,
}


def blended(ramp: Sequence[str]) -> list[str]:
    """Return 65 colours between those of a ramp, evenly spread; the middle one is among them."""
    channels = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in ramp])
    places = np.linspace(0, len(ramp) - 1, 65)
    mixed = np.stack([np.interp(places, np.arange(len(ramp)), channel) for channel in channels.T], axis=1)
    return ["#" + "".join(f"{round(value):02x}" for value in colour) for colour in mixed]

"""Style HoloViews elements in our colours, for Bokeh and for Matplotlib, light and dark.

Options are set on each element, not on a renderer: two figures of one process may have different colours, and what is
composed of several (``+``, ``*``) keeps the style of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv

from bnnviz import optional
from bnnviz.errors import BnnvizError
from bnnviz.views.base import FONT, LABEL_SIZE, TICK_SIZE
from bnnviz.views.palette import DARK, LIGHT, Kind, Palette
from bnnviz.views.series import DASHES

BACKENDS = ("bokeh", "matplotlib")
_MODULES = {"bokeh": "holoviews.plotting.bokeh", "matplotlib": "holoviews.plotting.mpl"}
#: Width and height of a figure in pixels; Matplotlib has so many to an inch.
WIDE, SQUARE = (520, 300), (400, 350)
PIXELS = 96
POINT = 72 / PIXELS  # of a pixel
_MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "inverted_triangle": "v",
    "x": "X",
    "dash": "s",
    "dot": ".",
}
_UNFILLED = ("x", "dash")
#: Marks of series, which tell them apart beside their colours.
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "circle", "square", "triangle")

Options = dict[str, Any]


def use(*backends: str) -> None:
    """Choose the backends that figures are styled for; without a choice, each one that is installed.

    Parameters
    ----------
    *backends : {"bokeh", "matplotlib"}
        The first one draws where HoloViews is not told otherwise. In a notebook ``use("matplotlib")`` shows pictures,
        which stay where the notebook is kept.

    Raises
    ------
    BnnvizError
        If there is no such backend.

    Examples
    --------
    >>> from bnnviz import plots
    >>> plots.use("bokeh")
    """
    unknown = [name for name in backends if name not in BACKENDS]
    if unknown:
        raise BnnvizError(f"There is no backend {unknown[0]!r}; choose {' or '.join(BACKENDS)}.", "backends")
    chosen = backends or [name for name in BACKENDS if optional.has(name)]
    if optional.in_notebook() and tuple(chosen) != ("matplotlib",):
        hv.extension(*chosen, logo=False, inline=True)
        return
    for name in chosen:
        optional.require(name, f"Figures by {name.capitalize()} need", extra="plots")
        __import__(_MODULES[name])
    if backends or hv.Store.current_backend not in hv.Store.renderers:
        hv.Store.set_current_backend(chosen[0])
    if optional.in_notebook():
        _show_pictures()


def _show_pictures() -> None:
    """Let a notebook show figures of Matplotlib as PNG, which need no script and stay where it is kept or printed."""
    from holoviews.core.dimension import LabelledData
    from holoviews.ipython.display_hooks import png_display

    hv.Store.output_settings.initialize(list(hv.Store.renderers))
    hv.renderer("matplotlib").dpi = PIXELS
    hv.Store.set_display_hook("png", LabelledData, png_display)
    hv.Store.display_formats = ["png"]
    # Letters over the parts are for a caption, which a notebook has not; a title needs room under the axis above it.
    hv.opts.defaults(hv.opts.Layout(sublabel_format="", vspace=0.5, backend="matplotlib"))


def loaded() -> list[str]:
    """Return the backends that elements are styled for."""
    if not any(name in hv.Store.renderers for name in BACKENDS):
        use()
    return [name for name in BACKENDS if name in hv.Store.renderers]


class Paint:
    """Colour a drawn figure: a hook of HoloViews, which calls it with the plot and the element."""

    def __init__(self, palette: Palette) -> None:
        self.palette = palette

    def bokeh(self, plot: Any, element: Any) -> None:
        """Colour a figure of Bokeh."""
        figure = plot.handles["plot"]
        paint(figure, self.palette, plot.fontscale or 1.0)
        figure.toolbar.update(logo=None, autohide=True)
        for legend in figure.legend:
            legend.update(background_fill_alpha=0.8, spacing=1)
            if legend in figure.right:
                legend.update(location="top_left", border_line_color=None, padding=4)
        if "colorbar" in plot.handles:
            plot.handles["colorbar"].update(
                background_fill_color=self.palette.surface,
                major_label_text_color=self.palette.muted,
                major_label_text_font=FONT,
                title_text_color=self.palette.ink,
                title_text_font=FONT,
                title_text_font_style="normal",
                bar_line_color=None,
                major_tick_line_color=None,
            )

    def matplotlib(self, plot: Any, element: Any) -> None:
        """Colour a figure of Matplotlib."""
        palette, axes, scale = self.palette, plot.handles["axis"], POINT * (plot.fontscale or 1.0)
        plot.handles["fig"].patch.set_facecolor(palette.surface)
        axes.set_facecolor(palette.surface)
        axes.set_axisbelow(True)
        if plot.show_grid and not axes.images:  # it would lie over a picture
            axes.grid(True, color=palette.grid, linewidth=0.8)
        elif axes.images:
            axes.grid(False)
        for spine in axes.spines.values():
            spine.set_color(palette.grid)
        # Those between powers of ten, too, which logarithmic axes have.
        axes.tick_params(which="both", color=palette.axis, labelcolor=palette.muted, labelsize=scale * TICK_SIZE)
        if plot.logx != plot.logy and isinstance(plot.aspect, int | float):
            # HoloViews takes natural logarithms here, and Matplotlib those to the base 10.
            axes.set_aspect("auto")
            axes.set_box_aspect(1 / plot.aspect)
        for axis in (axes.xaxis, axes.yaxis):
            axis.label.set(color=palette.ink, fontsize=scale * LABEL_SIZE)
        axes.title.set(color=palette.ink, fontsize=scale * LABEL_SIZE, fontweight="bold")
        legend = axes.get_legend()
        if legend is not None:
            legend.get_frame().set(facecolor=palette.surface, edgecolor=palette.grid)
            for text in legend.get_texts():
                text.set(color=palette.ink, fontsize=scale * TICK_SIZE)
        bar = plot.handles.get("cax")
        if bar is not None:
            bar.tick_params(color=palette.axis, labelcolor=palette.muted, labelsize=scale * TICK_SIZE)
            bar.yaxis.label.set(color=palette.ink, fontsize=scale * LABEL_SIZE)
            for spine in bar.spines.values():
                spine.set_color(palette.grid)


_PAINTS = {id(palette): Paint(palette) for palette in (LIGHT, DARK)}


def palette_of(dark: bool) -> Palette:
    """Return the colours of a light or of a dark page."""
    return DARK if dark else LIGHT


def apply(element: Any, bokeh: Options | None = None, matplotlib: Options | None = None, **both: Any) -> Any:
    """Set options of an element for each backend that is loaded, in place; return the element."""
    own = {"bokeh": bokeh or {}, "matplotlib": matplotlib or {}}
    for backend in loaded():
        element.opts(**both, **own[backend], backend=backend)
    return element


def _styled(element: Any, palette: Palette, bokeh: Options, matplotlib: Options, **both: Any) -> Any:
    """Set the style of one element, and what it needs to be shown by itself."""
    if element.label in {dimension.name for dimension in element.dimensions()}:
        # HoloViews would take the label in a legend for the values of that dimension.
        element = element.relabel(f"{element.label} ")
    hooks = _PAINTS[id(palette)]
    width, height = WIDE
    return apply(
        element,
        {"width": width, "height": height, "hooks": [hooks.bokeh], "tools": [], **bokeh},
        {"aspect": width / height, "hooks": [hooks.matplotlib], **matplotlib},
        show_grid=True,
        **both,
    )


def paint(fig: Any, palette: Palette, scale: float = 1.0) -> None:
    """Colour a figure's surface, axes, grid and title, and set their type."""
    size, small = f"{scale * LABEL_SIZE:g}px", f"{scale * TICK_SIZE:g}px"
    fig.update(
        background_fill_color=palette.surface,
        border_fill_color=palette.surface,
        outline_line_color=palette.grid,
    )
    fig.grid.grid_line_color = palette.grid
    fig.title.update(text_color=palette.ink, text_font=FONT, text_font_size=size, text_font_style="bold")
    for axis in fig.axis:
        axis.update(
            axis_line_color=palette.axis,
            major_tick_line_color=palette.axis,
            minor_tick_line_color=None,
            major_label_text_color=palette.muted,
            major_label_text_font=FONT,
            major_label_text_font_size=small,
            axis_label_text_color=palette.ink,
            axis_label_text_font=FONT,
            axis_label_text_font_size=size,
            axis_label_text_font_style="normal",
        )
    for legend in fig.legend:
        legend.update(
            label_text_color=palette.ink,
            label_text_font=FONT,
            label_text_font_size=small,
            background_fill_color=palette.surface,
            border_line_color=palette.grid,
        )


def line(
    element: Any, palette: Palette, colour: str, width: float = 2.0, dash: Sequence[int] = (), alpha: float = 1.0
) -> Any:
    """Style a curve or segments."""
    dashes = tuple(dash)
    return _styled(
        element,
        palette,
        {"line_width": width, "line_dash": " ".join(map(str, dashes)) or "solid"},
        {"linewidth": width * POINT, "linestyle": (0, tuple(d * POINT for d in dashes)) if dashes else "-"},
        color=colour,
        alpha=alpha,
        **({"show_legend": True} if isinstance(element, hv.Path) and element.label else {}),
    )


def band(element: Any, palette: Palette, colour: str, alpha: float = 0.25) -> Any:
    """Style an area between two curves."""
    return _styled(
        element,
        palette,
        {"fill_color": colour, "fill_alpha": alpha, "line_alpha": 0.0},
        {"facecolor": colour, "color": colour, "alpha": alpha, "linewidth": 0, "show_legend": True},
    )


def region(element: Any, palette: Palette, colour: str, alpha: float = 1.0) -> Any:
    """Style polygons or rectangles without an edge."""
    return _styled(
        element,
        palette,
        {"fill_color": colour, "fill_alpha": alpha, "line_alpha": 0.0},
        {"facecolor": colour, "alpha": alpha, "edgecolor": "none"},
    )


def marks(
    element: Any,
    palette: Palette,
    colour: str,
    marker: str = "circle",
    *,
    filled: bool = True,
    size: float = 7.0,
    alpha: float = 1.0,
    width: float = 1.6,
) -> Any:
    """Style points; sizes are pixels across."""
    hollow = not filled and marker not in _UNFILLED
    face = palette.surface if hollow else colour
    return _styled(
        element,
        palette,
        {"marker": marker, "size": size, "line_color": colour, "line_width": width, "fill_color": face}
        | {"fill_alpha": alpha, "line_alpha": alpha},
        {"marker": _MARKERS[marker], "s": (size * POINT) ** 2, "linewidth": width * POINT, "alpha": alpha}
        | {"facecolors": face, "edgecolors": colour},
    )


def level(height: float, ends: tuple[float, float], dims: Sequence[Any], palette: Palette, **how: Any) -> Any:
    """Return a straight line at a height, from one end to the other; ``how`` as of `line`, thin and grey by default."""
    how = {"colour": palette.axis, "width": 1.0} | how
    return line(hv.Curve((list(ends), [height] * 2), *dims), palette, **how)


def kind(element: Any, palette: Palette, of: Kind, size: float = 8.0, alpha: float = 1.0) -> Any:
    """Style points as the events of a kind are drawn everywhere."""
    colour = getattr(palette, of.role)
    return marks(element, palette, colour, of.marker, filled=of.filled, size=size * of.size, alpha=alpha)


def image(
    element: Any, palette: Palette, ramp: Sequence[str], limits: tuple[float, float] | None, bar: str = ""
) -> Any:
    """Style a map by a ramp of colours, with a bar of that title ("": without one)."""
    both: Options = {"cmap": blended(ramp), "colorbar": bool(bar), **({} if limits is None else {"clim": limits})}
    return _styled(element, palette, {"colorbar_opts": {"title": bar}}, {"cbar_width": 0.04}, **both)


def words(element: Any, palette: Palette, colour: str, size: float = TICK_SIZE) -> Any:
    """Style labels."""
    return _styled(
        element,
        palette,
        {"text_color": colour, "text_font": FONT, "text_font_size": f"{size}px"},
        {"color": colour, "size": size * POINT},
    )


def blended(ramp: Sequence[str], steps: int = 65) -> list[str]:
    """Return colours between those of a ramp, evenly spread; with an odd number, the middle one is among them."""
    channels = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in ramp]
    found = []
    for step in range(steps):
        place, share = divmod(step * (len(ramp) - 1) / (steps - 1), 1)
        low, high = channels[int(place)], channels[min(int(place) + 1, len(ramp) - 1)]
        found.append("#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(low, high, strict=True)))
    return found


def series(palette: Palette, place: int) -> tuple[str, tuple[int, ...], str]:
    """Return colour, dashes and marker of the series of a number; from nine on they repeat."""
    place %= len(palette.chains)
    return palette.chains[place], DASHES[place], MARKERS[place]


def finish(
    figure: Any,
    palette: Palette,
    *,
    title: str = "",
    size: tuple[int, int] = WIDE,
    legend: str | None = None,
    room: int = 110,
    bokeh: Options | None = None,
    matplotlib: Options | None = None,
    **both: Any,
) -> Any:
    """Style a whole figure: an overlay, or an element that is one by itself.

    Parameters
    ----------
    size : (int, int)
        Pixels, without a legend beside the figure.
    """
    figure, hooks = _told_apart(figure), _PAINTS[id(palette)]
    width, height = size
    beside = room if legend == "right" else 0
    if isinstance(figure, hv.Overlay | hv.NdOverlay):
        both |= {"show_legend": legend is not None} | ({} if legend is None else {"legend_position": legend})
    return apply(
        figure,
        {"width": width + beside, "height": height, "hooks": [hooks.bokeh], **(bokeh or {})},
        {
            "aspect": width / height,
            "fig_inches": DefaultInches((width / PIXELS, height / PIXELS)),
            "hooks": [hooks.matplotlib],
        }
        | (matplotlib or {}),
        show_grid=True,
        title=title,
        **both,
    )


class DefaultInches(tuple):
    """The size of a figure that nobody asked for: what stands around its axes comes on top of it."""


def _told_apart(figure: Any) -> Any:
    """Return a figure none of whose elements has the name of an axis: HoloViews would take the name for its values."""
    if not isinstance(figure, hv.Overlay):
        return figure
    same = [each.label in {dimension.label for dimension in each.dimensions()} for each in figure]
    if not any(same):
        return figure
    # A space more is another name, and nobody sees it.
    return hv.Overlay(
        [each.relabel(f"{each.label} ") if alike else each for each, alike in zip(figure, same, strict=True)]
    )


def layout(figures: Sequence[Any], across: int, size: tuple[int, int] = WIDE) -> Any:
    """Lay figures out in rows; one alone stays as it is."""
    if len(figures) == 1:
        return figures[0]
    rows = -(-len(figures) // across)
    inches = DefaultInches((min(across, len(figures)) * size[0] / PIXELS, rows * size[1] / PIXELS))
    return apply(
        hv.Layout(list(figures)).cols(across),
        {"shared_axes": False},
        {"fig_inches": inches, "sublabel_format": "", "tight": True},
    )


def options_of(figure: Any) -> Options:
    """Return the options of a figure for Bokeh, that a figure which is made of it may have too."""
    return dict(figure.opts.get("plot", backend="bokeh", defaults=False).kwargs)


def title_of(figure: Any) -> str:
    """Return the title of a figure."""
    return figure.opts.get("plot", backend=loaded()[0]).kwargs.get("title", "")

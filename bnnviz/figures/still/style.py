"""Choose backends of HoloViews, and set their colours."""

from __future__ import annotations

from typing import Any

import holoviews as hv
from bokeh.models import BasicTickFormatter

from bnnviz import optional
from bnnviz.errors import BnnvizError
from bnnviz.figures.palette import DARK, FONT, LABEL_SIZE, LIGHT, POWER, TICK_SIZE, Palette

BACKENDS = ("bokeh", "matplotlib")
_MODULES = {"bokeh": "holoviews.plotting.bokeh", "matplotlib": "holoviews.plotting.mpl"}
PIXELS = 96  # to an inch
_BESIDE_BAR = 1.5  # widths of the axes
POINT = 72 / PIXELS  # of a pixel
Options = dict[str, Any]


def use(*backends: str) -> None:
    """Set the backends for which figures are styled. The default is all installed backends.

    Parameters
    ----------
    *backends : {"bokeh", "matplotlib"}
        Names of the backends. The first is the default of HoloViews. In a notebook, ``use("matplotlib")`` displays
        images that are saved with the notebook.

    Raises
    ------
    BnnvizError
        If a backend is unknown.

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
    """Make notebooks show figures of Matplotlib as PNG images, which are saved and printed with the notebook."""
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
    found = [name for name in BACKENDS if name in hv.Store.renderers]
    if "matplotlib" in found:
        from matplotlib.collections import PatchCollection
        from matplotlib.legend import Legend
        from matplotlib.legend_handler import HandlerPolyCollection

        # A version before 3.11 fails on rectangles beside other marks.
        Legend.update_default_handler_map({PatchCollection: HandlerPolyCollection()})
    return found


class Paint:
    """Colour a drawn figure: a hook of HoloViews, which calls it with the plot and the element."""

    def __init__(self, palette: Palette) -> None:
        self.palette = palette

    def bokeh(self, plot: Any, element: Any) -> None:
        """Colour a figure of Bokeh: its surface, axes, grid, title, legend and bar of colours."""
        figure, palette, scale = plot.handles["plot"], self.palette, plot.fontscale or 1.0
        ink = _type("", palette.ink, scale * LABEL_SIZE)
        figure.update(background_fill_color=palette.surface, border_fill_color=palette.surface)
        figure.update(outline_line_color=palette.grid)
        figure.grid.grid_line_color = palette.grid
        figure.title.update(**ink | {"text_font_style": "bold"})
        figure.toolbar.update(logo=None, autohide=True)
        for axis in figure.axis:
            axis.update(**_type("axis_label_", palette.ink, scale * LABEL_SIZE), axis_label_text_font_style="normal")
            axis.update(**_type("major_label_", palette.muted, scale * TICK_SIZE), axis_line_color=palette.axis)
            axis.update(major_tick_line_color=palette.axis, minor_tick_line_color=None)
            if isinstance(axis.formatter, BasicTickFormatter):
                axis.formatter.update(power_limit_high=POWER, power_limit_low=-5)
        for legend in figure.legend:
            legend.update(**_type("label_", palette.ink, scale * TICK_SIZE), background_fill_alpha=0.8, spacing=1)
            legend.update(background_fill_color=palette.surface, border_line_color=palette.grid)
            if legend in figure.right:
                legend.update(location="top_left", border_line_color=None, padding=4)
        if "colorbar" in plot.handles:
            bar = plot.handles["colorbar"]
            bar.update(**_type("major_label_", palette.muted), **_type("title_", palette.ink))
            bar.update(background_fill_color=palette.surface, bar_line_color=None, major_tick_line_color=None)
            bar.title_text_font_style = "normal"

    def matplotlib(self, plot: Any, element: Any) -> None:
        """Colour a figure of Matplotlib, and make it move its panels apart."""
        palette, axes, figure = self.palette, plot.handles["axis"], plot.handles["fig"]
        label, tick = POINT * LABEL_SIZE, POINT * TICK_SIZE
        figure.patch.set_facecolor(palette.surface)
        if figure.get_layout_engine() is None:
            from bnnviz.figures.still.spacing import Apart

            figure.set_layout_engine(Apart())
        axes.set_facecolor(palette.surface)
        axes.set_axisbelow(True)
        axes.grid(True, color=palette.grid, linewidth=0.8)
        axes.grid(plot.show_grid and not axes.images)  # it would cover a picture
        axes.title.set(color=palette.ink, fontsize=label, fontweight="bold")
        for each in (axes, plot.handles.get("cax")):
            if each is None:
                continue
            each.tick_params(which="both", color=palette.axis, labelcolor=palette.muted, labelsize=tick)
            for axis in (each.xaxis, each.yaxis):
                axis.label.set(color=palette.ink, fontsize=label)
            for spine in each.spines.values():
                spine.set_color(palette.grid)
        legend = axes.get_legend()
        if legend is not None:
            # At the right of the bar of colours and of its words.
            if any(plot.traverse(lambda each: "cax" in each.handles)):
                legend.set_bbox_to_anchor((_BESIDE_BAR, 1.0), axes.transAxes)
            legend.get_frame().set(facecolor=palette.surface, edgecolor=palette.grid)
            for text in legend.get_texts():
                text.set(color=palette.ink, fontsize=tick)


def _type(what: str, colour: str, size: float | None = None) -> Options:
    """Return the colour, font and size of the words of a model of Bokeh."""
    look = {f"{what}text_color": colour, f"{what}text_font": FONT}
    return look if size is None else look | {f"{what}text_font_size": f"{size:g}px"}


#: The hooks that colour figures, by whether the page is dark.
PAINTS = {False: Paint(LIGHT), True: Paint(DARK)}


def apply(element: Any, bokeh: Options | None = None, matplotlib: Options | None = None, **both: Any) -> Any:
    """Set options of an element for each loaded backend and return the element."""
    own = {"bokeh": bokeh or {}, "matplotlib": matplotlib or {}}
    for backend in loaded():
        element.opts(**both, **own[backend], backend=backend)
    return element

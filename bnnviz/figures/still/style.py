"""Choose backends of HoloViews, and set their colours."""

from __future__ import annotations

from typing import Any

import holoviews as hv

from bnnviz import optional
from bnnviz.errors import BnnvizError
from bnnviz.figures.palette import DARK, FONT, LABEL_SIZE, LIGHT, TICK_SIZE, Palette

BACKENDS = ("bokeh", "matplotlib")
_MODULES = {"bokeh": "holoviews.plotting.bokeh", "matplotlib": "holoviews.plotting.mpl"}
PIXELS = 96  # to an inch
POINT = 72 / PIXELS  # of a pixel
Options = dict[str, Any]


def use(*backends: str) -> None:
    """Choose the backends that figures are styled for; without a choice, each one that is installed.

    Parameters
    ----------
    *backends : {"bokeh", "matplotlib"}
        The first one is the default of HoloViews. In a notebook, ``use("matplotlib")`` shows images, which are saved
        with the notebook.

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
        figure = plot.handles["fig"]
        figure.patch.set_facecolor(palette.surface)
        if figure.get_layout_engine() is None:
            from bnnviz.figures.still.spacing import Apart

            figure.set_layout_engine(Apart())
        axes.set_facecolor(palette.surface)
        axes.set_axisbelow(True)
        if plot.show_grid and not axes.images:  # it would cover a picture
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


_PAINTS = {False: Paint(LIGHT), True: Paint(DARK)}


def paint_of(dark: bool) -> Paint:
    """Return the hook that colours figures for a light or a dark page."""
    return _PAINTS[bool(dark)]


def palette_of(dark: bool) -> Palette:
    """Return the colours of a light or of a dark page."""
    return DARK if dark else LIGHT


def apply(element: Any, bokeh: Options | None = None, matplotlib: Options | None = None, **both: Any) -> Any:
    """Set options of an element for each backend that is loaded, in place; return the element."""
    own = {"bokeh": bokeh or {}, "matplotlib": matplotlib or {}}
    for backend in loaded():
        element.opts(**both, **own[backend], backend=backend)
    return element


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


class DefaultInches(tuple):
    """The default size of a figure, to which the decorations of its axes are added."""


def options_of(figure: Any) -> Options:
    """Return the options of a figure for Bokeh, that a figure which is made of it may have too."""
    return dict(figure.opts.get("plot", backend="bokeh", defaults=False).kwargs)

"""Write figures to files: pages that need no network, pictures, and PDF with embedded fonts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holoviews as hv
from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.layouts import column
from bokeh.models import Div, GridPlot, Plot, Toolbar
from bokeh.resources import INLINE

from bnnviz import optional
from bnnviz.errors import BnnvizError
from bnnviz.figures.palette import DARK
from bnnviz.figures.still import forms, style
from bnnviz.files import replacing

#: A script of Panel, which HoloViews loads, that no figure needs and no page of one file has.
_FROM_ELSEWHERE = re.compile(r'<script src="[^"]*"></script>|<link rel="stylesheet" href="[^"]*"[^>]*>')
# A figure shrinks to its place: to this share of its width, or to these pixels where that is less.
_SHARE, _LEAST = 0.6, 260
#: Fonts in the file, as TrueType: the other kind is refused by some journals.
_PAD = 0.04  # inches around a figure
_FONTS = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}


def save(figure: Any, out: str | os.PathLike[str], *, title: str = "", dpi: int = 200) -> Path:
    """Write a figure to a file.

    Parameters
    ----------
    figure : HoloViews object
    out : path
        The suffix determines the format: ``.html`` (a self-contained page with Bokeh), ``.pdf``, ``.svg``, ``.eps`` or
        ``.png`` (Matplotlib).
    title : str, default ""
        Title of the page.
    dpi : int, default 200
        Resolution of a ``.png`` file in dots per inch.

    Returns
    -------
    Path

    Raises
    ------
    BnnvizError
        If the suffix is unknown, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> draws = np.random.default_rng(0).normal(size=(4, 100))
    >>> plots.save(plots.trace(draws), f"{tempfile.mkdtemp()}/trace.pdf").name
    'trace.pdf'
    """
    out = Path(out)
    forms.check(out)
    if out.suffix.lower() == forms.PAGE:
        return write(page(figure, title or out.stem), out)
    return _written(out, lambda new: _print(figure, new, out.suffix.lower()[1:], dpi))


def write(text: str, out: str | os.PathLike[str]) -> Path:
    """Write a page to a file atomically."""
    return _written(Path(out), lambda new: new.write_text(text, encoding="utf-8"))


def _written(out: Path, make: Callable[[Path], Any]) -> Path:
    try:
        with replacing(out) as new:
            make(new)
    except OSError as error:
        raise BnnvizError(f"{out} cannot be written: {error.strerror or error}.", "out") from error
    return out


def page(figure: Any, title: str, *above: str, below: str = "", dark: bool | None = None) -> str:
    """Return a self-contained HTML page with a figure.

    Parameters
    ----------
    figure : HoloViews object
    title : str
    *above : str
        HTML above the figure.
    below : str
        HTML below the figure.
    dark : bool, optional
        Whether to use the dark theme. The default is the theme of the figure.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> plots.page(plots.trace(np.zeros((2, 10))), "Nothing moves").startswith("<!DOCTYPE html>")
    True
    """
    drawn = rendered(figure)
    if dark is None:
        dark = any(plot.background_fill_color == DARK.surface for plot in drawn.select({"type": Plot}))
    palette = style.PAINTS[dark].palette
    texts = [Div(text=text, styles={"color": palette.ink}, width_policy="max") for text in above]
    ends = [Div(text=below, styles={"color": palette.muted}, width_policy="max")] if below else []
    looks = {"background": palette.surface, "padding": "14px"}
    whole = column(*texts, drawn, *ends, sizing_mode="stretch_width", styles=looks)
    text = _FROM_ELSEWHERE.sub("", file_html(whole, INLINE, title)).strip()
    # Colour the page too; a dark figure would otherwise have a white border.
    head = f"<meta name='viewport' content='width=device-width'><style>html {{background: {palette.surface}}}</style>"
    return text.replace("<head>", f"<head>{head}", 1)


def rendered(figure: Any, scale: float = 1.0) -> Any:
    """Return a figure as a Bokeh model that shrinks to its place, without a document and independent of themes."""
    if "bokeh" not in style.loaded():
        raise BnnvizError("This figure was not styled for HTML. Call bnnviz.plots.use('bokeh') first.", "figure")
    if scale != 1.0:
        figure = figure.opts(hv.Options("Overlay", fontscale=scale, backend="bokeh"), clone=True)
    model = hv.renderer("bokeh").instance(theme=None).get_plot(figure, doc=Document()).state
    for bar in model.select({"type": Toolbar}):
        bar.update(logo=None, autohide=True)
    for plot in model.select({"type": Plot}):
        # WebGL graphics cannot be copied to paper.
        plot.update(sizing_mode="stretch_width", min_width=_narrowest(plot.width), max_width=plot.width)
        plot.output_backend = "canvas"
    for grid in model.select({"type": GridPlot}):
        widths: dict[int, int] = {}
        for child, _, place in grid.children:
            widths[place] = max(widths.get(place, 0), getattr(child, "max_width", None) or 0)
        grid.cols = {place: f"minmax({_narrowest(width)}px, {width}px)" for place, width in widths.items()}
        grid.sizing_mode = "stretch_width"
    return model


def _narrowest(width: int) -> int:
    """Return the smallest width in pixels of a figure of the given width."""
    return min(_LEAST, round(_SHARE * width))


def _print(figure: Any, path: Path, ending: str, dpi: int) -> None:
    plt = optional.require("matplotlib.pyplot", "Figures for print need", extra="plots")
    if "matplotlib" not in style.loaded():
        raise BnnvizError(
            "This figure was not styled for print; call bnnviz.plots.use('bokeh', 'matplotlib') before it is made.",
            "out",
        )
    with plt.rc_context(_FONTS):
        drawn = hv.render(figure, backend="matplotlib")
        try:
            looks = {"bbox_inches": "tight", "pad_inches": _PAD, "facecolor": drawn.get_facecolor()}
            drawn.savefig(path, format=ending, dpi=dpi, **looks)
        finally:
            plt.close(drawn)

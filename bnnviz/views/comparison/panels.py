"""Set several views of finished draws side by side, each under its heading, on a page that needs no server."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.layouts import column, row
from bokeh.models import Column, Div, LayoutDOM

from bnnviz.views import BY_NAME
from bnnviz.views.palette import DARK, LIGHT

WIDTH, HEIGHT = 360, 320
LARGE = 760, 520
ACROSS = 3


class Panel(NamedTuple):
    """Hold one figure: its heading, the name of a view, and the part of a frame that it shows.

    A view of a run finds under ``scene`` in the part what it needs of the run's scene.
    """

    title: str
    view: str
    part: dict[str, Any]


def panels(found: Sequence[Panel], heading: str = "", dark: bool = False) -> Column:
    """Lay figures out in rows of three; a figure that is alone is a large one.

    Parameters
    ----------
    found : sequence of Panel
    heading : str
        Above all of them; without one the figures stand on a page of somebody else's.
    dark : bool, default False
    """
    size = (WIDTH, HEIGHT) if len(found) > 1 else LARGE
    cards = [_card(panel, dark, *size) for panel in found]
    rows = [row(*cards[k : k + ACROSS], spacing=14) for k in range(0, len(cards), ACROSS)]
    if not heading:
        return column(*rows, spacing=14)
    palette, background = (DARK, "#10161c") if dark else (LIGHT, "#eef1f4")
    style = f"margin:0;color:{palette.ink};font:600 18px sans-serif"
    title = Div(text=f"<h2 style='{style}'>{html.escape(heading)}</h2>")
    return column(title, *rows, spacing=14, styles={"background": background, "padding": "14px"})


def _card(panel: Panel, dark: bool, width: int, height: int) -> LayoutDOM:
    part = arrays(panel.part)
    view = BY_NAME[panel.view](part.pop("scene", {}), dark)
    view.update({view.needs[0]: part})
    view.root.update(width=width, height=height, sizing_mode="fixed")
    p = view.palette
    text = (
        f"<div style='font:13px sans-serif;color:{p.muted}'><b style='color:{p.ink};font-size:15px'>"
        f"{html.escape(panel.title)}</b><div style='min-height:18px'>{html.escape(view.note)}</div>"
        f"<div style='min-height:20px'>{view.legend_html()}</div></div>"
    )
    box = {"background": p.surface, "padding": "10px", "border-radius": "8px"}
    return column(Div(text=text, width=width), view.root, styles=box)


def arrays(value: Any) -> Any:
    """Return lists of numbers as arrays, where nothing is not a number."""
    if isinstance(value, dict):
        return {key: arrays(each) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    if value and all(each is None or isinstance(each, int | float) for each in value):
        return np.array(value, dtype=float)
    made = [arrays(each) for each in value]
    shapes = {each.shape if isinstance(each, np.ndarray) else None for each in made}
    return np.array(made) if len(shapes) == 1 and None not in shapes else made

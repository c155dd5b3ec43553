"""Show a first visitor around: a few stops, skippable, never shown again in this browser."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

from bnnviz_app.components.widgets import script

#: Where the tour stops: an area of the page, a title, a text.
STOPS: tuple[tuple[str, str, str], ...] = (
    (
        "caption",
        "What just happened",
        "This line says what the last evaluation was, warns when the settings bias the result, and offers remedies.",
    ),
    (
        "path",
        "The trajectory",
        "One chain in two coordinates. Between events it moves without chance; at an event it bounces off the slope"
        " or is refreshed.",
    ),
    (
        "envelope",
        "How event times are found",
        "The blue rate is what the chain should turn at. Times are drawn from the envelope, orange while it is in use,"
        " red when it was used, and accepted with probability rate / envelope. A rate above it is a violation.",
    ),
    (
        "prediction",
        "What the weights mean",
        "Every draw of the weights is a function. Once it plays, the bands hold half of them and 95 % of them.",
    ),
    (
        "transport",
        "Play, or one step at a time",
        "Play and pause with space. The arrow key takes one evaluation, e goes on to the next event. The line below"
        " says how fast it goes and on what.",
    ),
    (
        "sidebar",
        "Choose and change",
        "Target, sampler and settings. Those of the sampler that stand open act while it plays.",
    ),
    (
        "tools",
        "Scenes and Share",
        "Scenes explain one thing at a time; some ask you to predict first. Share copies this run as a link, as Python"
        " or as a command.",
    ),
)

_STYLE = """
.shade {position: fixed; inset: 0; z-index: 1400}
.ring {position: fixed; z-index: 1401; border-radius: 8px; pointer-events: none; box-shadow: 0 0 0 200vmax
  rgba(8, 19, 29, .55); border: 3px solid #f0a03c}
.stop {position: fixed; z-index: 1402; box-sizing: border-box; width: 350px; max-width: calc(100vw - 24px);
  padding: 14px 18px; border-radius: 10px; font: 15px/1.4 Roboto, sans-serif; color:
  var(--mui-palette-text-primary); background: var(--mui-palette-background-paper); box-shadow: 0 6px 30px
  rgba(0, 0, 0, .4)}
h2 {font-size: 16px; margin: 0 0 6px}
p {margin: 0 0 12px}
.row {display: flex; gap: 8px; align-items: center}
.place {margin-right: auto; font-size: 13px; color: var(--mui-palette-text-secondary)}
button {font: 600 14px/1.3 Roboto, sans-serif; border-radius: 16px; padding: 4px 14px; cursor: pointer;
  color: var(--mui-palette-primary-main); background: none; border: 1px solid currentColor}
button.next {color: var(--mui-palette-primary-contrastText); background: var(--mui-palette-primary-main);
  border-color: var(--mui-palette-primary-main)}
button:disabled {opacity: .4; cursor: default}
button:focus-visible {outline: 3px solid #f0a03c; outline-offset: 2px}
"""


class Tour(JSComponent):
    """Point at the parts of the page, one after another.

    Parameters
    ----------
    offered : bool
        Whether a browser that has not seen it begins it by itself; set once the page stands.
    """

    stops = param.List(default=[list(stop) for stop in STOPS])
    offered = param.Boolean(default=False)
    sheet = param.String(default=_STYLE)
    started = param.Integer(default=0, doc="Grows when the tour is asked for.")

    _esm = script(__file__, "tour.js")

    def __init__(self, **params: Any) -> None:
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **params})

    def start(self) -> None:
        """Begin the tour."""
        self.started += 1

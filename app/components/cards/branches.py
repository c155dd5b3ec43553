"""The line over the stage that says where in its past a run is, and which futures it was parted in."""

from __future__ import annotations

import html
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz.views.futures import MOST, colour
from bnnviz.views.palette import DARK, LIGHT
from bnnviz_app import projector
from bnnviz_app.session import Session

_BAR = """
:host {border-left: 4px solid var(--mui-palette-primary-main); border-radius: 6px; align-items: center;
  background: var(--mui-palette-background-paper); box-shadow: 0 1px 2px rgba(0, 0, 0, .12)}
"""
_GROUND = """
:host {box-sizing: border-box; padding: 10px 14px 0; background: var(--mui-palette-background-default)}
@media (max-height: 800px) {:host {padding: 7px 10px 0}}
"""
_TEXT = """
:host {font-size: 14px; line-height: 19px; color: var(--mui-palette-text-primary);
  font-variant-numeric: tabular-nums; overflow: hidden}
@media (max-height: 800px) {:host {font-size: 12.5px; line-height: 16px}}
"""
_BUTTON = {"size": "small", "height": 32, "margin": (0, 3), "align": "center", "visible": False}


class Futures:
    """Says what is known of other times and futures, and changes between them.

    Parameters
    ----------
    session : Session
        What the buttons act on.
    """

    needs, hot = frozenset({"status"}), False

    def __init__(self, session: Session) -> None:
        self._session, self._dark, self._large = session, False, False
        self._futures: list[dict[str, Any]] = []
        self._followed = 0
        self._text = pn.pane.HTML(
            "", sizing_mode="stretch_width", margin=(0, 12), align="center", stylesheets=[_TEXT, projector.CAPTION]
        )
        self._return = self._button("Back to now", lambda: session.travel("return"))
        self._split = self._button("Fork again", lambda: session.travel("fork"))
        self._keep = self._button("Keep", lambda: session.travel("keep", branch=self._letter))
        self._branches = [self._button("", lambda i=i: self._follow(i)) for i in range(MOST)]
        self._bar = pn.Row(
            *self._branches, self._text, self._return, self._split, self._keep,
            sizing_mode="stretch_width", height=44, margin=0, stylesheets=[_BAR],
        )  # fmt: skip
        # Without the bar until that is first shown: most pages are painted without it.
        self.root = pn.Column(
            sizing_mode="stretch_width",
            margin=0,
            visible=False,
            css_classes=["futures"],
            stylesheets=[_GROUND],
        )

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run; what is known of it comes with its first frame."""

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        status = frame["status"]
        self._futures, self._followed = status.get("futures", []), status.get("followed", 0)
        self._tell(status)
        self._dress()
        _set(self._return, visible=bool(status.get("behind")))
        forked = bool(self._futures)
        _set(self._split, visible=forked and len(self._futures) < MOST)
        _set(self._keep, visible=forked, label=f"Keep {self._letter} alone" if forked else "Keep")
        self._reveal(forked or bool(status.get("behind")))

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        projector.dress(self._text, large)
        self._large = large
        self._bar.height = 58 if large else 44
        for button in (*self._branches, self._return, self._split, self._keep):
            button.param.update(size="large" if large else "small", height=46 if large else 32)
        self._dress()

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        self._dark = dark
        self._dress()

    def _reveal(self, shown: bool) -> None:
        if shown and not self.root:
            self.root.append(self._bar)
        _set(self.root, visible=shown)

    @property
    def _letter(self) -> str:
        """The branch that is followed."""
        return self._futures[self._followed]["letter"] if self._futures else ""

    def _follow(self, number: int) -> None:
        if number < len(self._futures) and number != self._followed:
            self._session.travel("follow", branch=self._futures[number]["letter"])

    def _tell(self, status: dict[str, Any]) -> None:
        step, furthest = status["step"], status.get("furthest", 0)
        if status.get("goal") is not None:
            text = f"On the way to step {status['goal']:,}: the run takes the steps again that led there."
        elif status.get("behind"):
            text = (
                f"Step <b>{step:,}</b> of {furthest:,}: what comes next is known, and play repeats it. Change a setting"
                " or a data point, and another future goes beside it."
            )
        elif self._futures:
            letter = html.escape(self._letter)
            text = f"Parted at step <b>{status['fork']:,}</b>. Every view follows {letter}; what you change is its own."
        else:
            text = ""
        _set(self._text, object=f"<div class='told'>{text}</div>")

    def _dress(self) -> None:
        palette = DARK if self._dark else LIGHT
        for number, button in enumerate(self._branches):
            if number >= len(self._futures):
                _set(button, visible=False)
                continue
            future = self._futures[number]
            followed = number == self._followed
            failed = " (failed)" if future["failed"] else ""
            shade = colour(future["letter"], palette)
            _set(
                button,
                visible=True,
                label=f"{future['letter']}: {future['name']}{failed}",
                sx={
                    "borderLeft": f"12px solid {shade} !important",
                    "fontWeight": 700 if followed else 400,
                    "borderRadius": "6px",
                    "outline": f"2px solid {shade}" if followed else "none",
                    "maxWidth": "340px" if self._large else "260px",
                    "whiteSpace": "nowrap",
                    "overflow": "hidden",
                },
            )

    @staticmethod
    def _button(label: str, on_click: Any) -> pmui.Button:
        button = pmui.Button(label=label, variant="outlined", **_BUTTON)
        button.on_click(lambda event: on_click())
        return button


def _set(widget: Any, **values: Any) -> None:
    """Set what is not so already: every change goes to the browser."""
    changed = {name: value for name, value in values.items() if getattr(widget, name) != value}
    if changed:
        widget.param.update(**changed)

"""Show the branches of a fork and switch between them."""

from __future__ import annotations

import html
from typing import Any

from bnnviz.figures.marks import FUTURES
from bnnviz.figures.marks import future as future_number
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import Text, WideColumn, WideRow, button, set_changed
from bnnviz_app.session import Session
from bnnviz_app.theme import SHEETS, entry_colour, styles

_STYLES = styles(__file__)
_BUTTON = {"variant": "outlined", "height": 32, "margin": (0, 3), "align": "center", "visible": False}


class BranchBar(PageComponent):
    """Show the branches of a fork and switch between them."""

    needs = frozenset({"status"})

    def __init__(self, session: Session) -> None:
        self._session, self._large = session, False
        self._futures: list[dict[str, Any]] = []
        self._followed = 0
        sheets = [_STYLES["text"], SHEETS["large_caption"]]
        self._text = Text(margin=(0, 12), align="center", stylesheets=sheets)
        self._return = button("Return to now", lambda: session.travel("return"), **_BUTTON)
        self._split = button("Fork again", lambda: session.travel("fork"), **_BUTTON)
        self._keep = button("Keep", lambda: session.travel("keep", branch=self._letter), **_BUTTON)
        self._branches = [button("", lambda i=i: self._follow(i), **_BUTTON) for i in range(FUTURES)]
        self.enlarged = [self._text]
        whole = (*self._branches, self._text, self._return, self._split, self._keep)
        self._bar = WideRow(*whole, height=44, stylesheets=[_STYLES["bar"]])
        # Without the bar until that is first shown: most pages are painted without it.
        self.root = WideColumn(visible=False, css_classes=["futures"], stylesheets=[_STYLES["ground"]])

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        status = frame["status"]
        self._futures, self._followed = status.get("futures", []), status.get("followed", 0)
        self._tell(status)
        self._dress()
        set_changed(self._return, visible=bool(status.get("behind")))
        forked = bool(self._futures)
        set_changed(self._split, visible=forked and len(self._futures) < FUTURES)
        set_changed(self._keep, visible=forked, label=f"Keep {self._letter} alone" if forked else "Keep")
        shown = forked or bool(status.get("behind"))
        if shown and not self.root:
            self.root.append(self._bar)
        set_changed(self.root, visible=shown)

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        super().magnify(large)
        self._large = large
        self._bar.height = 58 if large else 44
        for each in (*self._branches, self._return, self._split, self._keep):
            each.param.update(size="large" if large else "small", height=46 if large else 32)
        self._dress()

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
            text = f"On the way to step {status['goal']:,}: the run repeats its steps up to there."
        elif status.get("behind"):
            text = (
                f"Step <b>{step:,}</b> of {furthest:,}: play repeats the steps up to there. Change a setting or a data"
                " point to go another way from here."
            )
        elif self._futures:
            letter = html.escape(self._letter)
            text = f"Parted at step <b>{status['fork']:,}</b>. Every view follows {letter}; changes apply to it alone."
        else:
            text = ""
        set_changed(self._text, object=f"<div class='reported'>{text}</div>")

    def _dress(self) -> None:
        for i, each in enumerate(self._branches):
            set_changed(each, visible=i < len(self._futures))
            if i < len(self._futures):
                self._dress_branch(each, self._futures[i], i == self._followed)

    def _dress_branch(self, each: Any, future: dict[str, Any], followed: bool) -> None:
        colour = entry_colour(future_number(future["letter"]))
        look = {
            "borderLeft": f"12px solid {colour} !important",
            "fontWeight": 700 if followed else 400,
            "borderRadius": "6px",
            "outline": f"2px solid {colour}" if followed else "none",
            "maxWidth": "340px" if self._large else "260px",
            "whiteSpace": "nowrap",
            "overflow": "hidden",
        }
        failed = " (failed)" if future["failed"] else ""
        set_changed(each, label=f"{future['letter']}: {future['name']}{failed}", sx=look)

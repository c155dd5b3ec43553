"""Show live figures in a notebook: a widget that feeds the views from a run of this process.

The page asks for a frame when it has painted the last one and is in sight: nothing piles up behind a slow browser.
"""

from __future__ import annotations

import html
import logging
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anywidget
import bokeh
import traitlets
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.protocol import Protocol as Messages

from bnnviz.engine.background import Background
from bnnviz.errors import BnnvizError
from bnnviz.figures.listing import BY_NAME, figures_for, of_runs
from bnnviz.figures.live.canvas import bokeh_js
from bnnviz.figures.live.view import View
from bnnviz.figures.palette import DARK, LIGHT, Palette
from bnnviz.numerals import count

SPEEDS = {"2 steps/s": 2.0, "10 steps/s": 10.0, "50 steps/s": 50.0, "500 steps/s": 500.0, "full speed": 0.0}
MOST_SIGHTS = 8
# The first two of these that a run supports are larger and come first.
_ORDER = ("trajectory", "population", "prediction", "spread", "thinning", "gauge", "trace", "acf")
# The number of views that a race shows in one row, all of one size.
_ACROSS = {3: 3, 4: 2, 5: 3, 6: 3, 7: 4}

log = logging.getLogger(__name__)
_LIVES: weakref.WeakSet[Live] = weakref.WeakSet()


class Sight:
    """Feed the views of one displayed widget and track what its page already has."""

    def __init__(self, shown: list[str], scene: dict[str, Any], dark: bool) -> None:
        self.lock = threading.Lock()
        self.hungry = False
        possible = {figure.name: figure for figure in figures_for(scene)}
        self.views = [View(possible[name], scene, dark) for name in shown]
        self._of_race = "entries" in scene
        self._want = sorted({need for view in self.views for need in view.needs} | {"status", "acf"})
        self._moment: tuple | None = None
        self._settled = False
        self._number = 0
        self._status: dict[str, Any] | None = None
        self._heads: dict[str, list[str]] = {}
        self._changes: list[Any] = []
        self._doc = Document()
        for view in self.views:
            # The wheel scrolls the notebook until the user activates the zoom tool.
            view.root.toolbar.active_scroll = None
            self._doc.add_root(view.root)
        self._doc.on_change(self._changes.append)

    def document(self) -> dict[str, Any]:
        """Return the document from which the page builds the views."""
        return {
            "doc": serialize_json(self._doc.to_json(deferred=False)),
            "version": bokeh.__version__,
            "names": [view.name for view in self.views],
            "across": _ACROSS.get(len(self.views), 3) if self._of_race else 0,
            "heads": self._new_heads(),
        }

    def theme(self, dark: bool) -> None:
        """Turn light or dark; the next frame carries the colours."""
        self._doc.hold("combine")
        for view in self.views:
            view.theme(dark)
        self._heads, self._settled = {}, False

    def follow(self, name: str, follow: bool) -> None:
        """Make the ranges of a view follow the data, or leave them to the user."""
        for view in self.views:
            if view.name == name:
                view.follow = follow

    def next(self, run: Background) -> tuple[dict[str, Any], list[bytes]] | None:
        """Return the next message to the page and its buffers, None if it has seen everything."""
        moment = run.moment
        if moment == self._moment and self._settled:
            return None
        # Frames at speed omit expensive parts; one more frame at rest completes them.
        self._settled = moment == self._moment
        self._moment = moment
        frame = run.frame(self._want)
        self._doc.hold("combine")
        for view in self.views:
            view.update(frame)
        self._doc.unhold()
        # At full speed most frames lack the status; the page keeps the last one.
        self._status = status = frame.get("status", self._status)
        if status is None:
            return None
        self._number += 1
        patch, buffers = "", []
        if self._changes:  # of the document, as messages of BokehJS
            made = Messages().create("PATCH-DOC", self._changes)
            self._changes.clear()
            patch, buffers = made.content_json, made.buffers
        message = {
            "frame": self._number,
            "patch": patch,
            "ids": [buffer.id for buffer in buffers],
            "heads": self._new_heads(),
            "status": _cells(status),
            "playing": status["playing"],
            "ended": status["ended"],
            "speed": status["speed"] or 0.0,
            "statement": status["message"],
        }
        return message, [buffer.to_bytes() for buffer in buffers]

    def _new_heads(self) -> dict[str, list[str]]:
        """Return title, note and legend of each view whose heading has changed."""
        heads = {view.name: [view.title, view.note, view.legend_html()] for view in self.views}
        changed = {name: head for name, head in heads.items() if head != self._heads.get(name)}
        self._heads = heads
        return changed


class Live(anywidget.AnyWidget):
    """The figures of a run and the buttons that play, pause and step it."""

    _esm = Path(__file__).with_name("widget.js")
    _css = Path(__file__).with_name("widget.css")
    _page = traitlets.Dict().tag(sync=True)

    def __init__(
        self, run: Background, shown: list[str] | None = None, height: int = 520, dark: bool | None = None
    ) -> None:
        if not isinstance(height, int) or height < 100:
            raise BnnvizError(f"height = {height!r} must be a whole number of pixels, at least 100.", "height")
        self._run, self._scene = run, run.scene()
        self._shown = _choose(shown, self._scene)
        self._sights: dict[str, Sight] = {}
        page = {"height": height, "dark": dark, "speeds": SPEEDS, "title": self._scene["title"]}
        super().__init__(_page=page | {"light_palette": _colours(LIGHT), "dark_palette": _colours(DARK)})
        _LIVES.add(self)
        self.on_msg(self._asked)
        run.listen(self._feed)

    def __repr__(self) -> str:
        return f"<Live {self._scene['title']}: {', '.join(self._shown)}>"

    def _asked(self, _: Any, content: dict[str, Any], buffers: Any) -> None:
        """Process a request of the page."""
        name = content.get("sight")
        try:
            if content["do"] == "bokeh":
                self.send({"bokeh": bokeh.__version__}, [bokeh_js().encode()])
            elif content["do"] == "open":
                while len(self._sights) >= MOST_SIGHTS:  # of pages that were closed without a word
                    del self._sights[next(iter(self._sights))]
                sight = self._sights[name] = Sight(self._shown, self._scene, bool(content["dark"]))
                self.send({"sight": name} | sight.document())
            elif content["do"] == "close":
                self._sights.pop(name, None)
                seen = any(live._sights for live in _LIVES if live._run is self._run)
                if not seen and self._run.spec.draws is None:
                    # Running a cell again must stop its previous run, which would continue forever.
                    self._run.pause()
            elif name in self._sights:
                self._obey(self._sights[name], content)
        except BnnvizError as error:
            self.send({"sight": name, "statement": error.sentence})

    def _obey(self, sight: Sight, content: dict[str, Any]) -> None:
        do = content["do"]
        if do == "frame":
            sight.hungry = True
            self._feed()
        elif do == "theme":
            with sight.lock:
                sight.theme(bool(content["dark"]))
            self._feed()
        elif do == "follow":
            with sight.lock:
                sight.follow(content["name"], bool(content["follow"]))
        elif do == "speed":
            self._run.speed = content["value"] or None
        elif do in ("play", "pause", "step", "step_event"):
            getattr(self._run, do)()

    def _feed(self) -> None:
        """Answer the pages that wait for something new."""
        for name, sight in tuple(self._sights.items()):
            try:
                with sight.lock:
                    reply = sight.next(self._run) if sight.hungry else None
                    if reply is not None:
                        sight.hungry = False
                        self.send({"sight": name} | reply[0], reply[1])
            except Exception as error:
                # The run's thread may be the one that answers, and a figure must not end a run.
                log.exception("a frame could not be shown")
                self._sights.pop(name, None)
                self.send({"sight": name, "statement": f"The figures stopped: {type(error).__name__}: {error}"})


def _choose(names: Iterable[str] | None, scene: dict[str, Any]) -> list[str]:
    """Return the names of the figures to show, the larger ones first."""
    possible = [figure.name for figure in figures_for(scene)]
    if names is None:
        order = _ORDER
        if "entries" in scene:  # a view for each sampler of a race, and the curves
            picture = next(figure.name for figure in of_runs() if figure.needs[0] == scene["pictures"][-1])
            order = [*(f"{picture}.{number}" for number in range(len(scene["entries"]))), "curves"]
        return [name for name in order if name in possible]
    chosen = []
    for name in [names] if isinstance(names, str) else names:
        if name not in possible:
            known = name in BY_NAME
            what = f"This run has nothing to show in the figure {name!r}" if known else f"There is no figure {name!r}"
            raise BnnvizError(f"{what}; choose among {', '.join(possible)}.", "views")
        chosen.append(name)
    return chosen


def _colours(palette: Palette) -> dict[str, str]:
    return {name: getattr(palette, name) for name in ("surface", "ink", "muted", "grid", "axis", "blue")}


def _cells(status: dict[str, Any]) -> list[list[str]]:
    """Return the cells of the status line: figure and unit."""
    phase = status["phase"]
    if not status["playing"] and phase not in ("done", "failed"):
        phase += ", stopped" if status["ended"] else ", paused"
    cells = [[html.escape(status["device"]), ""], [phase, ""], [count(status["step"]), "steps"]]
    if "budget" in status:
        spent = max(entry["spent"] for entry in status["entries"])
        return [*cells, [f"{count(spent)} of {count(status['budget'])}", "gradients each"]]
    return [
        *cells,
        [f"{count(status['draws'])} × {status['chains']}", "draws"],
        [count(status["ess"]), "ESS"],
        [count(status["events_per_s"]), "events/s"],
    ]

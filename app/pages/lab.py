"""The Lab: one sampler on one target, step by step or at full speed, in linked views."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

import address
from access import Narrator
from bnnviz import catalogue, link, views
from bnnviz.errors import BnnvizError
from bnnviz.spec import Spec
from caption import Caption
from cards import Card, Table
from guide import Guide
from heartbeat import Heartbeat
from picks import PART, Picks
from plane import PlanePicker
from points import Points
from session import SLOW_EVERY, Session
from share import Share
from sidebar import Sidebar
from transport import Transport

OPENING = Path(__file__).parent.parent / "opening.json"
OF_DRAWS = ("trace", "acf")
RARE = ("spread",)  # the page is painted sooner without these views, which few runs feed
DRAWN = "prediction"  # in this part's view points are drawn
TIMELINE = "events"  # this part's view lies in the transport bar
ALWAYS = ("status", "caption", "trace", "acf", "table")
# Where each part's card stands. Without a prediction the trajectory has its room.
_BOTH = """
"caption caption caption" auto
"path envelope envelope" minmax(0, 1.12fr)
"path prediction prediction" minmax(0, 1.12fr)
"trace acf table" minmax(0, 1fr) / minmax(0, 11fr) minmax(0, 6fr) minmax(0, 9fr)
"""
_ALONE = """
"caption caption caption" auto
"path envelope envelope" minmax(0, 1.2fr)
"path trace trace" minmax(0, 1fr)
"path acf table" minmax(0, 1fr) / minmax(0, 13fr) minmax(0, 6fr) minmax(0, 9fr)
"""
# A map and its spread lie beside each other.
_MAPS = """
"caption caption caption" auto
"path envelope envelope" minmax(0, 0.85fr)
"path prediction spread" minmax(0, 1.45fr)
"trace acf table" minmax(0, 0.9fr) / minmax(0, 10fr) minmax(0, 8fr) minmax(0, 8fr)
"""
_STAGE = """
:host {display: grid !important; gap: 10px; padding: 10px 14px; box-sizing: border-box; overflow: hidden;
  grid-auto-rows: minmax(0, 1fr); min-height: 0; background: var(--mui-palette-background-default)}
@media (max-height: 800px) {:host {gap: 7px; padding: 7px 10px}}
/* Panel's hidden button would take a row of the grid for itself. */
.scroll-button {display: none !important}
"""
_TOOL = {"color": "#fff", "opacity": 0.85, "fontSize": "14px", "minWidth": 0, "padding": "4px 8px"}
_PAGE = ":host {height: 100%; min-height: 0; overflow: hidden}"


class Lab:
    """The page of one session.

    Parameters
    ----------
    dark : bool
        Whether it begins dark.
    visit : address.Visit
        What the address asks for.
    """

    def __init__(self, dark: bool, visit: address.Visit) -> None:
        listing, first = catalogue.load(), visit.spec
        self._flags = {name: text for name, text in visit.flags.items() if name in address.KEPT}
        self._flags |= {"theme": "dark"} if dark else {}
        self._scene: dict[str, Any] = {}
        self._era, self._dark = 0, dark
        self.heartbeat = Heartbeat(self._key)
        self.session = Session(first, pn.state.cache["backend"], self, self.heartbeat, pn.state.curdoc)
        self.controls = Sidebar(listing, self.session.begin, self.session.change, first)
        self.caption = Caption(self.controls.apply)
        self.guide = Guide()
        self.share = Share()
        self.address = address.Address(query=self._query(first))
        self.session.on_spec = lambda spec: self.address.param.update(query=self._query(spec))
        self.session.greet(visit.sentences)
        self.narrator = Narrator()
        self.plane = PlanePicker(lambda plane: self.session.watch(plane=plane))
        self.follow = pmui.Switch(label="follow", value=True, size="small", margin=(3, 8, 0, 4))
        classes = {view.needs[0]: view for view in views.views()}
        timeline = classes.pop(TIMELINE)(dark=dark)
        self._rare = {part: classes.pop(part) for part in RARE}
        self.transport = Transport(self.session, timeline)
        built = {part: view(dark=dark) for part, view in classes.items()}
        self.picks = Picks(built, self.session.pick)
        self.points = Points(built[DRAWN], self._draw, lambda: self.controls.hold(None), self.caption.notice)
        built[DRAWN].pointer.listen(self.points.hear)
        self.cards = {part: Card(view, **self._tools(part)) for part, view in built.items()}
        self.cards["table"] = Table()
        self._link_follow(self.cards["path"].view)
        self._shown = [self.caption, self.narrator, self.transport, *self.cards.values(), Strip(timeline)]
        self.stage = pn.Column(
            self.caption.root,
            *(card.root for card in self.cards.values()),
            sizing_mode="stretch_both",
            margin=0,
            stylesheets=[_STAGE],
        )
        self._arrange(_emitted(listing, first))
        self.sidebar = [self.controls.root]
        self.main = [
            pn.Column(
                self.stage,
                self.transport.root,
                self.heartbeat.root,
                self.guide.root,
                self.share.root,
                self.address,
                self.narrator.root,
                sizing_mode="stretch_both",
                margin=0,
                stylesheets=[_PAGE],
            )
        ]
        self.tools = [_tool("Share", lambda event: self.share.show(self.session.spec, self.address.query))]
        if dark:
            self.theme(dark)
        self._obey(visit)

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        self._dark = dark
        for shown in self._shown:
            shown.theme(dark)
        self.guide.theme(dark)
        self._flags |= {"theme": "dark" if dark else "default"}
        self.address.query = self._query(self.session.spec)

    def close(self) -> None:
        """End what the page runs."""
        self.session.close()

    # ---- what the session shows ---------------------------------------------------------------------------

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Begin a new run: every view forgets the last one."""
        self._arrange(set(scene["emits"]))
        self.plane.show(scene)
        self._scene, self._era = scene, 0
        self.picks.reset()
        self.points.reset(scene)
        for shown in self._fed():
            shown.reset(scene)

    def show_frame(self, frame: dict[str, Any]) -> None:
        """Show the parts that have come."""
        era = frame.get("status", {}).get("era", self._era)
        if era != self._era:
            self._begin_era(era)
        for shown in self._fed():
            if shown.needs <= frame.keys():
                shown.update(frame)
        if PART in frame:
            self.picks.mark(frame[PART])

    def show_devices(self, names: list[str]) -> None:
        """Offer the devices of the workers."""
        self.controls.devices(names)

    def show_notice(self, sentence: str, failed: bool) -> None:
        """Say what the run waits for or what has befallen it."""
        self.caption.notice(sentence, failed=failed)
        self.narrator.say(sentence)

    def show_error(self, error: BnnvizError) -> None:
        """Say what cannot be done, beside the control it belongs to if there is one."""
        self.narrator.say(error.sentence)
        if not self.controls.error(error):
            self.caption.notice(error.sentence, failed=True)

    def wanted(self, turn: int | None) -> set[str]:
        """Name the parts that this turn's views need: the hot ones, and the slow ones in their turn."""
        fed = self._fed()
        slow = [shown for shown in fed if not shown.hot]
        due = slow if turn is None else slow[turn::SLOW_EVERY]
        wanted = {part for shown in [*due, *(s for s in fed if s.hot)] for part in shown.needs}
        return wanted | {PART} if self.picks.active and (turn is None or not turn) else wanted

    # ---- helpers ------------------------------------------------------------------------------------------

    def _query(self, spec: Spec) -> str:
        """Return what the address says while this spec runs."""
        said = {} if link.shareable(spec) else link.to_query(spec)
        return link.query_text({"page": "lab", **said, **self._flags})

    def _obey(self, visit: address.Visit) -> None:
        """Do what the address asks for besides the spec."""
        self.session.playing = visit.on("play")
        self.transport.show_playing()
        self.transport.show_speed(visit.flags.get("speed", ""))

    def _fed(self) -> list[Any]:
        return [shown for shown in self._shown if shown.needs <= self._emits]

    def _begin_era(self, era: int) -> None:
        """Empty the views of draws, which have begun anew, and those of what was picked among them."""
        self._era = era
        self.picks.forget()
        for part in OF_DRAWS:
            self.cards[part].reset(self._scene)

    def _arrange(self, emits: set[str]) -> None:
        """Show the cards that a run feeds, and share the stage among them."""
        self._emits = frozenset(emits)
        for part in self._emits & self._rare.keys():
            self._add_card(part, self._rare.pop(part))
        for card in self.cards.values():
            card.root.visible = card.needs <= self._emits
        both = _MAPS if "spread" in emits else _BOTH
        self.stage.styles = {"grid-template": both if "prediction" in emits else _ALONE}

    def _add_card(self, part: str, view: type[views.View]) -> None:
        card = self.cards[part] = Card(view(dark=self._dark))
        self._shown.append(card)
        self.stage.append(card.root)

    def _tools(self, part: str) -> dict[str, list[Any]]:
        if part == DRAWN:
            return {"tools": self.points.tools}
        return {"tools": [self.plane.kind, self.follow], "below": [self.plane.coordinates]} if part == "path" else {}

    def _draw(self, rows: list[list[float]]) -> None:
        """Let the run go on with other data points."""
        self.controls.hold(rows)
        self.session.draw(rows)

    def _link_follow(self, view: Any) -> None:
        """Let the switch and the view's ranges, which a user may also drag, agree."""
        self.follow.param.watch(lambda event: setattr(view, "follow", event.new), "value")
        view.listen(lambda follow: self.follow.param.update(value=follow))

    def _key(self, name: str) -> None:
        if name == "play":
            self.transport.play()
        elif name == "reset":
            self.transport.again()
        elif name == "help":
            self.guide.toggle()
        else:
            self.transport.step(name)


class Strip:
    """A view that has no card of its own."""

    def __init__(self, view: views.View) -> None:
        self.needs, self.hot = frozenset(view.needs), view.hot
        self.reset, self.update, self.theme = view.reset, view.update, view.theme


def _tool(label: str, on_click: Callable[[Any], None]) -> pmui.Button:
    """Return a button for the header."""
    button = pmui.Button(label=label, variant="text", size="small", margin=(0, 2), sx=_TOOL)
    button.on_click(on_click)
    return button


def opening() -> Spec:
    """Return the spec that the page opens on."""
    return Spec.from_json(json.loads(OPENING.read_text(encoding="utf-8")))


def build(dark: bool) -> Lab:
    """Build the page for the current session and begin its loop."""
    lab = Lab(dark, address.read(pn.state.session_args, opening()))
    lab.session.open()
    return lab


def _emitted(listing: dict[str, Any], spec: Spec) -> set[str]:
    """Return what a run of this spec will emit, as far as the catalogue knows."""
    items = [*listing["targets"], *listing["samplers"]]
    named = [set(item["emits"]) for item in items if item["name"] in (spec.target, spec.sampler)]
    return set(ALWAYS).union(*named)

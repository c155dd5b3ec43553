"""What pages have in common whose run has nothing but settings: one stage of cards, one list of controls."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

import panel as pn

from bnnviz import views
from bnnviz.errors import BnnvizError
from bnnviz.specs import url
from bnnviz.specs.demo import PlainSpec
from bnnviz_app import address, projector, stage
from bnnviz_app.components.cards.caption import Caption
from bnnviz_app.components.cards.cards import Card, Table
from bnnviz_app.components.controls.controls import Controls
from bnnviz_app.components.controls.sidebar import section
from bnnviz_app.components.guidance.help import Guide
from bnnviz_app.components.guidance.narrator import PACE_S, Narrator
from bnnviz_app.components.run.share import Share
from bnnviz_app.components.run.tools import tool
from bnnviz_app.components.run.transport import Transport
from bnnviz_app.heartbeat import Heartbeat
from bnnviz_app.session import SLOW_EVERY, Session


class PlainTransport(Transport):
    """Buttons for a run without a timeline; a class says which figures it has, and whether it steps to events too."""

    steps_events: ClassVar[bool] = False

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin anew."""
        self.show_playing()
        self._show_events(False)
        self._status.object = ""

    def _has_room(self, status: dict[str, Any]) -> bool:
        return True


class PlainPage:
    """The page of one session; a class says of what.

    Parameters
    ----------
    dark : bool
        Whether it begins dark.
    visit : address.Visit
        What the address asks for.
    """

    name: ClassVar[str]  # in the address
    heading: ClassVar[str]  # of the controls
    spec: ClassVar[type[PlainSpec]]
    titles: ClassVar[dict[str, str]]  # of choices
    words: ClassVar[dict[str, str]]  # explained in the guide
    parts: ClassVar[tuple[str, ...]]  # of a frame, each with its view
    grid: ClassVar[str] = ""
    transport_class: ClassVar[type[PlainTransport]]
    speed: ClassVar[str] = "0"  # steps a second at first; 0: as fast as it goes

    def __init__(self, dark: bool, visit: address.Visit) -> None:
        self._flags = {name: text for name, text in visit.flags.items() if name in address.KEPT}
        self._flags |= {"theme": "dark"} if dark else {}
        self.large, self._said_at = False, 0.0
        self.on_large: Callable[[], None] = lambda: None  # told when the projector is switched on or off
        self.heartbeat = Heartbeat(self._key)
        self.session = Session(visit.spec, pn.state.cache["backend"], self, self.heartbeat, pn.state.curdoc)
        self._column = pn.Column(*self._controls(visit.spec), sizing_mode="stretch_width", margin=(2, 0, 16, 0))
        self.caption = Caption(lambda settings: None)
        self.guide, self.share = Guide(None, self.words), Share("picture")
        self.address = address.Address(query=self._query(visit.spec))
        self.session.on_spec = lambda spec: self._readdress()
        self.narrator = Narrator()
        self.transport = self.transport_class(self.session, None)
        made = {view.needs[0]: view for view in views.views_for({"emits": self.parts})}
        self.cards = [self._card(made[part](dark=dark)) for part in self.parts]
        self.table = self._table()
        self.stage = pn.Column(
            self.caption.root,
            *(card.root for card in (*self._more_cards(), *self.cards)),
            self.table.root,
            sizing_mode="stretch_both",
            margin=0,
            stylesheets=[stage.STAGE],
            styles={"grid-template": self.grid} if self.grid else {},
        )
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
                stylesheets=[stage.PAGE, projector.PAGE],
            )
        ]
        self.tools = pn.Row(
            tool("Share", lambda event: self.share.show(self.session.spec, self.address.query)),
            tool("Projector", lambda event: self._project()),
            margin=0,
            align="center",
            css_classes=["tour-tools"],
        )
        if visit.on("projector"):
            self._magnify(True)
        if dark:
            self.theme(dark)
        self.session.playing = visit.on("play")
        self.transport.show_playing()
        self.transport.show_speed(visit.flags.get("speed", self.speed))
        self.session.greet(list(visit.sentences))

    @property
    def sidebar(self) -> list[Any]:
        """What stands at the left."""
        return [] if self.large or "sidebar" in self._flags.get("hide", "").split(",") else [self._column]

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        for shown in (*self._shown(), self.guide):
            shown.theme(dark)
        self._flags |= {"theme": "dark" if dark else "default"}
        self._readdress()

    def close(self) -> None:
        """End what the page runs."""
        self.session.close()

    # ---- what the session shows ---------------------------------------------------------------------------

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Show a new run."""
        self.show_waiting(False)
        for shown in self._shown():
            shown.reset(scene)

    def show_waiting(self, waiting: bool) -> None:
        """Dim what is still seen of the run before."""
        self.stage.css_classes = ["waiting"] if waiting else []

    def show_frame(self, frame: dict[str, Any]) -> None:
        """Show the parts that have come."""
        for shown in self._shown():
            if shown.needs <= frame.keys():
                shown.update(frame)
        if "caption" in frame:
            self._narrate(frame["caption"])

    def show_devices(self, names: list[str]) -> None:
        """Take no notice: so little work needs no device."""

    def show_playing(self) -> None:
        """Make the play button say what it would do."""
        self.transport.show_playing()

    def show_notice(self, sentence: str, failed: bool) -> None:
        """Say what is waited for or what has befallen the run."""
        self.caption.notice(sentence, failed=failed)
        self.narrator.say(sentence)

    def show_error(self, error: BnnvizError) -> None:
        """Say what cannot be done, beside the control it belongs to if there is one."""
        self.show_waiting(False)
        self.narrator.say(error.sentence)
        self._readdress()
        if not self._beside(error):
            self.caption.notice(error.sentence, failed=True)

    def wanted(self, turn: int | None) -> set[str]:
        """Name the parts that this turn's views need: hot views each time, the rest in turn."""
        slow = [shown for shown in self._shown() if not shown.hot]
        due = slow if turn is None else slow[turn::SLOW_EVERY]
        return {part for shown in [*due, *(s for s in self._shown() if s.hot)] for part in shown.needs}

    # ---- helpers ------------------------------------------------------------------------------------------

    def _controls(self, spec: PlainSpec) -> list[Any]:
        """Make the controls, and return what stands at the left."""
        self.controls = Controls(spec.described(), self._renew, self.titles)
        self.controls.set(spec.settings)
        return [section(self.heading), self.controls.root]

    def _beside(self, error: BnnvizError) -> bool:
        """Say what is wrong beside its control; False where there is none."""
        known = bool(self.sidebar) and error.field in self.controls
        if known:
            self.controls.error(error.field, error.sentence)
        return known

    def _card(self, view: views.View) -> Card:
        return Card(view)

    def _table(self) -> Any:
        """Return the card of figures."""
        return Table()

    def _more_cards(self) -> list[Any]:
        """Return cards that are no views."""
        return []

    def _values(self) -> dict[str, Any]:
        """Return what the controls show."""
        return self.controls.values()

    def _renew(self, changed: dict[str, Any]) -> None:
        """Begin what the controls show."""
        self.controls.clear()
        try:
            spec = self.spec(self._values()).checked()
        except BnnvizError as error:
            self.show_error(error)
            return
        if spec != self.session.spec:
            self.session.begin(spec)

    def _shown(self) -> list[Any]:
        return [self.caption, self.transport, *self._more_cards(), *self.cards, self.table]

    def _narrate(self, caption: dict[str, Any]) -> None:
        now = time.monotonic()
        if not self.session.playing or now - self._said_at >= PACE_S:
            self._said_at = now
            self.narrator.say(" ".join(part for part in (caption["text"], caption["warning"]) if part))

    def _query(self, spec: PlainSpec) -> str:
        return url.query_text({"page": self.name, **spec.to_query(), **self._flags})

    def _readdress(self) -> None:
        self.address.query = self._query(self.session.spec)

    def _magnify(self, large: bool) -> None:
        self.large = large
        projector.dress(self.main[0], large)
        for shown in self._shown():
            shown.magnify(large)

    def _project(self) -> None:
        """Turn projector mode on or off; what runs goes on."""
        self._magnify(not self.large)
        self._flags = {name: text for name, text in self._flags.items() if name != "projector"}
        self._flags |= {"projector": "1"} if self.large else {}
        self._readdress()
        self.on_large()

    def _key(self, name: str) -> None:
        if name == "play":
            self.transport.play()
        elif name == "reset":
            self.transport.again()
        elif name == "help":
            self.guide.toggle()
        elif name in ("proposal", "event"):
            self.transport.step(name if self.transport.steps_events else "proposal")


def opened(page_class: type[PlainPage], dark: bool) -> PlainPage:
    """Build a page for the current session and begin its loop."""
    opening = page_class.spec().checked()
    page = page_class(dark, address.read(pn.state.session_args, opening))
    page.session.open()
    return page

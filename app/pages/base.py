"""Define the common parts of pages: address, theme, projector mode, and the views of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import panel as pn

from bnnviz.errors import BnnvizError
from bnnviz.figures import listing
from bnnviz.figures.live.view import View
from bnnviz.lessons import content
from bnnviz.specs import catalogue, url
from bnnviz.specs.run import Spec
from bnnviz_app import address, kept_runs, opening_frames
from bnnviz_app.access import roles
from bnnviz_app.classroom import requests
from bnnviz_app.components.cards.caption import Caption
from bnnviz_app.components.cards.cards import Card, FiguresCard
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.guidance.help import Guide
from bnnviz_app.components.guidance.narrator import Narrator
from bnnviz_app.components.run.share import Share
from bnnviz_app.components.run.transport import StepTransport, Transport
from bnnviz_app.components.widgets import WideColumn, button, set_class
from bnnviz_app.heartbeat import Heartbeat
from bnnviz_app.pages import PAGES
from bnnviz_app.session import Session
from bnnviz_app.theme import SHEETS

_THEME = {False: "default", True: "dark"}  # in the address
_ALWAYS = ("status", "caption", "trace", "acf", "table", "timeline")  # parts of every run
PRESETS = Path(__file__).parents[1] / "presets"


def preset(name: str) -> Any:
    """Read a JSON file of the folder of presets."""
    return json.loads((PRESETS / f"{name}.json").read_text(encoding="utf-8"))


class Page:
    """Show the page of one session."""

    name: ClassVar[str]  # in the address
    leads: ClassVar[bool] = True  # whether the class follows the teacher to this page

    def __init__(self, dark: bool, flags: Mapping[str, str]) -> None:
        self._flags: dict[str, str] = {}
        self._keep(flags, dark)
        self.dark, self.large = dark, address.is_on(flags, "projector")
        self._leads = self.leads and requests.leads()
        self.on_large: Callable[[], None] = lambda: None  # called when projector mode changes
        self.on_menu: Callable[[], None] = lambda: None  # called when the menu or the links in it change
        self.on_settings: Callable[[], None] = lambda: None  # opens or closes the drawer of settings
        self.on_close: Callable[[], None] = lambda: None  # closes it
        self.on_theme: Callable[[], None] = lambda: None  # turns light or dark
        self.guide, self.narrator, self.address = Guide(self.name), Narrator(), address.Address()

    @property
    def settings(self) -> Any:
        """The content of the drawer of settings; None without one."""
        return None

    def menu(self) -> dict[str, Callable[[], Any]]:
        """Return the items of the page's menu with their actions."""
        return {
            "Keys": self.guide.toggle,
            "Light or dark": self.on_theme,
            "Leave projector mode" if self.large else "Projector mode": self._project,
        }

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        self.dark = dark
        self._flags |= {"theme": _THEME[dark]}
        self._dress()
        self._readdress()

    @property
    def carried(self) -> dict[str, str]:
        """The parameters that links to other pages carry: the appearance."""
        return {name: self._flags[name] for name in address.CARRIED if name in self._flags}

    def close(self) -> None:
        """Stop all runs of the page."""

    def _keep(self, flags: Mapping[str, str], dark: bool) -> None:
        """Keep the flags that stay in the address; a theme of the browser's alone stays if it is dark."""
        self._flags |= {name: flags[name] for name in address.CARRIED if name in flags}
        if dark or "theme" in flags:
            self._flags["theme"] = _THEME[dark]

    def _project(self) -> None:
        """Turn projector mode on or off; the run continues."""
        self.large = not self.large
        self._flags.pop("projector", None)
        self._flags |= {"projector": "1"} if self.large else {}
        self._dress()
        self._readdress()
        self.on_large()

    def _dress(self) -> None:
        """Apply theme and projector mode."""

    def _in_address(self) -> dict[str, str]:
        """Return the address parameters of the page's content."""
        raise NotImplementedError

    def _query(self) -> dict[str, str]:
        """Return the shareable parameters of the address."""
        return {"page": self.name, **self._in_address(), **self._flags}

    def _own_query(self) -> dict[str, str]:
        """Return the parameters for this browser only."""
        return {}

    def _readdress(self) -> None:
        self.address.query = url.query_text(self._query() | self._own_query())
        self.on_menu()
        if self._leads:
            place, titles, step = self._led_to()
            requests.current().move(f"?{url.query_text({'page': self.name, **place})}", titles, step)

    def _led_to(self) -> tuple[dict[str, str], dict[str, str], int | None]:
        """Return where a class follows the teacher: address parameters, title in each language, and step if any."""
        return {}, {content.DEFAULT: PAGES[self.name].title}, None


class TextPage(Page):
    """Show a page of text, which scrolls and runs nothing."""

    listed: ClassVar[str]  # the parameter of the address that names what is shown

    @classmethod
    def build(cls, dark: bool) -> TextPage:
        """Build the page for the current session."""
        return cls(dark, *address.named(pn.state.session_args, cls.listed))

    def _lay_out(self, *objects: Any) -> None:
        """Stack these objects."""
        whole = {"flex": "0 0 auto", "max-height": "none"}  # as high as its content: the page scrolls
        text = WideColumn(*objects, min_width=0, margin=(0, 24, 30, 24), styles=whole)
        hidden = (self.guide.root, self.address, self.narrator.root)
        sheets = [SHEETS["text_page"]]
        self._outer = pn.Column(text, *hidden, sizing_mode="stretch_both", min_width=0, stylesheets=sheets)
        self.main = [self._outer]

    def _dress(self) -> None:
        set_class(self._outer, "large", self.large)


class RunPage(Page):
    """Show a run on a stage of cards, with controls on the left and buttons below; subclasses define the run."""

    what: ClassVar[str] = "picture"  # is shared
    parts: ClassVar[tuple[str, ...]] = ()  # of a frame, each with its view
    grid: ClassVar[str] = ""
    transport_class: ClassVar[type[Transport]] = StepTransport
    speed: ClassVar[str] = ""  # steps a second at first, where the address names none
    opens_recorded: ClassVar[bool] = True  # whether an address without a spec shows a recorded run

    def __init__(self, dark: bool, visit: address.Visit) -> None:
        super().__init__(dark, visit.flags)
        self._scene: dict[str, Any] = {}
        self._opened: Any = None  # the spec of a page that opens without one
        self._asks = {name: visit.flags[name] for name in ("play", "speed") if name in visit.flags}
        self.heartbeat = Heartbeat(self._key)
        self.session = self._session(visit.spec, self.heartbeat)
        self.narrator = Narrator(lambda: self.session.playing)
        self.controls: Any = None
        self.left = self._controls(visit.spec)
        self.caption, self.share = Caption(self._remedy), Share(self.what)
        self.transport = self._transport()
        self.stage = pn.Column(sizing_mode="stretch_both", stylesheets=[SHEETS["stage"]])
        self.stage.styles = {"grid-template": self.grid} if self.grid else {}
        self.components: list[PageComponent] = []
        self._build(visit)
        self.session.page, self.session.resumes = self.name, visit.flags.get("run")
        self.session.again = visit.on("again")
        self.session.on_begin = self._readdress
        self._lay_out()
        if dark or self.large:
            self._dress()
        self._obey(visit)
        self._readdress()

    @classmethod
    def build(cls, dark: bool) -> RunPage:
        """Build the page for the current session and begin its loop."""
        page = cls(dark, cls.visited())
        page.session.open()
        return page

    @classmethod
    def opening(cls) -> Any:
        """Return the spec that the page opens on."""
        raise NotImplementedError

    @classmethod
    def visited(cls) -> address.Visit:
        """Read the parameters of the current session's address."""
        opening = cls.opening()
        found = roles.present().admit(address.read(pn.state.session_args, opening), opening)
        asked = found.flags.get("page", cls.name)
        if asked != cls.name:
            found.sentences.append(f"There is no page {asked!r} here: this is the first one.")
        return found

    @property
    def shared(self) -> Any:
        """The spec that the address and the dialog Share describe."""
        return self.session.spec

    @property
    def settings(self) -> Any:
        """The content of the drawer of settings."""
        return self.left

    def menu(self) -> dict[str, Callable[[], Any]]:
        """Return the items of the page's menu with their actions."""
        share = {"Share": lambda: self.share.show(self.shared, url.query_text(self._query()))}
        return share | {"Restart": self.transport.again} | super().menu()

    def close(self) -> None:
        """Stop all runs of the page."""
        self.session.close()

    # ---- calls of the session -----------------------------------------------------------------------------

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Begin a new run and reset all components."""
        self.show_waiting(False)
        self._scene = scene
        for shown in self._fed():
            shown.reset(scene)

    def show_waiting(self, waiting: bool) -> None:
        """Dim the views of the previous run."""
        self.stage.css_classes = ["waiting"] if waiting else []

    def show_frame(self, frame: dict[str, Any]) -> None:
        """Show the parts of a frame."""
        for shown in self._fed():
            if shown.needs <= frame.keys():
                shown.update(frame)

    def show_devices(self, names: list[str]) -> None:
        """Offer the devices of the workers."""
        self.controls.devices(names)

    def show_playing(self) -> None:
        """Update the label of the play button."""
        self.transport.show_playing()

    def show_notice(self, sentence: str, failed: bool) -> None:
        """Show a message on the state of the run."""
        self.caption.notice(sentence, failed=failed)
        self.narrator.say(sentence)

    def show_error(self, error: BnnvizError) -> None:
        """Show an error, next to its control if there is one."""
        self.show_waiting(False)
        self.narrator.say(error.message.text)
        self._readdress()
        self._beside(error)
        # A control may be out of sight.
        self.caption.notice(error.message.text, failed=True)

    def show_spec(self, spec: Any) -> None:
        """Show the spec with the changes in the run's log."""
        self.controls.show(spec)
        self._readdress()

    def requested(self) -> set[str]:
        """Return the names of the parts that the views need."""
        return {part for shown in self._fed() for part in shown.needs}

    # ---- hooks of subclasses ------------------------------------------------------------------------------

    def _session(self, spec: Any, heartbeat: Heartbeat) -> Session:
        """Create the session of the page's run."""
        return Session(spec, pn.state.cache["backend"], self, heartbeat, pn.state.curdoc)

    def _controls(self, spec: Any) -> Any:
        """Create the controls, and return the contents of the sidebar."""
        raise NotImplementedError

    def _transport(self) -> Transport:
        return self.transport_class(self.session)

    def _remedy(self, settings: dict[str, Any]) -> None:
        """Take over settings that a warning offers."""

    def _build(self, visit: address.Visit) -> None:
        """Create the cards, and place them on the stage."""
        made = {figure.needs[0]: figure for figure in listing.figures_for({"emits": self.parts})}
        self.cards = [self._card(View(made[part], dark=self.dark)) for part in self.parts]
        self.table = self._table()
        cards = [*self._more_cards(), *self.cards, self.table]
        self.components = [self.caption, self.transport, *cards, self.narrator]
        self.components += [self.controls] if isinstance(self.controls, PageComponent) else []
        self.stage[:] = [self.caption.root, *(card.root for card in cards)]

    def _card(self, view: View) -> Card:
        return Card(view)

    def _table(self) -> PageComponent:
        """Return the card of figures."""
        return FiguresCard()

    def _more_cards(self) -> list[Any]:
        """Return cards without views."""
        return []

    def _above(self) -> list[Any]:
        """Return the rows above the stage."""
        return [self._bar(*self.controls.bar)]

    def _bar(self, *controls: Any) -> pn.FlexBox:
        """Return the line above the stage: these controls, and the button that opens the settings."""
        look = {"icon": "tune", "margin": (4, 4), "min_height": 32, "align": "center"}
        opens = button("Settings", lambda: self.on_settings(), **look)
        return pn.FlexBox(
            *(*controls, *([opens] if self.settings else [])),
            sizing_mode="stretch_width",
            align_items="center",
            styles={"padding": "2px 12px", "flex": "none"},
            css_classes=["area-bar"],
        )

    def _below(self) -> list[Any]:
        """Return the rows between the stage and the transport."""
        return []

    def _beyond(self) -> list[Any]:
        """Return objects that stay hidden until requested."""
        return []

    def _fed(self) -> list[PageComponent]:
        """Return the components that receive frames."""
        return self.components

    def _beside(self, error: BnnvizError) -> None:
        """Show an error next to its control, if there is one."""
        self.controls.spec = self.shared
        self.controls.error(error)

    def _obey(self, visit: address.Visit) -> None:
        """Apply the parameters of the address other than the spec."""
        # A page without a spec shows a recorded run or plays, a link does not; a class would fill the workers.
        opens = not visit.names and "play" not in visit.flags and "run" not in visit.flags
        self.session.recorded = opening_frames.read(self.name, visit.spec) if opens and self.opens_recorded else None
        self._opened = self.shared if opens else None
        plays = opens and roles.present().keeps and self.session.recorded is None
        self.session.playing = plays or visit.on("play")
        self.transport.show_playing()
        run = kept_runs.runs().find(self.session.resumes, self.session.browser)
        kept = self.speed if run is None else f"{run.speed or 0:g}"
        self.transport.show_speed(visit.flags.get("speed", kept))
        self.session.opened |= set() if run is None else run.opened
        self.session.greet(list(visit.sentences))

    def _keys(self) -> dict[str, Callable[[], None]]:
        """Return the actions of the keys."""
        step, events = self.transport.step, self.transport.steps_events
        return {
            "play": self.transport.play,
            "reset": self.transport.again,
            "help": self.guide.toggle,
            "close": self.on_close,
            "proposal": lambda: step("proposal"),
            "event": lambda: step("event" if events else "proposal"),
        }

    # ---- helpers ------------------------------------------------------------------------------------------

    def _in_address(self) -> dict[str, str]:
        spec = self.shared
        # Before the run has begun, a page that is loaded again must open in the same way.
        opens = self.session.run_id is None and spec == self._opened
        return {} if opens or spec.shareable() else spec.to_query()

    def _own_query(self) -> dict[str, str]:
        return self._asks if self.session.run_id is None else {"run": self.session.run_id}

    def _lay_out(self) -> None:
        """Arrange the page around the stage."""
        bar, hidden = (self.transport.root, self.heartbeat.root), (self.guide.root, self.share.root)
        around = (
            *self._above(),
            self.stage,
            *self._below(),
            *bar,
            *hidden,
            self.address,
            self.narrator.root,
            *self._beyond(),
        )
        self.main = [pn.Column(*around, sizing_mode="stretch_both", stylesheets=[SHEETS["page"]])]

    def _dress(self) -> None:
        set_class(self.main[0], "large", self.large)
        for shown in self.components:
            shown.theme(self.dark)
            shown.magnify(self.large)

    def _key(self, name: str) -> None:
        keys = self._keys()
        if name in keys:
            keys[name]()


def emitted(spec: Spec) -> set[str]:
    """Return the parts that a run of this spec emits, according to the catalogue."""
    listing = catalogue.load()
    items = [*listing["targets"], *listing["samplers"]]
    named = [set(item["emits"]) for item in items if item["name"] in (spec.target, spec.sampler)]
    return set(_ALWAYS).union(*named)

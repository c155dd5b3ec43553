"""The Lab: one sampler on one target, step by step or at full speed, in linked views."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz import views
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue, url
from bnnviz.specs.run import Spec
from bnnviz.views.chain.journey import JourneyView
from bnnviz.views.layout import BACKS, grid
from bnnviz_app import address, projector, stage
from bnnviz_app.components.cards.branches import Futures
from bnnviz_app.components.cards.caption import Caption
from bnnviz_app.components.cards.card_pairs import Turns
from bnnviz_app.components.cards.cards import Card, Table
from bnnviz_app.components.cards.selection import PART, Picks
from bnnviz_app.components.controls.block_picker import BlockPicker
from bnnviz_app.components.controls.component_picker import FollowPicker
from bnnviz_app.components.controls.data_editor import Points
from bnnviz_app.components.controls.plane_picker import PlanePicker
from bnnviz_app.components.controls.sidebar import Sidebar
from bnnviz_app.components.guidance import scenes
from bnnviz_app.components.guidance.help import Guide
from bnnviz_app.components.guidance.narrator import Narrator
from bnnviz_app.components.guidance.scene_bar import Menu, SceneBar
from bnnviz_app.components.guidance.scenes import Action, Scene, Step
from bnnviz_app.components.guidance.tour import Tour
from bnnviz_app.components.run.record_button import RecordButton, going_on
from bnnviz_app.components.run.share import Share
from bnnviz_app.components.run.tools import tool
from bnnviz_app.components.run.transport import Transport
from bnnviz_app.components.run.warm_start import dropped, set_out
from bnnviz_app.heartbeat import Heartbeat
from bnnviz_app.session import SLOW_EVERY, Session

OPENING = Path(__file__).parent.parent / "presets" / "lab.json"
OF_DRAWS = ("trace", "acf", "density", "weights", "marginal", "ratios")
OF_PATH = {"path", "envelope", "events"}
RARE = (
    "spread",
    "density",
    "population",
    "gauge",
    "history",
)  # the page is painted sooner without these views, which few runs feed
WEIGHTS = "weights"  # this part's view chooses a coordinate
DRAWN = "prediction"  # in this part's view points are drawn
EVENTS = "events"  # this part lies in the transport bar, with what else is known of the run
ALWAYS = ("status", "caption", "trace", "acf", "table", "timeline")
# What the parts are called in a link and in a scene, besides their own names.
CALLED = {"trajectory": "path", "thinning": "envelope"}
_RING = "3px solid var(--mui-palette-primary-main)"


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
        self.large = False
        self.on_large: Callable[[], None] = lambda: None  # told when the projector is switched on or off
        self._era, self._dark = 0, dark
        self.heartbeat = Heartbeat(self._key)
        self.session = Session(first, pn.state.cache["backend"], self, self.heartbeat, pn.state.curdoc)
        self.controls = Sidebar(listing, self._begin, self.session.change, first)
        self.caption = Caption(self.controls.apply)
        self._guided = visit.flags.get("tour") == "0" or visit.on("projector") or "scene" in visit.flags
        self.tour = Tour()
        self.guide = Guide(self.tour.start)
        self.share = Share()
        self.menu = Menu()
        self.futures = Futures(self.session)
        self.session.on_jump = self.controls.show
        self.bar = SceneBar(self._show_step, self._leave_scene, self._list_scenes)
        self.caption.reserved = lambda: self.bar.asking
        self._led: Spec | None = None
        self._held = False  # a question has paused what runs
        self._hidden = _parts(visit.flags.get("hide", ""))
        self.address = address.Address(query=self._query(first))
        self.session.on_spec = lambda spec: self._readdress()
        self.narrator = Narrator()
        self.plane = PlanePicker(lambda plane: self.session.watch(plane=plane))
        self.component = FollowPicker(lambda component: self.session.watch(component=component))
        self.block = BlockPicker(lambda block: self.session.watch(block=block))
        self.turns = Turns(self._turn)
        self.follow = pmui.Switch(label="follow", value=True, size="small", margin=(3, 8, 0, 4))
        classes = {view.needs[0]: view for view in views.views()}
        classes.pop(EVENTS)
        timeline = JourneyView(dark=dark)
        self._rare = {part: classes.pop(part) for part in (*RARE, *BACKS)}
        self.transport = Transport(self.session, timeline)
        built = {part: view(dark=dark) for part, view in classes.items()}
        self.picks = Picks(built, self.session.pick)
        self.points = Points(built[DRAWN], self._draw, lambda: self.controls.hold(None), self.caption.notice)
        built[DRAWN].pointer.listen(self.points.hear)
        self.cards = {part: self._card(part, view) for part, view in built.items()}
        self.cards["table"] = Table()
        self._link_follow(self.cards["path"].view)
        self._shown = [self.caption, self.narrator, self.futures, self.transport, *self.cards.values(), Strip(timeline)]
        self.stage = pn.Column(
            self.caption.root,
            *(card.root for card in self.cards.values()),
            sizing_mode="stretch_both",
            margin=0,
            stylesheets=[stage.STAGE],
        )
        self._arrange(_emitted(listing, first))
        self.main = [
            pn.Column(
                self.bar.root,
                self.futures.root,
                self.stage,
                self.transport.root,
                self.heartbeat.root,
                self.guide.root,
                self.share.root,
                self.menu.root,
                self.address,
                self.narrator.root,
                self.tour,
                sizing_mode="stretch_both",
                margin=0,
                stylesheets=[stage.PAGE, projector.PAGE],
            )
        ]
        self.recorder = RecordButton(self.session, lambda sentence: self.show_notice(sentence, failed=False))
        self._shown.append(self.recorder)
        self.tools = pn.Row(
            self.recorder.root,
            tool("Scenes", lambda event: self._list_scenes()),
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
        self._obey(visit)

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        self._dark = dark
        for shown in self._shown:
            shown.theme(dark)
        self.guide.theme(dark)
        self._flags |= {"theme": "dark" if dark else "default"}
        self._readdress()

    @property
    def sidebar(self) -> list[Any]:
        """What stands at the left; what is not shown could still be reached by the keyboard, and is left out."""
        return [] if self.large or "sidebar" in self._hidden else [self.controls.root]

    def close(self) -> None:
        """End what the page runs."""
        self.session.close()

    # ---- what the session shows ---------------------------------------------------------------------------

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Begin a new run: every view forgets the last one."""
        self.show_waiting(False)
        self.controls.note(scene["remarks"])
        self._arrange(set(scene["emits"]))
        self.plane.show(scene)
        self.component.show(scene)
        self.block.show(scene)
        self._scene, self._era = scene, 0
        self.picks.reset()
        self.points.reset(scene)
        for shown in self._fed():
            shown.reset(scene)

    def show_waiting(self, waiting: bool) -> None:
        """Dim what is still seen of the run before."""
        self.stage.css_classes = ["waiting"] if waiting else []

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
        if not self._guided:
            self._guided = self.tour.offered = True

    def show_devices(self, names: list[str]) -> None:
        """Offer the devices of the workers."""
        self.controls.devices(names)

    def show_playing(self) -> None:
        """Make the play button say what it would do."""
        self.transport.show_playing()

    def show_notice(self, sentence: str, failed: bool) -> None:
        """Say what the run waits for or what has befallen it."""
        self.caption.notice(sentence, failed=failed)
        self.narrator.say(sentence)

    def show_error(self, error: BnnvizError) -> None:
        """Say what cannot be done, beside the control it belongs to if there is one."""
        self.show_waiting(False)
        self.narrator.say(error.sentence)
        self.controls.take_back(self.session.spec)
        self.session.on_spec(self.session.spec)
        beside = bool(self.sidebar) and self.controls.error(error)
        # A page that has nothing to show yet says it where it cannot be missed.
        if not beside or not self._scene:
            self.caption.notice(error.sentence, failed=True)

    def wanted(self, turn: int | None) -> set[str]:
        """Name the parts that this turn's views need: the hot ones, and the slow ones in their turn."""
        fed = self._fed()
        slow = [shown for shown in fed if not shown.hot]
        due = slow if turn is None else slow[turn::SLOW_EVERY]
        wanted = {part for shown in [*due, *(s for s in fed if s.hot)] for part in shown.needs}
        return wanted | {PART} if self.picks.active and (turn is None or not turn) else wanted

    # ---- helpers ------------------------------------------------------------------------------------------

    def _begin(self, spec: Spec) -> None:
        """Run what the controls say, and tell where it does not set out from a recording any more."""
        said = dropped(self.session.spec, spec)
        self.session.begin(spec)
        if said:
            self.session.greet([said], failed=False)

    def _query(self, spec: Spec) -> str:
        """Return what the address says while this spec runs."""
        said = {} if spec.shareable() else spec.to_query()
        scene = self.bar.scene
        if scene is not None:
            place = {"scene": scene.name, "step": str(self.bar.number + 1)}
            said = place if spec == self._led else place | said
        return url.query_text({"page": "lab", **said, **self._flags})

    def _readdress(self) -> None:
        self.address.query = self._query(self.session.spec)

    def _obey(self, visit: address.Visit) -> None:
        """Do what the address asks for besides the spec."""
        sentences = list(visit.sentences)
        name = visit.flags.get("scene")
        if name in scenes.load():
            sentences += self._enter_scene(scenes.load()[name], visit)
        elif name is not None:
            sentences.append(f"There is no scene {name[:40]!r}; choose one under Scenes.")
        if name not in scenes.load():
            self.session.playing = visit.on("play")
            self.transport.show_playing()
            self.transport.show_speed(visit.flags.get("speed", ""))
        self._conceal()
        self.session.greet(sentences + visit.said, failed=bool(sentences))

    # ---- scenes -------------------------------------------------------------------------------------------

    def _enter_scene(self, scene: Scene, visit: address.Visit) -> list[str]:
        """Show a scene at the step of the address, and return what is to be said of the address."""
        asked, count = visit.flags.get("step", "1"), len(scene.steps)
        number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else 0
        taken = min(max(number, 1), count)
        self.bar.enter(scene, taken - 1)
        if visit.names:
            # The reader has gone on from the scene: the address has the whole spec.
            self.controls.show(visit.spec)
            self.session.begin(visit.spec)
        if number == taken:
            return []
        return [f"The scene has steps 1 to {count}, and none {asked[:20]!r}; step {taken} was taken."]

    def _show_step(self, step: Step, number: int, anew: bool) -> None:
        if self.bar.asking and not anew and self.session.playing:
            self._held = True
            self.transport.play()
        if anew or (step.begins is not None and not self.bar.asking):
            spec, actions = self.bar.scene.beginning(number, self.bar.asking)
            self.session.playing = False
            self.transport.show_speed("0")
            self.controls.show(spec)
            self._arrange(_emitted(catalogue.load(), spec))
            self.session.begin(spec, (lambda: self._do(actions)) if actions else None)
        elif not self.bar.asking:
            self._do(step.actions)
            if self._held:
                self._do([("play", 1)])
        self._held = self._held and self.bar.asking
        # What runs is as the scene has it until the reader changes it.
        self._led = self.bar.scene.running(number, self.bar.asking)
        self.caption.write()
        self._ring(step.focus)
        self._conceal()
        self._readdress()

    def _leave_scene(self) -> None:
        self.caption.write()
        self._ring(frozenset())
        self._conceal()
        self._readdress()

    def _list_scenes(self) -> None:
        self.menu.show(self._flags)

    def _do(self, actions: Sequence[Action]) -> None:
        """Do what a scene asks of its run."""
        for kind, value in actions:
            if kind in ("play", "pause"):
                if self.session.playing != (kind == "play"):
                    self.transport.play()
            elif kind == "speed":
                self.transport.show_speed(str(value))
            elif kind == "change":
                self.controls.apply(value)
            else:
                for _ in range(value):
                    self.transport.step(kind)

    def _ring(self, names: Set[str]) -> None:
        """Draw a ring around these parts, which are brought to the front, and around no other."""
        self.turns.show(names)
        self._turn()
        roots = {part: card.root for part, card in self.cards.items()}
        roots |= {"caption": self.caption.root, "transport": self.transport.root}
        for part, root in roots.items():
            ringed = {**root.styles, "outline": _RING if part in names else "none", "outline-offset": "-3px"}
            if root.styles.get("outline", "none") != ringed["outline"]:
                root.styles = ringed

    def _conceal(self) -> None:
        """Show what neither the address nor the scene hides."""
        self._arrange(self._emits)
        self.transport.hide(self._concealed())

    def _concealed(self) -> frozenset[str]:
        step = self.bar.step
        return self._hidden | (frozenset() if step is None else step.hide)

    # ---- projector ----------------------------------------------------------------------------------------

    def _magnify(self, large: bool) -> None:
        self.large = large
        projector.dress(self.main[0], large)
        for shown in (self.caption, self.futures, self.transport, self.bar, *self.cards.values()):
            shown.magnify(large)

    def _project(self) -> None:
        """Turn projector mode on or off; what runs goes on."""
        self._magnify(not self.large)
        self._flags = {name: text for name, text in self._flags.items() if name != "projector"}
        self._flags |= {"projector": "1"} if self.large else {}
        self._readdress()
        self.on_large()

    # ---- cards --------------------------------------------------------------------------------------------

    def _fed(self) -> list[Any]:
        return [shown for shown in self._shown if shown.needs <= self._emits - self._behind]

    def _begin_era(self, era: int) -> None:
        """Empty the views of draws, which have begun anew, and those of what was picked among them."""
        self._era = era
        self.picks.forget()
        for part in self.cards.keys() & OF_DRAWS:
            self.cards[part].reset(self._scene)
        # While it plays, the new ones come at once; at rest, old ones would pass for those of the new data.
        if not self.session.playing:
            for part in self.cards.keys() & {DRAWN, *RARE}:
                self.cards[part].view.forget()
                self.cards[part].head()
            for shown in self._fed():
                if shown.hot and shown.needs <= OF_PATH:
                    shown.reset(self._scene)

    def _arrange(self, emits: set[str]) -> None:
        """Show the cards that a run feeds, and share the stage among them."""
        self._emits = frozenset(emits)
        self._behind = self.turns.hidden(self._emits)
        for part in (self._emits - self._behind) & self._rare.keys():
            self._add_card(part, self._rare.pop(part))
        concealed = self._concealed() | self._behind
        shown = {part for part, card in self.cards.items() if card.needs <= self._emits and part not in concealed}
        for part, card in self.cards.items():
            card.root.visible = part in shown
        self.caption.root.visible = "caption" not in concealed
        self.stage.styles = {"grid-template": grid({self.turns.place(part) for part in shown})}

    def _card(self, part: str, view: views.View) -> Card:
        return Card(view, **self._tools(part), turn=self.turns.button(part), place=self.turns.place(part))

    def _add_card(self, part: str, view: type[views.View]) -> None:
        card = self.cards[part] = self._card(part, view(dark=self._dark))
        if part == WEIGHTS:
            card.view.pointer.listen(self._choose_coordinate)
        card.magnify(self.large)
        self._shown.append(card)
        self.stage.append(card.root)

    def _turn(self) -> None:
        """See other cards than before, which have not heard of the run yet."""
        before = self._behind
        self._arrange(self._emits)
        if self._scene:
            for part in (before - self._behind) & self.cards.keys() & self._emits:
                self.cards[part].reset(self._scene)

    def _choose_coordinate(self, message: dict[str, Any]) -> None:
        """Follow the coordinate of a cell."""
        card = self.cards[WEIGHTS]
        number = card.view.choose(message["x"], message["y"]) if message["do"] == "cell" else None
        if number is not None:
            card.head()
            self.component.choose(number)

    def _tools(self, part: str) -> dict[str, Any]:
        if part == DRAWN:
            return {"tools": self.points.tools}
        if part == "trace":
            return {"tools": [self.component.root]}
        if part == WEIGHTS:
            return {"tools": [self.block.root]}
        if part != "path":
            return {}
        below = [self.plane.coordinates, self.plane.caution]
        return {"tools": [self.plane.kind, self.follow], "below": below, "low_note": True}

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
        elif name == "before":
            self.transport.back()
        elif name == "help":
            self.guide.toggle()
        elif name in ("next", "back"):
            self.bar.go(name)
        else:
            self.transport.step(name)


class Strip:
    """A view that has no card of its own."""

    def __init__(self, view: views.View) -> None:
        self.needs, self.hot = frozenset(view.needs), view.hot
        self.reset, self.update, self.theme = view.reset, view.update, view.theme


def _parts(names: str) -> frozenset[str]:
    """Return the parts of the page that a link names, with commas between."""
    return frozenset(CALLED.get(name.strip(), name.strip()) for name in names.split(",") if name.strip())


def opening() -> Spec:
    """Return the spec that the page opens on."""
    return Spec.from_json(json.loads(OPENING.read_text(encoding="utf-8")))


def build(dark: bool) -> Lab:
    """Build the page for the current session and begin its loop."""
    visit = address.read(pn.state.session_args, opening())
    origin = going_on(visit)
    if origin is None:
        set_out(visit, whole=not {"target", "sampler"}.isdisjoint(pn.state.session_args))
    lab = Lab(dark, visit)
    lab.session.origin = origin
    lab.session.open()
    return lab


def _emitted(listing: dict[str, Any], spec: Spec) -> set[str]:
    """Return what a run of this spec will emit, as far as the catalogue knows."""
    items = [*listing["targets"], *listing["samplers"]]
    named = [set(item["emits"]) for item in items if item["name"] in (spec.target, spec.sampler)]
    return set(ALWAYS).union(*named)

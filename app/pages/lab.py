"""Show one sampler on one target, step by step or at full speed, in linked views."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np
import panel_material_ui as pmui
from panel.io.document import hold

from bnnviz.figures import listing
from bnnviz.figures.chain.timeline import Journey
from bnnviz.figures.live.view import View
from bnnviz.figures.places import DRAWER, ORDER, PLACES, grid, shared_out
from bnnviz.specs import catalogue
from bnnviz.specs.run import Spec
from bnnviz_app import address, opening_frames
from bnnviz_app.access import roles
from bnnviz_app.components.cards.branches import BranchBar
from bnnviz_app.components.cards.cards import Card, FiguresCard
from bnnviz_app.components.cards.chip import Chip
from bnnviz_app.components.cards.places import Place
from bnnviz_app.components.cards.selection import PART, SelectionLink
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.controls.data_editor import PointEditor
from bnnviz_app.components.controls.pickers import BlockPicker, ComponentPicker, PlanePicker
from bnnviz_app.components.controls.sidebar import Sidebar
from bnnviz_app.components.guidance import scenes
from bnnviz_app.components.guidance.narrator import Narrator
from bnnviz_app.components.guidance.scene_bar import SceneBar, SceneMenu
from bnnviz_app.components.guidance.scenes import Action, Scene, SceneStep
from bnnviz_app.components.run.record_button import Recorder, going_on
from bnnviz_app.components.run.transport import Transport
from bnnviz_app.components.tables.row_form import RowQuestion
from bnnviz_app.components.tables.verdict_bar import VerdictBar
from bnnviz_app.components.tables.your_data import YourData
from bnnviz_app.components.widgets import button, set_changed
from bnnviz_app.pages.base import PRESETS, RunPage, emitted, preset
from bnnviz_app.theme import SHEETS

OF_DRAWS = ("trace", "acf", "density", "weights", "graph", "marginal", "ratios")
OF_PATH = {"path", "envelope", "events"}
#: Made when they are first seen: the page is painted sooner without.
RARE = ("spread", "density", "population", "gauge", "history", "weights", "graph", "marginal", "ratios", "trace", "acf")
WEIGHTS, GRAPH = "weights", "graph"  # the views of these parts choose a coordinate
DRAWN = "prediction"  # users draw points in the view of this part
EVENTS = "events"  # this part is in the transport bar, with the other state of the run
FIRST_DRAWS, SPEED = 20, "10"  # of each chain, then steps a second: slow enough to follow by eye
#: Initial positions that come with the page, so that it moves immediately.
_START = (PRESETS / "opening.npy").read_bytes()
_OTHER_OPENINGS = {"scene", "recording", "play", "speed", "your_data"}
_RING = "3px solid var(--mui-palette-primary-main)"


class LabPage(RunPage):
    """Show a sampler on a target."""

    name, what, opens_recorded = "lab", "run", False

    @classmethod
    def build(cls, dark: bool) -> LabPage:
        """Build the page for the current session and begin its loop."""
        asked = cls.visited()
        origin = going_on(asked)
        if not asked.names and not asked.flags.keys() & _OTHER_OPENINGS and roles.present().keeps:
            asked.spec = asked.spec.replace(start_points=_START, warmup=0).checked()
        lab = cls(dark, asked)
        lab.session.origin = origin
        lab.session.open()
        return lab

    @classmethod
    def opening(cls) -> Spec:
        """Return the spec that the page opens on."""
        return Spec.from_json(preset("lab")[0]["spec"])

    @property
    def shared(self) -> Spec:
        """The spec without the initial positions that come with the page."""
        return without_start(self.session.spec)

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Begin a new run: every view forgets the last one."""
        recorded = self.session.meanwhile
        repeats = recorded is not None and self._scene is recorded[0] and scene["title"] == self._scene["title"]
        if repeats and self.session.playing:
            self._scene_to_come = scene
            return
        self._scene_to_come = None
        self._arrange(set(scene["emits"]))
        self._generation = 0
        self.selection.reset()
        super().show_scene(scene)

    def show_frame(self, frame: dict[str, Any]) -> None:
        """Show the parts that have come."""
        if self._hurries and frame.get("status", {}).get("draws", 0) >= FIRST_DRAWS:
            # Leave full speed, on which the page opens: there are enough draws for a first picture.
            self._hurries = False
            self.transport.take_speed()
        if self._scene_to_come is not None:
            if self._hurries and self.session.playing:
                return  # the recorded run is shown, which has about as many draws
            self.session.meanwhile = None
            with hold(freeze=True):
                self.show_scene(self._scene_to_come)
        generation = frame.get("status", {}).get("generation", self._generation)
        if generation != self._generation:
            self._begin_generation(generation)
        super().show_frame(frame)
        if PART in frame:
            self.selection.mark(frame[PART])

    def show_spec(self, spec: Spec) -> None:
        """Show the spec with the changes in the run's log."""
        super().show_spec(without_start(spec))

    def requested(self) -> set[str]:
        """Return the names of the parts that the views need."""
        return super().requested() | ({PART} if self.selection.active else set())

    # ---- construction -------------------------------------------------------------------------------------

    def _controls(self, spec: Spec) -> Any:
        self.data = YourData(self._begin_own)
        self.controls = Sidebar(catalogue.load(), self.session.begin, self.session.change, without_start(spec))
        return self.controls.root

    def _transport(self) -> Transport:
        self.timeline = View(Journey(), dark=self.dark)
        return Transport(self.session, self.timeline)

    def _remedy(self, settings: dict[str, Any]) -> None:
        self.controls.apply(settings)

    def _build(self, visit: address.Visit) -> None:
        self._generation = 0
        self._used: dict[str, bool] = {}  # the places with a card, and whether they have tabs
        self._hurries = False  # through the warm-up, until the first picture
        self._scene_to_come: dict[str, Any] | None = None  # of the live run, while a recorded one is shown
        self._led: Spec | None = None
        self._held = False  # a question has paused the run
        self.scenes, self.branches = SceneMenu(preset("lab")), BranchBar(self.session)
        self.question = RowQuestion(lambda: self.session.spec, lambda row: self.session.watch(row=row))
        self.verdict = VerdictBar(self.question.show, self.data.show)
        self.bar = SceneBar(self._show_step, self._leave_scene, self._list_scenes)
        self.caption.reserved = lambda: self.bar.asking
        self.narrator = Narrator(lambda: self.session.playing, figures=True)
        self.record = Recorder(self.session, lambda sentence: self.show_notice(sentence, failed=False))
        self.record.on_label = lambda: self.on_menu()

        def turn() -> None:
            self.session.rearrange(self._turn_cards)

        self.places = [Place(name, turn) for name in PLACES]
        say = next(place.say for place in self.places if place.name == "table")
        self.chip = Chip(turn, say, self.heartbeat)
        self._build_pickers()
        self._build_cards()
        around = [self.caption, self.narrator, self.branches, self.transport, self.verdict, self.question, self.chip]
        strip = Strip(self.timeline)
        pickers = [self.controls, self.plane, self.component, self.block, self.points, *self.places]
        self.components = [*around, *self.cards.values(), strip, self.record, self.bar, *pickers]
        tabs = [place.root for place in self.places]
        self.stage[:] = [self.caption.root, *tabs, *(card.root for card in self.cards.values())]
        self._arrange(emitted(visit.spec))

    def _build_pickers(self) -> None:
        """Create the pickers of the views."""
        self.plane = PlanePicker(lambda plane: self.session.watch(plane=plane))
        self.component = ComponentPicker(lambda component: self.session.watch(component=component))
        self.block = BlockPicker(lambda block: self.session.watch(block=block))
        self.follow = pmui.Switch(
            label="follow",
            value=True,
            size="small",
            margin=(3, 14, 0, 0),
            stylesheets=[SHEETS["not_on_a_phone"], SHEETS["label_with_room"]],
        )

    def _build_cards(self) -> None:
        """Make the views, their links and their cards."""
        found = {figure.needs[0]: figure for figure in listing.of_runs()}
        found.pop(EVENTS)
        self._rare = {part: found.pop(part) for part in RARE}
        built = {part: View(figure, dark=self.dark) for part, figure in found.items()}
        self.selection = SelectionLink(built, self.session.pick)
        view = built[DRAWN]
        self.points = PointEditor(view, self._draw, lambda: self.controls.hold(None), self.caption.notice)
        view.pointer.listen(self.points.receive)
        self.controls.target.root.append(self.points.presets)
        self.cards: dict[str, Any] = {part: self._card(view) for part, view in built.items()}
        self.cards["table"] = FiguresCard()
        # The switch and the view's ranges, which a user may also drag, agree.
        path = built["path"]
        self.follow.param.watch(lambda event: setattr(path, "follow", event.new), "value")
        path.listen(lambda follow: self.follow.param.update(value=follow))

    def _above(self) -> list[Any]:
        scenes = button("Break it", self._list_scenes, variant="outlined", margin=(4, 4), min_height=32, align="center")
        return [
            self._bar(*self.controls.bar, scenes, self.chip.root),
            self.bar.root,
            self.verdict.root,
        ]

    def _below(self) -> list[Any]:
        return [self.branches.root]

    def _beyond(self) -> list[Any]:
        return [self.scenes.root, self.data.root, self.question.root]

    def menu(self) -> dict[str, Callable[[], Any]]:
        """Return the items of the page's menu."""
        record = {self.record.label: self.record.turn} if roles.present().keeps else {}
        span = "Timeline: last events" if self.timeline.figure.whole else "Timeline: whole run"
        own = {"Your data (CSV)": self.data.show, "Fork": lambda: self.session.travel("fork")}
        return own | record | {span: self._turn_timeline} | super().menu()

    def _turn_timeline(self) -> None:
        """Show the whole run on the timeline, or its last events."""
        self.timeline.figure.whole = not self.timeline.figure.whole
        self.session.look()
        self.on_menu()

    def _keys(self) -> dict[str, Callable[[], None]]:
        leads = {name: (lambda name=name: self.bar.go(name)) for name in ("next", "back")}
        return super()._keys() | leads | {"before": self.transport.back}

    # ---- helpers ------------------------------------------------------------------------------------------

    def _begin_own(self, spec: Spec, sentences: list[str]) -> None:
        """Play a run on the user's own table."""
        if self.bar.scene is not None:
            self.bar.leave()
        self.controls.show(spec)
        self.session.playing = True
        self.transport.show_playing()
        self.transport.show_speed("0")
        self.session.begin(spec)
        self.session.greet(sentences, failed=False)

    def _in_address(self) -> dict[str, str]:
        codes = super()._in_address()
        if self.bar.scene is None:
            return codes
        place, *_ = self._led_to()
        return place if self.session.spec == self._led else place | codes

    def _led_to(self) -> tuple[dict[str, str], dict[str, str], int | None]:
        scene, step = self.bar.scene, self.bar.number + 1
        if scene is None:
            return super()._led_to()
        return {"scene": scene.name, "step": str(step)}, {"en": scene.title}, step

    def _obey(self, visit: address.Visit) -> None:
        sentences, known = list(visit.sentences), scenes.load()
        name = visit.flags.get("scene")
        if name in known:
            sentences += self._enter_scene(known[name], visit)
        else:
            super()._obey(visit)
            self._reopen(self.session.opened)
            self._hurries = visit.spec.start_points == _START
            if self._hurries:
                self.transport.show_later_speed(SPEED)
                self.session.meanwhile = opening_frames.read(self.name, self.opening())
            if name is not None:
                sentences.append(f"There is no scene {name[:40]!r}; choose one under Break it.")
        self.session.greet(sentences + visit.notes, failed=bool(sentences))
        if visit.on("your_data"):
            self.data.show()

    # ---- scenes -------------------------------------------------------------------------------------------

    def _enter_scene(self, scene: Scene, visit: address.Visit) -> list[str]:
        """Show a scene at the step of the address, and return messages on invalid parameters."""
        asked, count = visit.flags.get("step", "1"), len(scene.steps)
        number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else 0
        taken = min(max(number, 1), count)
        self.bar.enter(scene, taken - 1)
        if visit.names:
            # The user has changed the scene's run: the address has the whole spec.
            self.controls.show(visit.spec)
            self.session.begin(visit.spec)
        if number == taken:
            return []
        return [f"The scene has steps 1 to {count}, and none {asked[:20]!r}; step {taken} was taken."]

    def _show_step(self, step: SceneStep, number: int, again: bool) -> None:
        if self.bar.asking and not again and self.session.playing:
            self._held = True
            self.transport.play()
        if again or (step.begins is not None and not self.bar.asking):
            spec, actions = self.bar.scene.beginning(number, self.bar.asking)
            self.session.playing = False
            self.transport.show_speed("0")
            self.controls.show(spec)
            self._arrange(emitted(spec))
            self.session.begin(spec, (lambda: self._do(actions)) if actions else None)
        elif not self.bar.asking:
            self._do(step.actions)
            if self._held:
                self._do([("play", 1)])
        self._held = self._held and self.bar.asking
        # The run has the scene's spec until the user changes it.
        self._led = self.bar.scene.running(number, self.bar.asking)
        self.caption.write()
        self._ring(step.focus)
        self._readdress()

    def _leave_scene(self) -> None:
        self.caption.write()
        self._ring(frozenset())
        run = self.session.resume_last()
        if run is not None:
            self.transport.show_speed(f"{run.speed or 0:g}")
            self._reopen(run.opened)
        self._readdress()

    def _reopen(self, names: Set[str]) -> None:
        """Open the diagnostics, and choose the tabs, as they were when the run was left."""
        for place in self.places:
            place.chosen = next((part for part in PLACES[place.name] if part in names), None)
        self.chip.show("diagnostics" in names)
        self._turn_cards()

    def _list_scenes(self) -> None:
        self.scenes.show(self._flags)

    def _do(self, actions: Sequence[Action]) -> None:
        """Apply the actions of a scene."""
        self.transport.perform(actions, self.controls.apply)

    def _ring(self, names: Set[str]) -> None:
        """Draw a ring around these parts, which are brought to the front, and around no other."""
        self._bring(names)
        roots = {part: card.root for part, card in self.cards.items()}
        roots |= {"caption": self.caption.root, "transport": self.transport.root}
        for part, root in roots.items():
            ringed = {**root.styles, "outline": _RING if part in names else "none", "outline-offset": "-3px"}
            if root.styles.get("outline", "none") != ringed["outline"]:
                root.styles = ringed

    def _bring(self, parts: Set[str]) -> None:
        """Bring these parts to the front of their places."""
        for place in self.places:
            place.bring(parts)
        if any(parts & PLACES[name].keys() for name in DRAWER):
            self.chip.show()
        self._turn_cards()
        self.session.look()

    # ---- cards --------------------------------------------------------------------------------------------

    def _fed(self) -> list[PageComponent]:
        behind = self._emits & self.cards.keys() - self._front
        # The chip needs the table, in front or not.
        return [
            shown
            for shown in self.components
            if shown.needs <= self._emits and (shown not in self.cards.values() or not shown.needs & behind)
        ]

    def _begin_generation(self, generation: int) -> None:
        """Clear the views of draws, which restart, and of the selection among them."""
        self._generation = generation
        self.selection.forget()
        for part in self.cards.keys() & OF_DRAWS:
            self.cards[part].reset(self._scene)
        # During play, new draws come immediately; at rest, old ones would seem to belong to the new data.
        if not self.session.playing:
            for part in self.cards.keys() & {DRAWN, *RARE}:
                self.cards[part].view.forget()
                self.cards[part].head()
            for shown in self._fed():
                if shown.needs and shown.needs <= OF_PATH:
                    shown.reset(self._scene)

    def _arrange(self, emits: set[str]) -> None:
        """Share the stage among the cards that a run feeds, of which neither the address nor a scene hides any."""
        self._emits = frozenset(emits)
        self.verdict.arrange(self._emits)
        concealed, data = self.bar.step.hide if self.bar.step else frozenset(), self._scene.get("data")
        shares = shared_out(self._emits - concealed)
        used: dict[str, bool] = {}
        self._front: set[str] = set()
        for place in self.places:
            closed = place.name in DRAWER and not self.chip.open
            place.offer([] if closed else shares[place.name], "band" if data is None else data["kind"])
            if place.front is not None:
                used[place.name] = place.root.visible
                self._front.add(place.front)
        template = {"grid-template": grid(used)}
        if len(used) > len(self._used):  # otherwise new cards would lie outside it for a moment
            set_changed(self.stage, styles=template)
        self._used = used
        for place in self.places:
            if place.front is not None:
                self._place_card(place.front, place.name)
        for part, card in self.cards.items():
            set_changed(card.root, visible=part in self._front)
        self.caption.root.visible = "caption" not in concealed
        self.transport.hide(concealed if self.chip.open else concealed | {"status"})
        set_changed(self.stage, styles=template)

    def _place_card(self, part: str, area: str) -> None:
        """Place a card on an area of the stage; rare cards are created when first shown."""
        if part in self._rare:
            card = self.cards[part] = self._card(View(self._rare.pop(part), dark=self.dark))
            if part in (WEIGHTS, GRAPH):
                card.view.pointer.listen(lambda message: self._choose_coordinate(card, message))
            card.magnify(self.large)
            self.components.append(card)
            self.stage.append(card.root)
        root = self.cards[part].root
        set_changed(root, styles=root.styles | {"grid-area": area, "order": str(ORDER[area])})

    def _card(self, view: View) -> Card:
        tools: dict[str, dict[str, Any]] = {
            DRAWN: {"tools": [self.points.tools]},
            "trace": {"tools": [self.component.root]},
            WEIGHTS: {"tools": [self.block.root]},
            "path": {"tools": [self.plane.kind, self.follow], "below": [self.plane.coordinates, self.plane.note]},
        }
        return Card(view, **tools.get(view.needs[0], {}))

    def _turn_cards(self) -> None:
        """Show other cards, and reset the new ones."""
        before = self._front
        self.session.note_opened("diagnostics", self.chip.open)
        for place in self.places:
            for part in PLACES[place.name]:
                self.session.note_opened(part, part == place.chosen)
        with hold(freeze=True):  # Bokeh collects the models of the new cards once
            self._arrange(self._emits)
            if self._scene:
                for part in self._front - before:
                    self.cards[part].reset(self._scene)
        self.chip.placed()

    def _choose_coordinate(self, card: Card, message: dict[str, Any]) -> None:
        """Follow the coordinate selected in a view, or show the one under the pointer."""
        place = message.get("x"), message.get("y")
        figure = card.view.figure
        if message["do"] in ("over", "cell"):
            number = figure.choose(*place)
        elif message["do"] == "out":
            figure.leave()
        card.view.redraw()
        card.head()
        if message["do"] == "cell" and number is not None:
            self.component.choose(number)

    def _draw(self, rows: list[list[float]]) -> None:
        """Continue the run with other data points, which cards that come to the front show too."""
        data = self._scene["data"]
        names = [name for name in ("x", "y", "class") if name in data]
        columns = np.asarray(rows, dtype=float).reshape(-1, len(names)).T
        self._scene = {**self._scene, "data": data | dict(zip(names, columns, strict=True))}
        self.controls.hold(rows)
        self.session.draw(rows)


class Strip(PageComponent):
    """Feed a view without a card."""

    def __init__(self, view: View) -> None:
        self.needs = frozenset(view.needs)
        self.reset, self.update, self.theme = view.reset, view.update, view.theme


build = LabPage.build


def without_start(spec: Spec) -> Spec:
    """Replace the initial positions that come with the page by a search for new ones."""
    if spec.start_points != _START:
        return spec
    return spec.replace(start=None, start_points=None, warmup=LabPage.opening().warmup)

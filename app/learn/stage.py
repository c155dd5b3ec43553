"""Show the live picture of a lesson's step: a run in a few views, or something to try by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import panel as pn

from bnnviz import views
from bnnviz.errors import BnnvizError
from bnnviz.specs.race import ImageRaceSpec, RaceSpec
from bnnviz.specs.run import Spec
from bnnviz_app.components.cards.caption import Caption
from bnnviz_app.components.cards.cards import Card, FiguresCard
from bnnviz_app.components.cards.leaderboard import LeaderboardCard
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.guidance.narrator import Narrator
from bnnviz_app.components.guidance.scenes import Action
from bnnviz_app.components.run.transport import Cell, StepTransport, count
from bnnviz_app.components.widgets import set_changed, set_class
from bnnviz_app.heartbeat import Heartbeat
from bnnviz_app.learn.grid import TABLE, grid
from bnnviz_app.learn.lessons import LivePicture
from bnnviz_app.learn.pieces import PIECES
from bnnviz_app.session import SLOW_EVERY, Session
from bnnviz_app.theme import SHEETS, styles

_LOOK_S = 0.05  # between two looks whether the browser has the page
_RANKS = {RaceSpec: "error", ImageRaceSpec: "nll"}  # what lanes are sorted by
_VIEWS = {view.needs[0]: view for view in views.BY_NAME.values()}
_STYLES = styles(__file__)


def known_parts() -> set[str]:
    """Return what a step may show."""
    return {*_VIEWS, TABLE}


class LessonSession(Session):
    """Run nothing until a step asks for it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._starting, self._idle = False, True
        self._resting = True

    def begin(self, spec: Any, first: Callable[[], None] | None = None) -> None:
        """Run a spec."""
        self._resting = False
        super().begin(spec, first)

    def rest(self) -> None:
        """End what runs; nothing comes in its place."""
        self._resting, self._starting, self.playing = True, False, False
        self._idle = True
        self._let_go()
        self._let_go_before()

    def later(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Do some work beside the page, and then something on it; without an event loop both at once."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            work()
            then()
        else:
            self._spawn(self._in_thread(work, then))

    async def _in_thread(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        await asyncio.to_thread(work)
        while not (self._loaded or self._closed):  # what changes before the browser has the page would be lost
            await asyncio.sleep(_LOOK_S)
        await self._show(then)

    async def _scene(self, handle: Any) -> dict[str, Any] | None:
        scene = await super()._scene(handle)
        return None if self._resting else scene


class LessonTransport(StepTransport):
    """Show buttons for whatever a step runs."""

    def __init__(self, session: LessonSession, on_again: Callable[[], None]) -> None:
        super().__init__(session)
        self._on_again = on_again

    @property
    def eventful(self) -> bool:
        """Whether what runs has events to step to."""
        return self._eventful

    def again(self) -> None:
        """Begin the step again."""
        self._on_again()

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        super().reset(scene)
        self._show_events("events" in scene["emits"])

    def _figures(self, status: dict[str, Any]) -> list[Cell]:
        """Return the cells of what this run counts, whatever it is."""
        cells = [(84, "step", count(status["step"]), "steps")]
        if "draws" in status:
            cells += [(106, "draws", f"{count(status['draws'])} × {status['chains']}", "draws")]
        return cells


class LessonStage(PageComponent):
    """Show the pictures of steps, one after another; it is the screen of its session."""

    def __init__(self, dark: bool, on_key: Callable[[str], None], on_again: Callable[[], None]) -> None:
        self.dark, self._large = dark, False
        self.heartbeat = Heartbeat(on_key)
        doc, backend = pn.state.curdoc, pn.state.cache["backend"]
        self.session = LessonSession(Spec(), backend, self, self.heartbeat, doc)
        self.narrator = Narrator(lambda: self.session.playing)
        self.caption = Caption(lambda settings: self._do([("change", settings)]))
        self.transport = LessonTransport(self.session, on_again)
        self.transport.root.stylesheets = [*self.transport.root.stylesheets, _STYLES["bar"]]
        self.picture: LivePicture | None = None
        self._scene: dict[str, Any] = {}
        self._cards: dict[tuple[str, str], Any] = {}
        self._pieces: dict[str, Any] = {}
        self._fed: list[PageComponent] = []
        self.stage = pn.Column(
            self.caption.root, sizing_mode="stretch_both", margin=0, stylesheets=[SHEETS["stage"], _STYLES["stage"]]
        )
        held = (self.stage, self.transport.root)
        self.root = pn.Column(*held, sizing_mode="stretch_both", margin=0, stylesheets=[_STYLES["right"]])
        self.hidden = (self.heartbeat.root, self.narrator.root)

    # ---- what the page asks for ---------------------------------------------------------------------------

    def show(self, picture: LivePicture | None, onward: bool) -> None:
        """Show the picture of a step; None shows nothing."""
        goes_on = picture is not None and picture.goes_on and onward and self.session.runs is not None
        self.picture = picture
        self.root.visible = picture is not None
        if picture is None:
            self.session.rest()
        elif picture.piece:
            self.session.rest()
            self._show_piece(picture.piece)
        else:
            self._arrange(picture, goes_on)
            self._run(picture, goes_on)

    def again(self) -> None:
        """Begin the picture again."""
        if self.picture is not None and self.picture.piece:
            piece = self._pieces.get(self.picture.piece)
            if piece is not None:
                piece.begin()
        self.show(self.picture, onward=False)

    @property
    def runs(self) -> bool:
        """Whether the picture is that of a run."""
        return self.picture is not None and self.picture.spec is not None

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        self.dark = dark
        for shown in self._everything():
            shown.theme(dark)

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        self._large = large
        for shown in self._everything():
            shown.magnify(large)

    # ---- what the session shows ---------------------------------------------------------------------------

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        self.show_waiting(False)
        self._scene = scene
        for shown in self._fed:
            shown.reset(scene)

    def show_waiting(self, waiting: bool) -> None:
        """Dim what is still seen of the run before."""
        set_class(self.stage, "waiting", waiting)

    def show_frame(self, frame: dict[str, Any]) -> None:
        """Show the parts that have come."""
        for shown in self._fed:
            if shown.needs <= frame.keys():
                shown.update(frame)

    def show_devices(self, names: list[str]) -> None:
        """Take no notice: lessons run where there is room."""

    def show_playing(self) -> None:
        """Make the play button say what it would do."""
        self.transport.show_playing()

    def show_notice(self, sentence: str, failed: bool) -> None:
        """Say what the run waits for or what has befallen it."""
        self.caption.notice(sentence, failed=failed)
        self.narrator.say(sentence)

    def show_error(self, error: BnnvizError) -> None:
        """Say what cannot be done."""
        self.show_waiting(False)
        self.show_notice(error.message.text, True)

    def wanted(self, turn: int | None) -> set[str]:
        """Name the parts that this turn's views need: the hot ones, and the slow ones in their turn."""
        slow = [shown for shown in self._fed if shown.needs and not shown.hot]
        due = slow if turn is None else slow[turn::SLOW_EVERY]
        return {part for shown in [*due, *(s for s in self._fed if s.hot)] for part in shown.needs}

    # ---- helpers ------------------------------------------------------------------------------------------

    def _everything(self) -> list[PageComponent]:
        return [self.caption, self.transport, *self._cards.values(), *self._pieces.values()]

    def _show_piece(self, name: str) -> None:
        self._fed = []
        self.transport.root.visible = False
        if not PIECES[name].prepared():
            self._reveal([])
            self.caption.root.visible = True
            self.stage.styles = {"grid-template": '"caption" auto'}
            self.caption.reset({})
            self.caption.notice("Sampling four chains; this takes a second or two.")
            self.session.later(PIECES[name].prepare, lambda: self._piece_is_prepared(name))
            return
        if name not in self._pieces:
            piece = self._pieces[name] = PIECES[name](self.dark)
            piece.magnify(self._large)
            self.stage.extend([card.root for card in piece.cards.values()])
        piece = self._pieces[name]
        self._reveal([card.root for card in piece.cards.values()])
        self.stage.styles = {"grid-template": piece.grid}
        self.caption.root.visible = False

    def _piece_is_prepared(self, name: str) -> None:
        """Show a piece, if its step is still the one that is looked at."""
        if self.picture is not None and self.picture.piece == name:
            self._show_piece(name)

    def _arrange(self, picture: LivePicture, goes_on: bool) -> None:
        """Share the stage among the views of a step."""
        cards = [self._card(part, type(picture.spec)) for part in picture.show]
        before, self._fed = self._fed, [self.caption, self.transport, *cards, self.narrator]
        self._reveal([card.root for card in cards])
        self.stage.styles = {"grid-template": grid(picture.show, type(picture.spec) in _RANKS)}
        self.caption.root.visible = self.transport.root.visible = True
        if goes_on:
            for shown in self._fed:
                if shown not in before:
                    shown.reset(self._scene)

    def _card(self, part: str, spec_class: type) -> Any:
        """Return the card of a part, made when it is first asked for."""
        ranks = _RANKS.get(spec_class, "") if part == TABLE else ""
        if (part, ranks) not in self._cards:
            if part != TABLE:
                made = Card(_VIEWS[part](dark=self.dark), long_legend=True)
            else:
                made = LeaderboardCard(ranks) if ranks else FiguresCard()
            made.magnify(self._large)
            self._cards[part, ranks] = made
            self.stage.append(made.root)
        return self._cards[part, ranks]

    def _reveal(self, roots: list[Any]) -> None:
        """Show these cards and no others, on a phone in this order."""
        for root in list(self.stage)[1:]:
            root.visible = root in roots
        for place, root in enumerate(roots, start=1):
            set_changed(root, styles={**root.styles, "order": str(place)})

    def _run(self, picture: LivePicture, goes_on: bool) -> None:
        if goes_on:
            self._do(picture.actions)
            self.session.look()
            return
        self.session.playing = False
        self.transport.show_speed("0")
        actions = picture.from_start
        self.session.begin(picture.spec, (lambda: self._do(actions)) if actions else None)
        self.transport.show_playing()

    def _do(self, actions: Sequence[Action]) -> None:
        """Do what a step asks of its run."""
        self.transport.perform(actions, self.session.change)

"""The race: two to six samplers on one target, with the same start and the same budget of gradients, side by side."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel as pn

from bnnviz import views
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue, url
from bnnviz.specs.race import RaceSpec
from bnnviz_app import address, projector, stage
from bnnviz_app.components.cards.caption import Caption
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.components.cards.leaderboard import StandingsCard
from bnnviz_app.components.controls.race_sidebar import Lanes
from bnnviz_app.components.guidance.help import Guide
from bnnviz_app.components.guidance.narrator import PACE_S, Narrator
from bnnviz_app.components.run import race_cards
from bnnviz_app.components.run.race_cards import LaneCard, RaceTransport
from bnnviz_app.components.run.share import Share
from bnnviz_app.components.run.tools import tool
from bnnviz_app.heartbeat import Heartbeat
from bnnviz_app.session import SLOW_EVERY, Session

OPENING = Path(__file__).parent.parent / "presets" / "race.json"
CURVES = "curves"
AT_ONCE = 2  # pictures in one frame, of those that move
WORDS = {
    "race, lane": "samplers with the same target, start, seed and budget; a lane is one of them. It is always the turn"
    " of the lane that has spent least, and a lane ends before the step that could exceed its budget",
    "budget": "gradients of single data rows, all chains of a lane together; rejected proposals, tuning and warm-up"
    " count, the common search for the start does not",
    "error": "of means and of standard deviations against the truth, in true standard deviations, both together; of a"
    " network those of its predictions, against a long reference run that goes on beside the race",
    "diverged": "all chains of a lane met values that are not finite: it stops and has no rank",
}


class RacePage:
    """The page of one session.

    Parameters
    ----------
    dark : bool
        Whether it begins dark.
    visit : address.Visit
        What the address asks for.
    """

    def __init__(self, dark: bool, visit: address.Visit) -> None:
        first = visit.spec
        self._dark, self._scene = dark, {}
        self._flags = {name: text for name, text in visit.flags.items() if name in address.KEPT}
        self._flags |= {"theme": "dark"} if dark else {}
        self.large = False
        self.on_large: Callable[[], None] = lambda: None  # told when the projector is switched on or off
        self._turn, self._said_at = 0, 0.0
        self.heartbeat = Heartbeat(self._key)
        self.session = Session(first, pn.state.cache["backend"], self, self.heartbeat, pn.state.curdoc)
        self.controls = Lanes(catalogue.load(), self.session.begin, first, dark)
        self.caption = Caption(lambda settings: None)
        self.guide, self.share = Guide(None, WORDS), Share("race")
        self.address = address.Address(query=self._query(first))
        self.session.on_spec = lambda spec: self._readdress()
        self.narrator = Narrator()
        self.pictures = race_cards.picture_switch()
        self.pictures.param.watch(lambda event: self._picture(), "value")
        self.transport = RaceTransport(self.session, self.pictures)
        self._classes = {view.needs[0]: view for view in views.views() if view.needs[0] in race_cards.TITLES}
        curves = next(view for view in views.views_for({"emits": [CURVES]}))
        self.curves, self.standings = Card(curves(dark=dark), legend=False), StandingsCard(dark)
        self.cards: list[LaneCard] = []
        self.stage = pn.Column(sizing_mode="stretch_both", margin=0, stylesheets=[stage.STAGE])
        self._lay_out(first.names(), ["path"])
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
        self.transport.show_speed(visit.flags.get("speed", ""))
        self.session.greet(list(visit.sentences))

    @property
    def sidebar(self) -> list[Any]:
        """What stands at the left."""
        return [] if self.large or "sidebar" in self._flags.get("hide", "").split(",") else [self.controls.root]

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        self._dark = dark
        for shown in (*self._shown(), self.guide, self.controls):
            shown.theme(dark)
        self._flags |= {"theme": "dark" if dark else "default"}
        self._readdress()

    def close(self) -> None:
        """End what the page runs."""
        self.session.close()

    # ---- what the session shows ---------------------------------------------------------------------------

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Begin a new race."""
        self.show_waiting(False)
        self.controls.note(scene["remarks"])
        again = self._scene.get("pictures") == scene["pictures"]
        self._scene = scene
        self._lay_out([lane["name"] for lane in scene["lanes"]], scene["pictures"], keep=again)
        for shown in self._shown():
            shown.reset(scene)

    def show_waiting(self, waiting: bool) -> None:
        """Dim what is still seen of the race before."""
        self.stage.css_classes = ["waiting"] if waiting else []

    def show_frame(self, frame: dict[str, Any]) -> None:
        """Show the parts that have come."""
        for shown in self._shown():
            if shown.needs <= frame.keys():
                shown.update(frame)
        if "status" in frame:
            status = frame["status"]
            for card in self.cards:
                card.stand(status["lanes"][card.number], status["budget"], status["chains"])
        if "caption" in frame:
            self._narrate(frame["caption"])

    def show_devices(self, names: list[str]) -> None:
        """Offer the devices of the workers."""
        self.controls.devices(names)

    def show_playing(self) -> None:
        """Make the play button say what it would do."""
        self.transport.show_playing()

    def show_notice(self, sentence: str, failed: bool) -> None:
        """Say what the race waits for or what has befallen it."""
        self.caption.notice(sentence, failed=failed)
        self.narrator.say(sentence)

    def show_error(self, error: BnnvizError) -> None:
        """Say what cannot be done, beside the control it belongs to if there is one."""
        self.show_waiting(False)
        self.narrator.say(error.sentence)
        self.controls.take_back(self.session.spec)
        self._readdress()
        beside = bool(self.sidebar) and self.controls.error(error)
        if not beside or not self._scene:
            self.caption.notice(error.sentence, failed=True)

    def wanted(self, turn: int | None) -> set[str]:
        """Name the parts that this turn's views need: some pictures each time, figures and words in their turn."""
        # What the sentence says is in the table of the same frame.
        slow = [(self.caption, self.standings), (self.transport,), (self.curves,), (self.transport,)]
        due = [shown for group in (slow if turn is None else slow[turn::SLOW_EVERY]) for shown in group]
        seen = [card for card in self.cards if card.root.visible]
        rounds = max(1, -(-len(seen) // AT_ONCE))
        self._turn += 1
        moving = seen if turn is None else seen[self._turn % rounds :: rounds]
        return {part for shown in (*due, *moving) for part in shown.needs}

    # ---- helpers ------------------------------------------------------------------------------------------

    def _lay_out(self, names: list[str], pictures: list[str], keep: bool = False) -> None:
        """Make the cards of these lanes, unless they are there, and share the stage among them."""
        wanted = [(number, name, part) for number, name in enumerate(names) for part in pictures]
        if wanted != [(card.number, card.name, card.part) for card in self.cards]:
            self.cards = [LaneCard(self._classes[part], *lane, self._dark) for *lane, part in wanted]
            for card in self.cards:
                card.magnify(self.large)
            self.stage[:] = [self.caption.root, *(c.root for c in self.cards), self.curves.root, self.standings.root]
            self._share_out()
        self.pictures.visible = len(pictures) > 1
        if not keep:
            # What weights mean is in the functions, where there are any.
            self.pictures.value = race_cards.TITLES[pictures[-1]]
        self._picture()

    def _share_out(self) -> None:
        """Share the stage among the cards."""
        lanes = len({card.number for card in self.cards})
        self.stage.styles = {"grid-template": race_cards.grid(lanes, self.large)}

    def _picture(self) -> None:
        """Show this kind of picture of every lane."""
        for card in self.cards:
            card.root.visible = race_cards.TITLES[card.part] == self.pictures.value

    def _shown(self) -> list[Any]:
        return [self.caption, self.transport, self.curves, self.standings, *self.cards]

    def _narrate(self, caption: dict[str, Any]) -> None:
        now = time.monotonic()
        if not self.session.playing or now - self._said_at >= PACE_S:
            self._said_at = now
            self.narrator.say(" ".join(part for part in (caption["text"], caption["warning"]) if part))

    def _query(self, spec: RaceSpec) -> str:
        said = {} if spec.shareable() else spec.to_query()
        return url.query_text({"page": "race", **said, **self._flags})

    def _readdress(self) -> None:
        self.address.query = self._query(self.session.spec)

    def _magnify(self, large: bool) -> None:
        self.large = large
        self._share_out()
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
            self.transport.step("proposal")


def opening() -> RaceSpec:
    """Return the race that the page opens on."""
    return RaceSpec.from_json(json.loads(OPENING.read_text(encoding="utf-8")))


def build(dark: bool) -> RacePage:
    """Build the page for the current session and begin its loop."""
    page = RacePage(dark, address.read(pn.state.session_args, opening()))
    page.session.open()
    return page

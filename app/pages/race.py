"""Show two to six samplers on one target, with the same start and the same budget of gradients, side by side."""

from __future__ import annotations

from typing import Any

import panel_material_ui as pmui

from bnnviz.figures import listing
from bnnviz.figures.live.view import View
from bnnviz.specs import catalogue
from bnnviz.specs.race import RaceSpec
from bnnviz_app import address
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.components.cards.leaderboard import LeaderboardCard
from bnnviz_app.components.controls.race_sidebar import RaceSidebar
from bnnviz_app.components.run import race_cards
from bnnviz_app.components.run.race_cards import EntryCard, RaceTransport
from bnnviz_app.pages.base import RunPage, preset

CURVES = "curves"
_SWITCH = {"& button": {"textTransform": "none", "padding": "3px 12px"}}


class RacePage(RunPage):
    """Show a race."""

    name, what = "race", "race"

    @classmethod
    def opening(cls) -> RaceSpec:
        """Return the race that the page opens on."""
        return RaceSpec.from_json(preset("race"))

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Begin a new race."""
        again = self._scene.get("pictures") == scene["pictures"]
        self._lay_out_entries([entry["name"] for entry in scene["entries"]], scene["pictures"], keep=again)
        super().show_scene(scene)

    def show_frame(self, frame: dict[str, Any]) -> None:
        """Show the parts that have come."""
        super().show_frame(frame)
        if "status" in frame:
            status = frame["status"]
            for card in self.cards:
                card.stand(status["entries"][card.number], status["budget"], status["chains"])

    def requested(self) -> set[str]:
        """Return the names of the parts that the views need."""
        shown = [self.caption, self.leaderboard, self.transport, self.curves]
        shown += [card for card in self.cards if card.root.visible]
        return {part for each in shown for part in each.needs}

    def _controls(self, spec: RaceSpec) -> Any:
        self.controls = RaceSidebar(catalogue.load(), self.session.begin, spec)
        return self.controls.root

    def _transport(self) -> RaceTransport:
        look = {"size": "small", "margin": (4, 4, 0, 8), "sx": _SWITCH}
        titles = race_cards.TITLES
        self.pictures = pmui.RadioButtonGroup(options=[*titles.values()], value=titles["path"], visible=False, **look)
        self.pictures.param.watch(lambda event: self._picture(), "value")
        return RaceTransport(self.session, self.pictures)

    def _build(self, visit: address.Visit) -> None:
        pictures = [figure for figure in listing.of_runs() if figure.needs[0] in race_cards.TITLES]
        self._classes = {figure.needs[0]: type(figure) for figure in pictures}
        (curves,) = listing.figures_for({"emits": [CURVES]})
        self.curves, self.leaderboard = Card(View(curves, dark=self.dark), legend=False), LeaderboardCard()
        self.cards: list[EntryCard] = []
        self._lay_out_entries(visit.spec.names(), ["path"])

    def _lay_out_entries(self, names: list[str], pictures: list[str], keep: bool = False) -> None:
        """Create the cards of these samplers if they have changed, and divide the stage among them."""
        requested = [(number, name, part) for number, name in enumerate(names) for part in pictures]
        if requested != [(card.number, card.name, card.part) for card in self.cards]:
            self.cards = [EntryCard(self._classes[part], *entry, self.dark) for *entry, part in requested]
            for card in self.cards:
                card.magnify(self.large)
            fixed = [self.caption, self.transport, self.curves, self.leaderboard, self.narrator, self.controls]
            self.components = [*fixed, *self.cards]
            cards = (self.caption, *self.cards, self.curves, self.leaderboard)
            self.stage[:] = [card.root for card in cards]
            self._share_out()
        self.pictures.visible = len(pictures) > 1
        if not keep:
            # Show functions if there are any: they are the meaning of weights.
            self.pictures.value = race_cards.TITLES[pictures[-1]]
        self._picture()

    def _share_out(self) -> None:
        """Share the stage among the cards."""
        entries = len({card.number for card in self.cards})
        self.stage.styles = {"grid-template": race_cards.grid(entries, self.large)}

    def _picture(self) -> None:
        """Show this kind of picture for every sampler."""
        for card in self.cards:
            card.root.visible = race_cards.TITLES[card.part] == self.pictures.value

    def _dress(self) -> None:
        self._share_out()
        super()._dress()


build = RacePage.build

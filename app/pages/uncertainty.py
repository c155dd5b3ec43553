"""Compare the uncertainty of samplers on images."""

from __future__ import annotations

from typing import Any

import panel_material_ui as pmui

from bnnviz.figures.comparison.race import MEASURES
from bnnviz.figures.live.view import View
from bnnviz.specs import catalogue
from bnnviz.specs.race import ImageRaceSpec
from bnnviz_app.access import roles
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.components.cards.image_wall import ImageWallCard
from bnnviz_app.components.cards.leaderboard import LeaderboardCard
from bnnviz_app.components.controls.image_input import ImageQuestion
from bnnviz_app.components.controls.race_sidebar import RaceSidebar
from bnnviz_app.components.run.race_cards import RaceTransport
from bnnviz_app.components.widgets import ReaderChoice, button
from bnnviz_app.pages.base import RunPage, preset
from bnnviz_app.theme import SHEETS, TIGHT

_DIGIT, _ENTROPY, _COURSE = "digit", "entropy", "course"
_ATTACKS = ("attack", "attack_entropy")  # they share a place
_SMALL = {"size": "small", "margin": (1, 8, 0, 4)}
_SWITCH = _SMALL | {"sx": {"& button": {"textTransform": "none", "padding": "1px 6px"}}}
_WALLS = {"Hardest": "index", "Attacked": "attacked"}  # the content of the wall, and the marked image of a frame
# A template that names areas takes no repeat().
_COLUMNS = " ".join(["minmax(0, 1fr)"] * 12)
_ROWS = (
    (("caption", 12), "auto"),
    (("wall", 4), ("digit", 5), ("turned", 3), "minmax(0, 1.15fr)"),
    (("entropy", 3), ("reliability", 3), ("attack", 3), ("course", 3), "minmax(0, 1fr)"),
    (("table", 12), "minmax(132px, 0.5fr)"),
)
_LINES = [f'"{" ".join(name for name, wide in areas for _ in range(wide))}" {height}' for *areas, height in _ROWS]
_GRID = "\n".join(["", *_LINES, f"/ {_COLUMNS}", ""])


class UncertaintyPage(RunPage):
    """Show the uncertainty of samplers."""

    name = "uncertainty"
    parts, grid = (_DIGIT, _ENTROPY, "reliability", *_ATTACKS, _COURSE, "turned"), _GRID
    transport_class = RaceTransport

    @classmethod
    def opening(cls) -> ImageRaceSpec:
        """Return the opening spec of the page."""
        opens = preset("uncertainty")
        if roles.present().most_dim is not None:  # LeNet-5 is too large for each student of a class
            opens["target_settings"] |= preset("uncertainty_in_class")
        return ImageRaceSpec.from_json(opens)

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Show a new run: its images, and the sets that images of no class can be of."""
        self.question.reset(scene)
        options = {self._titles[name]: name for name in scene["ood_sets"]}
        with self._choice.setting():
            self.ood.param.update(options=options, value=scene["ood"])
            self.hung.value = next(iter(_WALLS))
        self.ood.visible = bool(options)
        super().show_scene(scene)

    def show_frame(self, frame: dict[str, Any]) -> None:
        """Show the parts that have come."""
        super().show_frame(frame)
        if _DIGIT in frame:
            self.question.update(frame)
            self.wall.mark(frame[_DIGIT].get(_WALLS[self.hung.value], -1))

    def _controls(self, spec: ImageRaceSpec) -> Any:
        listing = catalogue.load()
        self._titles = {data["name"]: data["title"] for data in listing["data"]}
        targets = [target for target in listing["targets"] if _of_images(target, listing)]
        self.controls = RaceSidebar(listing | {"targets": targets}, self.session.begin, spec)
        self.question = ImageQuestion(lambda image: self.session.watch(image=image))
        self.hung = pmui.RadioButtonGroup(options=list(_WALLS), value=next(iter(_WALLS)), **_SWITCH)
        self.hung.param.watch(lambda event: self.wall.show_attacked(event.new == "Attacked"), "value")
        self.wall = ImageWallCard(self._pick, [self.hung])
        self.ood = pmui.Select(
            label="Images of another kind",
            options=[],
            width=136,
            height=26,
            sx=TIGHT,
            stylesheets=[SHEETS["unlabelled"]],
            **_SMALL | {"margin": (3, 10, 0, 4)},
        )
        self._choice = ReaderChoice((self.hung, self.ood), self._chosen)
        self.measure = pmui.RadioButtonGroup(
            options={title: name for name, title in MEASURES.items()}, value=next(iter(MEASURES)), **_SWITCH
        )
        return self.controls.root

    def _card(self, view: View) -> Card:
        part = view.needs[0]
        if part == _DIGIT:
            return Card(view, beside=[self.question.root])
        if part == _ENTROPY:
            view.figure.brief = True
            return Card(view, tools=[self.ood])
        if part == _COURSE:

            def choose(event: Any) -> None:
                view.figure.measure = event.new
                view.redraw()

            self.measure.param.watch(choose, "value")
            return Card(view, tools=[self.measure], legend=False)
        if part in _ATTACKS:
            other = "Entropy" if part == _ATTACKS[0] else "Accuracy"
            turn = button(other, lambda: self._turn_attacks(part), margin=(4, 0, 0, 4), height=24)
            card = Card(view, turns=[turn], place=_ATTACKS[0], legend=False)
            card.root.visible = part == _ATTACKS[0]
            return card
        return Card(view, legend=False)

    def _dress(self) -> None:
        super()._dress()
        self.question.magnify(self.large)

    def _turn_attacks(self, part: str) -> None:
        """See the other of the two figures of the attacks."""
        for card in self.cards:
            if card.needs <= {*_ATTACKS}:
                card.root.visible = part not in card.needs

    def _table(self) -> LeaderboardCard:
        return LeaderboardCard("nll")

    def _more_cards(self) -> list[Any]:
        return [self.wall]

    def _pick(self, number: int) -> None:
        """Ask about the image of a tile."""
        if self.hung.value == "Attacked":
            self.session.watch(image={"attacked": number, "angle": 0.0})
        else:
            self.question.pick(number)

    def _chosen(self, event: Any) -> None:
        """Ask for other images on the wall, or of no class."""
        if event.obj is self.hung:
            self.session.watch(wall=event.new.lower())
        elif event.new:
            self.session.watch(ood=event.new)


def _of_images(target: dict[str, Any], listing: dict[str, Any]) -> bool:
    """Return whether a target is chosen among sets of images."""
    images = {data["name"] for data in listing["data"] if data["shape"] is not None}
    return any(setting["choices"] and images.issuperset(setting["choices"]) for setting in target["settings"])


build = UncertaintyPage.build

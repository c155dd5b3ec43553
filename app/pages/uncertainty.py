"""Uncertainty: samplers on images, and what each of them is unsure of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz import views
from bnnviz.errors import BnnvizError
from bnnviz.specs import catalogue, race_url, url
from bnnviz.specs.image_race import GallerySpec
from bnnviz.views.comparison.course import MEASURES
from bnnviz_app import address
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.components.cards.image_wall import WallCard
from bnnviz_app.components.cards.leaderboard import StandingsCard
from bnnviz_app.components.controls.image_input import ImageAsker
from bnnviz_app.components.controls.race_sidebar import Lanes
from bnnviz_app.components.run.race_cards import RaceTransport
from bnnviz_app.pages.base import PlainPage
from bnnviz_app.theme import TIGHT

OPENING = Path(__file__).parent.parent / "presets" / "uncertainty.json"
_WORDS = {
    "lane, budget": "samplers with the same images, network and seed; each may spend so many gradients of single"
    " images",
    "entropy": "of the predictive distribution, the mean over the draws of what each of them says: 0 where they are"
    " sure, the logarithm of the number of classes where they know nothing. In nats",
    "information": "the part of the entropy on which draws disagree: more data would take it away. The rest is in the"
    " image",
    "from elsewhere": "images that are of none of the classes: a posterior that is good for something is less sure of"
    " them. AUROC is the chance that one of them has a higher entropy than a test image",
    "attack": "each pixel is changed by so much in the direction in which one draw errs most (FGSM); the other draws"
    " say what they see",
    "calibration": "of the images that it is 80 % sure of, 80 % should be right; ECE is the mean distance",
}
_DIGIT, _ENTROPY, _COURSE = "digit", "entropy", "course"
_ATTACKS = ("attack", "attack_entropy")  # they share a place
_TURN = {"variant": "text", "size": "small", "margin": (4, 0, 0, 4), "height": 24}
_SMALL = {"size": "small", "margin": (1, 8, 0, 4)}
_SWITCH = _SMALL | {"sx": {"& button": {"textTransform": "none", "padding": "1px 9px"}}}
_WALLS = {"Hardest": "hardest", "Attacked": "attacked"}
# A template that names areas takes no repeat().
_COLUMNS = " ".join(["minmax(0, 1fr)"] * 12)
_ROWS = (
    (("caption", 12), "auto"),
    (("wall", 4), ("digit", 5), ("turned", 3), "minmax(0, 1.15fr)"),
    (("entropy", 3), ("reliability", 3), ("attack", 3), ("course", 3), "minmax(0, 1fr)"),
    (("table", 12), "minmax(132px, 0.5fr)"),
)
_GRID = "\n".join(
    f'"{" ".join(name for name, wide in areas for _ in range(wide))}" {height}' for *areas, height in _ROWS
)


class GalleryTransport(RaceTransport):
    """Buttons and budget."""

    def __init__(self, session: Any, timeline: Any) -> None:
        super().__init__(session, pn.Spacer(width=0, margin=0))


class UncertaintyPage(PlainPage):
    """The page of one session."""

    name, heading = "uncertainty", "IMAGES"
    spec, codes = GallerySpec, race_url
    words = _WORDS
    parts, grid = (_DIGIT, _ENTROPY, "reliability", *_ATTACKS, _COURSE, "turned"), f"\n{_GRID}\n/ {_COLUMNS}\n"
    transport_class = GalleryTransport
    speed = ""

    def show_scene(self, scene: dict[str, Any]) -> None:
        """Show a new run: its images, and the sets that foreign ones can be of."""
        self.asker.reset(scene["shape"])
        self._silent = True
        self.ood.param.update(options={self._titles[name]: name for name in scene["ood_sets"]}, value=scene["ood"])
        self.hung.value = next(iter(_WALLS))
        self._silent = False
        self.ood.visible = bool(scene["ood_sets"])
        self.controls.note(scene["remarks"])
        super().show_scene(scene)

    def show_frame(self, frame: dict[str, Any]) -> None:
        """Show the parts that have come."""
        super().show_frame(frame)
        if _DIGIT in frame:
            self.asker.show(frame[_DIGIT])
            hung = "attacked" if self.hung.value == "Attacked" else "index"
            self.wall.mark(frame[_DIGIT].get(hung, -1))

    def show_devices(self, names: list[str]) -> None:
        """Offer the devices of the workers."""
        self.controls.devices(names)

    def _controls(self, spec: GallerySpec) -> list[Any]:
        listing = catalogue.load()
        self._titles = {data["name"]: data["title"] for data in listing["data"]}
        targets = [target for target in listing["targets"] if _of_images(target, listing)]
        self.controls = Lanes(listing | {"targets": targets}, self.session.begin, spec, False)
        self._silent = False
        self.asker = ImageAsker(
            lambda image: self.session.watch(image=image), lambda sentence: self.show_notice(sentence, True)
        )
        self.hung = pmui.RadioButtonGroup(options=list(_WALLS), value=next(iter(_WALLS)), **_SWITCH)
        self.hung.param.watch(self._hang, "value")
        self.wall = WallCard(self._pick, [self.hung])
        self.ood = pmui.Select(
            label="", options=[], width=136, height=26, sx=TIGHT, **_SMALL | {"margin": (3, 10, 0, 4)}
        )
        self.ood.param.watch(self._choose_ood, "value")
        self.measure = pmui.RadioButtonGroup(
            options={title: name for name, title in MEASURES.items()}, value=next(iter(MEASURES)), **_SWITCH
        )
        return [self.controls.root]

    def _card(self, view: views.View) -> Card:
        part = view.needs[0]
        if part == _DIGIT:
            return Card(view, beside=[self.asker.root])
        if part == _ENTROPY:
            view.brief = True
            return Card(view, tools=[self.ood], whole_note=True)
        if part == _COURSE:
            self.measure.param.watch(lambda event: view.choose(event.new), "value")
            return Card(view, tools=[self.measure], legend=False, whole_note=True)
        if part in _ATTACKS:
            turn = pmui.Button(label="Entropy" if part == _ATTACKS[0] else "Accuracy", **_TURN)
            turn.on_click(lambda event: self._turn_attacks(part))
            card = Card(view, turn=turn, place=_ATTACKS[0], legend=False, whole_note=True)
            card.root.visible = part == _ATTACKS[0]
            return card
        return Card(view, legend=False, whole_note=True)

    def _turn_attacks(self, part: str) -> None:
        """See the other of the two figures of the attacks."""
        for card in self.cards:
            if card.needs <= {*_ATTACKS}:
                card.root.visible = part not in card.needs

    def _table(self) -> StandingsCard:
        return StandingsCard(False, "nll")

    def _more_cards(self) -> list[Any]:
        return [self.wall]

    def _pick(self, number: int) -> None:
        """Ask about the image of a tile."""
        if self.hung.value == "Attacked":
            self.session.watch(image={"attacked": number, "angle": 0.0})
        else:
            self.asker.pick(number)

    def _hang(self, event: Any) -> None:
        self.wall.retitle(event.new == "Attacked")
        if not self._silent:
            self.session.watch(wall=_WALLS[event.new])

    def _choose_ood(self, event: Any) -> None:
        if not self._silent and event.new:
            self.session.watch(ood=event.new)

    def _beside(self, error: BnnvizError) -> bool:
        self.controls.take_back(self.session.spec)
        return bool(self.sidebar) and self.controls.error(error)

    def _query(self, spec: GallerySpec) -> str:
        return url.query_text({"page": self.name, **race_url.to_query(spec), **self._flags})


def _of_images(target: dict[str, Any], listing: dict[str, Any]) -> bool:
    """Return whether a target is chosen among sets of images."""
    images = {data["name"] for data in listing["data"] if data["shape"] is not None}
    return any(setting["choices"] and images.issuperset(setting["choices"]) for setting in target["settings"])


def opening() -> GallerySpec:
    """Return what the page opens on."""
    return GallerySpec.from_json(json.loads(OPENING.read_text(encoding="utf-8")))


def build(dark: bool) -> UncertaintyPage:
    """Build the page for the current session and begin its loop."""
    page = UncertaintyPage(dark, address.read(pn.state.session_args, opening(), race_url))
    page.session.open()
    return page

"""Show the images that samplers are least sure of on a card; a press on one asks about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz_app.components.cards.cards import TitledCard
from bnnviz_app.components.widgets import script, set_changed
from bnnviz_app.theme import styles

_SHORTEST = 9  # letters of a class that are written on a tile
# Placeholders, by whether images are attacked.
_WAITING = {
    False: "The most uncertain test images appear here with the first draws.",
    True: "Test images modified to mislead a sampler appear here after the attack on its draws.",
}
_STYLES = styles(__file__)


class ImageWall(JSComponent):
    """Show tiles in the order given."""

    tiles = param.List(doc="Dicts of index, pixels, truth, guesses, wrong, figure and short, the words on the tile.")
    index = param.Integer(-1, doc="The selected test image; -1 for another image.")
    fresh = param.Boolean(False, doc="Whether these are the images of another set.")
    waiting = param.String(doc="The text of an empty wall.")
    chosen = param.List(doc="[index, when] of the tile that was pressed last.")

    _esm = script(__file__, "image_wall.js")


class ImageWallCard(TitledCard):
    """Show the wall with its heading."""

    needs = frozenset({"wall"})

    def __init__(self, on_pick: Callable[[int], None], tools: Sequence[Any] = ()) -> None:
        self._wall = ImageWall(
            sizing_mode="stretch_both", margin=(0, 10, 8, 12), css_classes=["wall"], stylesheets=[_STYLES["wall"]]
        )
        self._on_pick = on_pick
        self._wall.param.watch(self._pick, "chosen")
        super().__init__("", self._wall, "wall", tools)
        self.show_attacked(False)

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        self._wall.param.update(tiles=[], fresh=True)

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        images = [{**image, "short": _short(image["truth"], image["guesses"])} for image in frame["wall"]["tiles"]]
        if images != self._wall.tiles:
            self._wall.tiles = images
            self._wall.fresh = False

    def show_attacked(self, attacked: bool) -> None:
        """Set heading and placeholder of the wall."""
        self._wall.waiting = _WAITING[attacked]
        self.retitle(f"<b>{'Misled' if attacked else 'Hardest'}</b> true → taken for")

    def _pick(self, event: Any) -> None:
        """Select the image of the pressed tile, if the wall has it."""
        chosen = event.new[0] if event.new else None
        if any(tile["index"] == chosen for tile in self._wall.tiles):
            self._on_pick(int(chosen))

    def mark(self, index: int) -> None:
        """Mark the tile of the selected image."""
        set_changed(self._wall, index=index)


def _short(truth: str, guesses: list[str]) -> str:
    """Return the true class and the predicted classes, most frequent first."""
    taken = sorted(dict.fromkeys(guesses), key=guesses.count, reverse=True)
    return f"{truth[:_SHORTEST]} → {'/'.join(each[:_SHORTEST] for each in taken)}"

"""Show one of the cards that share a place on the stage; buttons in each heading turn to the others."""

from __future__ import annotations

from collections.abc import Callable, Set

import panel_material_ui as pmui

from bnnviz.views.layout import BACKS, CARD_PAIRS, PLACES, CardPair
from bnnviz_app.components.widgets import LINK, button


class CardPairs:
    """Keep which of the cards that share a place are seen."""

    def __init__(self, on_turn: Callable[[], None]) -> None:
        self._on_turn = on_turn
        self._turned: dict[str, str] = {}  # the backs that are seen, by their fronts
        self._buttons: dict[str, pmui.Button] = {}

    def place(self, part: str) -> str:
        """Return the part whose place on the stage a part takes."""
        return next((pair.front for pair in CARD_PAIRS if part == pair.back), PLACES.get(part, part))

    def buttons(self, part: str) -> list[pmui.Button]:
        """Return the buttons that turn away from a part; none if it shares its place with no other."""
        made = {pair.back: self._button(pair, back=True) for pair in CARD_PAIRS if part == pair.front}
        self._buttons |= made
        return [*made.values(), *(self._button(pair, back=False) for pair in CARD_PAIRS if part == pair.back)]

    def hidden(self, emits: Set[str]) -> frozenset[str]:
        """Return the parts that lie behind others in a run that emits these."""
        for back, made in self._buttons.items():
            made.visible = back in emits
        seen = {front: back for front, back in self._turned.items() if back in emits}
        return frozenset(BACKS - set(seen.values()) | seen.keys())

    def show(self, parts: Set[str]) -> None:
        """See these parts, where they lie behind others."""
        backs = {pair.front: pair.back for pair in CARD_PAIRS if pair.back in parts}
        self._turned = {front: back for front, back in self._turned.items() if front not in parts} | backs

    def _button(self, pair: CardPair, back: bool) -> pmui.Button:
        label = pair.to_back if back else pair.to_front
        return button(label, lambda: self._turn(pair, back), margin=(4, 0, 0, 4), height=24, sx=LINK)

    def _turn(self, pair: CardPair, back: bool) -> None:
        along = [each for each in CARD_PAIRS if each.front in pair.along]
        moved = {each.front: each.back for each in (pair, *along)}
        kept = {front: back for front, back in self._turned.items() if front not in moved}
        self._turned = kept | moved if back else kept
        self._on_turn()

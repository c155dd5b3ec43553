"""Show one of two cards that share a place on the stage; a button in each heading turns to the other one."""

from __future__ import annotations

from collections.abc import Callable, Set

import panel_material_ui as pmui

from bnnviz.views.layout import BACKS, CARD_PAIRS, PLACES, CardPair
from bnnviz_app.components.widgets import button

_LINK = {"fontSize": "12.5px", "minWidth": 0, "padding": "0 6px", "textTransform": "none", "whiteSpace": "nowrap"}


class CardPairs:
    """Keep which of the cards that share a place are seen.

    Parameters
    ----------
    on_turn : callable
        Called without arguments when that changes.
    """

    def __init__(self, on_turn: Callable[[], None]) -> None:
        self._on_turn = on_turn
        self._turned: set[str] = set()  # fronts that are not seen
        self._buttons: dict[str, pmui.Button] = {}

    def place(self, part: str) -> str:
        """Return the part whose place on the stage a part takes."""
        return next((pair.front for pair in CARD_PAIRS if part == pair.back), PLACES.get(part, part))

    def button(self, part: str) -> pmui.Button | None:
        """Return the button that turns away from a part; None if it shares its place with no other."""
        pair = next((pair for pair in CARD_PAIRS if part in (pair.front, pair.back)), None)
        if pair is None:
            return None
        label = pair.to_back if part == pair.front else pair.to_front
        made = button(label, lambda: self._turn(pair, part == pair.front), margin=(4, 0, 0, 4), height=24, sx=_LINK)
        if part == pair.front:
            self._buttons[pair.back] = made
        return made

    def hidden(self, emits: Set[str]) -> frozenset[str]:
        """Return the parts that lie behind others in a run that emits these."""
        for back, made in self._buttons.items():
            made.visible = back in emits
        return frozenset(
            pair.front if pair.front in self._turned and pair.back in emits else pair.back for pair in CARD_PAIRS
        )

    def show(self, parts: Set[str]) -> None:
        """See these parts, where they lie behind others."""
        backs = {pair.front for pair in CARD_PAIRS if pair.back in parts}
        self._turned = self._turned - (parts - BACKS) | backs

    def _turn(self, pair: CardPair, back: bool) -> None:
        moved = {pair.front, *pair.along}
        self._turned = self._turned | moved if back else self._turned - moved
        self._on_turn()

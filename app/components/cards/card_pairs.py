"""Show one of two cards that share a place on the stage; a button in each heading turns to the other one."""

from __future__ import annotations

from collections.abc import Callable, Set

import panel_material_ui as pmui

from bnnviz.views.layout import BACKS, PLACES, TURNS, Turn
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
        return next((turn.front for turn in TURNS if part == turn.back), PLACES.get(part, part))

    def button(self, part: str) -> pmui.Button | None:
        """Return the button that turns away from a part; None if it shares its place with no other."""
        turn = next((turn for turn in TURNS if part in (turn.front, turn.back)), None)
        if turn is None:
            return None
        label = turn.to_back if part == turn.front else turn.to_front
        made = button(label, lambda: self._turn(turn, part == turn.front), margin=(4, 0, 0, 4), height=24, sx=_LINK)
        if part == turn.front:
            self._buttons[turn.back] = made
        return made

    def hidden(self, emits: Set[str]) -> frozenset[str]:
        """Return the parts that lie behind others in a run that emits these."""
        for back, made in self._buttons.items():
            made.visible = back in emits
        return frozenset(
            turn.front if turn.front in self._turned and turn.back in emits else turn.back for turn in TURNS
        )

    def show(self, parts: Set[str]) -> None:
        """See these parts, where they lie behind others."""
        backs = {turn.front for turn in TURNS if turn.back in parts}
        self._turned = self._turned - (parts - BACKS) | backs

    def _turn(self, turn: Turn, back: bool) -> None:
        moved = {turn.front, *turn.along}
        self._turned = self._turned | moved if back else self._turned - moved
        self._on_turn()

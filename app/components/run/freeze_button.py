"""Freeze what a class that follows sees, and show it what runs again."""

from __future__ import annotations

from typing import Any

from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import header_button, set_changed
from bnnviz_app.following import LeadingSession, frozen, unfreeze

START, STOP = "Freeze", "Unfreeze"


class FreezeButton(PageComponent):
    """Freeze the picture of all who follow the teacher, and let it go on."""

    needs = frozenset({"status"})

    def __init__(self, session: LeadingSession) -> None:
        self._session = session
        self.root = header_button(_label(), self._turn)

    def update(self, frame: dict[str, Any]) -> None:
        """Show whether the picture is frozen: another page of the teacher may have changed that."""
        set_changed(self.root, label=_label())

    def _turn(self) -> None:
        if frozen() is None:
            self._session.freeze()
        else:
            unfreeze()
        set_changed(self.root, label=_label())


def _label() -> str:
    return START if frozen() is None else STOP

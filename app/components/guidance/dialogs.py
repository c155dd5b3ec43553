"""Open a dialog, which the browser does not have before: every page is painted sooner without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import panel_material_ui as pmui

from bnnviz_app.components.widgets import WideColumn


class Dialog:
    """Show a dialog over the page, whose content is made when it opens first."""

    def __init__(self, title: str, make: Callable[[], Sequence[Any]]) -> None:
        self._title, self._make = title, make
        self._dialog: pmui.Dialog | None = None
        self.root = WideColumn(height=0)

    @property
    def is_open(self) -> bool:
        """Whether it is seen."""
        return self._dialog is not None and self._dialog.open

    def show(self, shown: bool = True) -> None:
        """Open or close it."""
        if self._dialog is None and shown:
            look = {"width_option": "md", "sizing_mode": "stretch_width"}
            self._dialog = pmui.Dialog(
                *self._make(), title=self._title, open=True, show_close_button=True, close_on_click=True, **look
            )
            self.root.append(self._dialog)
        if self._dialog is not None:
            self._dialog.open = shown

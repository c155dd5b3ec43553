"""Open a dialog, which the browser does not have before: every page is painted sooner without it."""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui


class Dialog:
    """Show a dialog over the page."""

    def __init__(self, title: str, *inside: Any) -> None:
        self._title, self._inside = title, inside
        self._dialog: pmui.Dialog | None = None
        self.root = pn.Column(sizing_mode="stretch_width", height=0, margin=0)

    @property
    def is_open(self) -> bool:
        """Whether it is seen."""
        return self._dialog is not None and self._dialog.open

    def show(self, shown: bool = True) -> None:
        """Open or close it."""
        if self._dialog is None:
            if not shown:
                return
            self._dialog = self._make()
            self.root.append(self._dialog)
        self._dialog.open = shown

    def retitle(self, title: str) -> None:
        """Change the title."""
        self._title = title
        if self._dialog is not None:
            self._dialog.title = title

    def _make(self) -> pmui.Dialog:
        return pmui.Dialog(
            *self._inside,
            title=self._title,
            open=True,
            show_close_button=True,
            close_on_click=True,
            width_option="md",
            sizing_mode="stretch_width",
        )

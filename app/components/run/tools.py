"""Buttons for the header."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

_TOOL = {"color": "#fff", "opacity": 0.85, "fontSize": "14px", "minWidth": 0, "padding": "4px 8px"}


def tool(label: str, on_click: Callable[[Any], None]) -> pmui.Button:
    """Return a button for the header."""
    button = pmui.Button(label=label, variant="text", size="small", margin=(0, 2), align="center", sx=_TOOL)
    button.on_click(on_click)
    return button

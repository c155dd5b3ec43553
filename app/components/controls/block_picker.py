"""Which block of coordinates the correlations are shown of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

from bnnviz_app.theme import TIGHT, UNLABELLED


class BlockPicker:
    """A select for the block.

    Parameters
    ----------
    on_block : callable
        Called with the number of a block, as the `watch` command takes it.
    """

    def __init__(self, on_block: Callable[[int], None]) -> None:
        self._on_block = on_block
        self._silent = False
        self.root = pmui.Select(
            label="Block",
            options=[],
            size="small",
            margin=(3, 10, 0, 3),
            height=26,
            width=112,
            visible=False,
            sx=TIGHT,
            stylesheets=[UNLABELLED],
        )
        self.root.param.watch(self._chosen, "value")

    def show(self, scene: dict[str, Any]) -> None:
        """Offer the blocks of a new run, which is asked for the one that was chosen if it has the same."""
        labels = [block["label"] for block in scene["blocks"]]
        if labels != self.root.options:
            self._silent = True
            self.root.param.update(options=labels, value=labels[0])
            self._silent = False
        self.root.visible = len(labels) > 1
        if self.root.value != labels[0]:
            self._chosen(None)

    def _chosen(self, event: Any) -> None:
        if not self._silent:
            self._on_block(self.root.options.index(self.root.value))

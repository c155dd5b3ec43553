"""Show in a dialog the run as a link, as Python and as a command."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec
from bnnviz_app.components.guidance.dialogs import Dialog
from bnnviz_app.components.widgets import script
from bnnviz_app.theme import SHEETS, styles

_STYLES = styles(__file__)


class CopyTexts(JSComponent):
    """Show texts to copy, each with its button."""

    query = param.String(doc="The link's parameters.")
    python = param.String()
    command = param.String()
    refusal = param.String(doc="Why there is nothing to copy; empty if there is.")

    _esm = script(__file__, "share.js")


class Share:
    """Open the dialog with its texts."""

    def __init__(self, what: str = "run") -> None:
        self._shown = CopyTexts(sizing_mode="stretch_width", stylesheets=[SHEETS["pills"], _STYLES["share"]])
        self._dialog = Dialog(f"Share this {what}", lambda: [self._shown])
        self.root = self._dialog.root

    def show(self, spec: Spec | RaceSpec, query: str) -> None:
        """Open with the links and the command that repeat this spec."""
        refusal = spec.shareable()
        texts: dict[str, Any] = {"query": "", "python": "", "command": "", "refusal": refusal}
        if not refusal:
            texts |= {"query": query, "python": spec.as_python(), "command": spec.as_command()}
        self._shown.param.update(**texts)
        self._dialog.show()

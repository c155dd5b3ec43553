"""The dialog behind Share: the run as a link, as Python and as a command."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec
from bnnviz_app.components.guidance.dialogs import Dialog

_STYLE = """
:host {font-size: 14px; color: var(--mui-palette-text-primary)}
h3 {font-size: 14px; margin: 14px 0 4px; display: flex; align-items: center; gap: 12px}
p {margin: 0 0 8px}
textarea {display: block; box-sizing: border-box; width: 100%; resize: none; padding: 8px 10px; border-radius: 6px;
  font: 12.5px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; color: inherit; border: 1px solid
  var(--mui-palette-divider); background: var(--mui-palette-background-default)}
button {font: 600 13px sans-serif; border-radius: 16px; padding: 4px 14px; cursor: pointer; color:
  var(--mui-palette-primary-main); background: none; border: 1px solid currentColor}
button:focus-visible, textarea:focus-visible {outline: 2px solid var(--mui-palette-primary-main); outline-offset: 2px}
.done {font-weight: 400; font-size: 13px}
"""


class Codes(JSComponent):
    """Texts to copy, each with its button."""

    query = param.String(doc="The link's parameters.")
    python = param.String()
    command = param.String()
    refusal = param.String(doc="Why there is nothing to copy; empty if there is.")

    _esm = "share.js"


class Share:
    """The dialog and its texts.

    Parameters
    ----------
    what : str
        What is shared.
    """

    def __init__(self, what: str = "run") -> None:
        self._codes = Codes(sizing_mode="stretch_width", stylesheets=[_STYLE])
        self._dialog = Dialog(f"Share this {what}", self._codes)
        self.root = self._dialog.root

    def show(self, spec: Spec | RaceSpec, query: str) -> None:
        """Open, with what repeats this spec.

        Parameters
        ----------
        spec : Spec or RaceSpec
            What runs.
        query : str
            What the address says of the page, spec included.
        """
        refusal = spec.shareable()
        texts: dict[str, Any] = {"query": "", "python": "", "command": "", "refusal": refusal}
        if not refusal:
            texts |= {"query": query, "python": spec.as_python(), "command": spec.as_command()}
        self._codes.param.update(**texts)
        self._dialog.show()

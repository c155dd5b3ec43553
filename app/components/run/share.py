"""Show in a dialog the run as a link, as Python and as a command."""

from __future__ import annotations

from typing import Any

import param
from panel.custom import JSComponent

from bnnviz.specs import url
from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec
from bnnviz_app.components.guidance.dialogs import Dialog
from bnnviz_app.components.widgets import script

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


class CopyTexts(JSComponent):
    """Show texts to copy, each with its button."""

    query = param.String(doc="The link's parameters.")
    python = param.String()
    command = param.String()
    refusal = param.String(doc="Why there is nothing to copy; empty if there is.")

    _esm = script(__file__, "share.js")


class Share:
    """Open the dialog with its texts.

    Parameters
    ----------
    codes : module
        Writes them: `bnnviz.specs.url` for runs, `bnnviz.specs.race_url` for races.
    what : str
        What is shared.
    """

    def __init__(self, codes: Any = url, what: str = "run") -> None:
        self._codes = codes
        self._shown = CopyTexts(sizing_mode="stretch_width", stylesheets=[_STYLE])
        self._dialog = Dialog(f"Share this {what}", self._shown)
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
        refusal = self._codes.shareable(spec)
        texts: dict[str, Any] = {"query": "", "python": "", "command": "", "refusal": refusal}
        if not refusal:
            texts |= {"query": query, "python": self._codes.as_python(spec), "command": self._codes.as_command(spec)}
        self._shown.param.update(**texts)
        self._dialog.show()

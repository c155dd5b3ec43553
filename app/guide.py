"""What the keys do and what the marks mean, in a dialog."""

from __future__ import annotations

import panel as pn
import panel_material_ui as pmui

from bnnviz.views import DARK, KINDS, LIGHT
from bnnviz.views.palette import mark_html

KEYS = {
    "space": "play or pause",
    "→": "one proposal for every chain, then pause",
    "shift → or e": "go on to the watched chain's next event, then pause",
    "r": "reset: the same run from its beginning",
    "tab": "to the next control; there space presses and opens, arrows choose and slide, escape closes",
    "?": "open and close this page",
}
MEANINGS = {
    1: "proposed, then rejected: the chain goes straight on",
    2: "accepted: the velocity is reflected",
    3: "the refresh clock rang: the velocity is drawn anew",
    5: "the rate was above the envelope, which therefore was no bound: a bias",
}
_STYLE = """
table {border-collapse: collapse; font-size: 14px; margin-bottom: 12px}
td {padding: 4px 16px 4px 0; vertical-align: top}
kbd {border: 1px solid var(--mui-palette-divider); border-radius: 4px; padding: 1px 7px; font: inherit}
"""


class Guide:
    """The dialog behind the question mark."""

    def __init__(self) -> None:
        self._marks = pn.pane.HTML("", stylesheets=[_STYLE], sizing_mode="stretch_width")
        keys = "".join(f"<tr><td><kbd>{key}</kbd></td><td>{meaning}</td></tr>" for key, meaning in KEYS.items())
        self.root = pmui.Dialog(
            pn.pane.HTML(f"<table>{keys}</table>", stylesheets=[_STYLE], sizing_mode="stretch_width"),
            self._marks,
            title="Keys and marks",
            show_close_button=True,
            close_on_click=True,
            width_option="sm",
            sizing_mode="stretch_width",
        )
        self.theme(False)

    def toggle(self) -> None:
        """Open or close."""
        self.root.open = not self.root.open

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        palette = DARK if dark else LIGHT
        rows = "".join(
            f"<tr><td>{mark_html(KINDS[code], palette)}</td><td>{meaning}</td></tr>"
            for code, meaning in MEANINGS.items()
        )
        self._marks.object = f"<table>{rows}</table>"

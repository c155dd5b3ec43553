"""Show the runs that were kept: look at them, compare them, rename, send, take in and remove them."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz import paths
from bnnviz.engine.recording import compare, reader
from bnnviz.engine.recording.export import ExportedDraws
from bnnviz.errors import BnnvizError
from bnnviz.figures.marks import SERIES as MOST
from bnnviz_app.components.recordings.actions import RecordingActions
from bnnviz_app.components.recordings.listing import RecordingList
from bnnviz_app.components.recordings.text import about, results
from bnnviz_app.components.still import still
from bnnviz_app.components.widgets import Message, ReaderChoice, Text, WideColumn, button
from bnnviz_app.pages.base import TextPage
from bnnviz_app.theme import SHEETS, styles

_WHOLE = {"flex": "0 0 auto", "max-height": "none"}
# The figures are next to the table if both fit, or else below it.
_BESIDE, _REST = {"flex": "0 1 auto", "max-width": "100%"}, {"flex": "1 1 440px", "min-width": "0"}
# The list of recordings is next to their contents, or above them.
_LIST, _SHOWN = (
    {
        "flex": "0 1 390px",
        "max-width": "100%",
        "box-sizing": "border-box",
        "padding": "4px 10px 10px",
        "border-radius": "8px",
        "background": "var(--mui-palette-background-paper)",
        "box-shadow": "var(--mui-shadows-1)",
    },
    {"flex": "1 1 520px", "min-width": "0"},
)
_SHEETS = [SHEETS["text"], styles(__file__)["text"]]


class RecordingsPage(TextPage):
    """Show the recordings."""

    name, listed = "recordings", "runs"

    def __init__(self, dark: bool, flags: Mapping[str, str], chosen: Sequence[str]) -> None:
        super().__init__(dark, flags)
        self.list = RecordingList(self._show)
        self._message = Message(margin=(0, 2, 8, 2), stylesheets=_SHEETS)
        self.actions = RecordingActions(self.list, self._message.say, self._reload)
        self._kept: dict[str, ExportedDraws] = {}
        look = {"size": "small", "width": 230, "margin": (6, 14, 4, 2), "searchable": True}
        self._coordinate, self._against = (pmui.Select(label=name, **look) for name in ("Coordinate", "Against"))
        self._choice = ReaderChoice((self._coordinate, self._against), lambda event: self._draw())
        self._quantity = pn.Row(self._coordinate, self._against, visible=False)
        self._text, self._words = self._pane(margin=(0, 2, 6, 2)), self._pane(margin=(4, 2, 4, 2))
        self._table = self._pane(margin=(8, 34, 6, 2), sizing_mode=None, styles=_BESIDE)
        self.figures = WideColumn()
        head = self._pane(margin=(14, 2, 10, 2))
        head.object = (
            "<p>Runs on disk. Choose one to see its results, or several to compare them.<br>Folder:"
            f" <code>{html.escape(str(paths.recordings()))}</code>.</p>"
        )
        again = button("Refresh", lambda: self._reload(self.list.chosen), margin=(6, 2), min_height=32, align="center")
        # A Paper would show its contents after the rest of the page, which would move.
        left = WideColumn(again, self.list.root, margin=(0, 18, 10, 0), styles=_LIST)
        figures = pn.Column(self._quantity, self._words, self.figures, styles=_REST)
        beside = pn.FlexBox(self._table, figures, sizing_mode="stretch_width")
        right = WideColumn(self._text, self.actions.root, beside, styles=_SHOWN)
        body = pn.FlexBox(left, right, sizing_mode="stretch_width", styles=_WHOLE)
        self._lay_out(head, self._message.root, body)
        self._outer.append(self.actions.dialog.root)
        super()._dress()
        self._reload(chosen)

    def _pane(self, **params: Any) -> Text:
        return Text(stylesheets=_SHEETS, **params)

    def _reload(self, chosen: Sequence[str]) -> None:
        self.list.fill(list(reader.recordings()), chosen)
        self._show()

    def _show(self) -> None:
        """Show the selection: nothing, one recording, or a comparison of several."""
        names = self.list.chosen
        found = [self.list.found[name][0] for name in names]
        self.actions.show()
        try:
            self._text.object = about(found, MOST, self.carried)
            self._table.object = results(found)
            self._kept = {recording.name: compare.readable(recording) for recording in found[:MOST]}
        except BnnvizError as error:
            self._text.object += f"<p class='error'>{html.escape(error.message.text)}</p>"
            self._table.object, self._kept = "", {}
        every = [kept.names for kept in self._kept.values()]
        common = set.intersection(*map(set, every)) if every else set()
        shared = [name for name in every[0] if name in common] if every else []
        self._quantity.visible = bool(shared)
        value = self._coordinate.value if self._coordinate.value in shared else (shared[0] if shared else None)
        others = [name for name in shared if name != value]
        against = self._against.value if self._against.value in others else (others[0] if others else None)
        with self._choice.setting():
            self._coordinate.param.update(options=shared, value=value)
            self._against.param.update(options=others, value=against, visible=len(found) == 1 and bool(others))
        self._draw()
        self.narrator.say(f"{len(names)} recordings chosen")
        self._readdress()

    def _draw(self) -> None:
        label = self._coordinate.value
        if not self._kept or label is None or any(label not in kept.names for kept in self._kept.values()):
            self.figures[:] = []
            self._words.object = ""
            return
        from bnnviz import plots  # HoloViews, once a figure is shown
        from bnnviz.figures import sources

        plots.use("bokeh")
        ess = {name: compare.ess(kept, label) for name, kept in self._kept.items()}
        known = [f"{html.escape(name)}: ESS {one:,.0f}" for name, one in ess.items() if one == one]
        self._words.object = f"<p>{html.escape(label)}. {'; '.join(known)}{'.' if known else ''}</p>"
        against = self._against.value if self._against.value != label else None
        found = [sources.exported(name, each) for name, each in self._kept.items()]
        alone = against is not None and len(found) == 1
        figures = [plots.pair(found, [label, against], dark=self.dark)] if alone else []
        figures += [plots.trace(found, label, dark=self.dark), plots.density(found, label, dark=self.dark)]
        if all(each.log_weights is None for each in found):
            figures.append(plots.acf(found, label, dark=self.dark))
        self.figures[:] = [still(figure) for figure in figures]

    def _in_address(self) -> dict[str, str]:
        return {self.listed: ",".join(self.list.chosen)} if self.list.chosen else {}

    def _dress(self) -> None:
        super()._dress()
        self._show()


build = RecordingsPage.build

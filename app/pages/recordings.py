"""Show the recordings: look at one, rename, download and delete it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz import diagnostics, paths
from bnnviz.engine.recording import reader
from bnnviz.engine.recording.export import ExportedDraws, kept
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError
from bnnviz_app.components.recordings.actions import RecordingActions
from bnnviz_app.components.recordings.listing import RecordingList
from bnnviz_app.components.recordings.text import NONE, about, results
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
_MOST_NUMBERS = 20_000_000  # of draws in figures
_SHEETS = [SHEETS["text"], styles(__file__)["text"]]


class RecordingsPage(TextPage):
    """Show the recordings."""

    name, listed = "recordings", "open"

    def __init__(self, dark: bool, flags: Mapping[str, str], chosen: Sequence[str]) -> None:
        super().__init__(dark, flags)
        self.list = RecordingList(self._show)
        self._message = Message(margin=(0, 2, 8, 2), stylesheets=_SHEETS)
        self.actions = RecordingActions(self.list, self._message.say, self._reload)
        self._kept: ExportedDraws | None = None
        look = {"size": "small", "width": 230, "margin": (6, 14, 4, 2), "searchable": True}
        self._coordinate, self._against = (pmui.Select(label=name, **look) for name in ("Coordinate", "Against"))
        self._choice = ReaderChoice((self._coordinate, self._against), lambda event: self._draw())
        self._quantity = pn.Row(self._coordinate, self._against, visible=False)
        self._text, self._words = self._pane(margin=(0, 2, 6, 2)), self._pane(margin=(4, 2, 4, 2))
        self._table = self._pane(margin=(8, 34, 6, 2), sizing_mode=None, styles=_BESIDE)
        self.figures = WideColumn()
        head = self._pane(margin=(14, 2, 10, 2))
        head.object = (
            "<p>Runs on disk. Choose one to see its results.<br>Folder:"
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
        self._reload(chosen[0] if chosen else None)

    def _pane(self, **params: Any) -> Text:
        return Text(stylesheets=_SHEETS, **params)

    def _reload(self, chosen: str | None) -> None:
        self.list.fill(list(reader.recordings()), chosen)
        self._show()

    def _show(self) -> None:
        """Show the chosen recording."""
        name = self.list.chosen
        self.actions.show()
        self._text.object, self._table.object, self._kept = NONE, "", None
        if name is not None:
            recording = self.list.found[name]
            try:
                self._text.object = about(recording, self.carried)
                self._table.object = results(recording)
                self._kept = _readable(recording)
            except BnnvizError as error:
                self._text.object += f"<p class='error'>{html.escape(error.message.text)}</p>"
        names = [] if self._kept is None else self._kept.names
        self._quantity.visible = bool(names)
        value = self._coordinate.value if self._coordinate.value in names else next(iter(names), None)
        others = [each for each in names if each != value]
        against = self._against.value if self._against.value in others else next(iter(others), None)
        with self._choice.setting():
            self._coordinate.param.update(options=names, value=value)
            self._against.param.update(options=others, value=against, visible=bool(others))
        self._draw()
        self.narrator.say("There are no recordings." if name is None else f"{name} chosen")
        self._readdress()

    def _draw(self) -> None:
        label, draws = self._coordinate.value, self._kept
        if draws is None:
            self.figures[:] = []
            self._words.object = ""
            return
        from bnnviz import plots  # HoloViews, once a figure is shown
        from bnnviz.figures import sources

        plots.use("bokeh")
        ess = ""
        if draws.log_weights is None:
            values = draws.draws[..., draws.names.index(label)].astype(float)
            ess = f" ESS {diagnostics.ess(values):,.0f}."
        self._words.object = f"<p>{html.escape(label)}.{ess}</p>"
        found = sources.exported(self.list.chosen, draws)
        against = self._against.value
        figures = [] if against in (None, label) else [plots.pair(found, [label, against], dark=self.dark)]
        figures += [plots.trace(found, label, dark=self.dark), plots.density(found, label, dark=self.dark)]
        if draws.log_weights is None:
            figures.append(plots.acf(found, label, dark=self.dark))
        self.figures[:] = [still(figure) for figure in figures]

    def _in_address(self) -> dict[str, str]:
        return {} if self.list.chosen is None else {self.listed: self.list.chosen}

    def _dress(self) -> None:
        super()._dress()
        self._show()


def _readable(recording: Recording) -> ExportedDraws:
    """Return a recording's draws for figures."""
    recording.check_written()
    numbers = recording.whole * len(recording.progress["counts"]) * len(recording.names())
    if numbers > _MOST_NUMBERS:
        raise BnnvizError(
            f"{recording.name} has {numbers:,} numbers, more than a page reads; look at it in Python"
            f" (bnnviz.recording({recording.name!r})).",
            "run",
        )
    return kept(recording)


build = RecordingsPage.build

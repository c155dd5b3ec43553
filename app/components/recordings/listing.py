"""List the recordings: search them, choose one or several."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from datetime import datetime

import panel_material_ui as pmui

from bnnviz.engine.recording.reader import Recording
from bnnviz_app.components.widgets import Text, WideColumn
from bnnviz_app.theme import styles

_MOST = 60  # shown at a time; the search finds the others
_STYLES = styles(__file__)


class RecordingList:
    """List the recordings of this machine, newest first."""

    def __init__(self, on_chosen: Callable[[], None]) -> None:
        self._on_chosen = on_chosen
        self.found: dict[str, tuple[Recording, str | None]] = {}
        self._boxes: dict[str, pmui.Checkbox] = {}
        self.search = pmui.TextInput(
            label="Search",
            placeholder="a name, a sampler, a data set",
            size="small",
            sizing_mode="stretch_width",
            min_height=46,
        )
        self.search.param.watch(lambda event: self._show(), "value_input")
        self._rows = WideColumn()
        self._count = Text(margin=(4, 8), stylesheets=[_STYLES["row"]])
        self.root = WideColumn(self.search, self._count, self._rows)

    @property
    def chosen(self) -> list[str]:
        """Names of the chosen recordings in the order of the list."""
        return [name for name, box in self._boxes.items() if box.value]

    def fill(self, found: Sequence[tuple[Recording, str | None]], chosen: Sequence[str]) -> None:
        """Update the list."""
        self.found = {recording.name: (recording, wrong) for recording, wrong in found}
        self._boxes = {}
        for name, (_, wrong) in self.found.items():
            look = {"disabled": wrong is not None, "margin": (2, 0, 0, 4), "min_height": 30}
            box = self._boxes[name] = pmui.Checkbox(label=name, value=name in chosen and wrong is None, **look)
            box.param.watch(lambda event: self._on_chosen(), "value")
        self._show()

    def _show(self) -> None:
        words = (self.search.value_input or "").lower().split()
        shown = [name for name in self.found if all(word in self._text(name).lower() for word in words)]
        kept = shown[:_MOST]
        self._rows[:] = [self._row(name) for name in kept]
        if not self.found:
            text = "No recordings yet."
        elif not shown:
            text = "No recording has all of these words."
        else:
            more = f", the first {_MOST} of them here" if len(shown) > _MOST else ""
            text = f"{len(shown)} of {len(self.found)} recordings{more}"
        self._count.object = f"<div>{html.escape(text)}</div>"

    def _row(self, name: str) -> WideColumn:
        recording, wrong = self.found[name]
        if wrong is None:
            about = " · ".join(html.escape(part) for part in _facts(recording))
        else:
            short = wrong.replace(str(recording.folder), name)  # its location is known
            about = f"<span class='wrong'>{html.escape(short)}</span>"
        text = Text(f"<div>{about}</div>", margin=(0, 6, 6, 38), stylesheets=[_STYLES["row"]])
        return WideColumn(self._boxes[name], text)

    def _text(self, name: str) -> str:
        recording, wrong = self.found[name]
        return " ".join([name, *(_facts(recording) if wrong is None else ["broken", wrong])])


def _facts(recording: Recording) -> list[str]:
    """Return the row of a recording."""
    spec, progress = recording.header["spec"], recording.progress
    data = spec.get("target_settings", {}).get("data")
    state = "done" if progress["finished"] else "failed" if progress["error"] else "not done"
    when = datetime.fromtimestamp(recording.folder.lstat().st_mtime).strftime("%Y-%m-%d %H:%M")
    return [
        f"{spec.get('sampler')} on {data or spec.get('target')}",
        f"{recording.whole:,} draws of {len(progress['counts'])} chains, {state}",
        f"{recording.size / 1e6:,.1f} MB",
        when,
    ]

"""List the recordings: search them and choose one."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from datetime import datetime

import panel_material_ui as pmui

from bnnviz.engine.recording.reader import Recording
from bnnviz_app.components.widgets import ReaderChoice, Text, WideColumn
from bnnviz_app.theme import styles

_MOST = 60  # shown at a time; the search finds the others
_STYLES = styles(__file__)
_SMALL = {"fontSize": "13px", "lineHeight": 1.35, "whiteSpace": "pre-line", "overflowWrap": "anywhere"}


class RecordingList:
    """List the recordings of this machine, newest first."""

    def __init__(self, on_chosen: Callable[[], None]) -> None:
        self._on_chosen = on_chosen
        self._labels: dict[str, str] = {}  # of the readable ones
        self.found: dict[str, Recording] = {}
        self.chosen: str | None = None  # if there are no recordings
        self.search = pmui.TextInput(
            label="Search",
            placeholder="a name, a sampler, a data set",
            size="small",
            sizing_mode="stretch_width",
            min_height=46,
        )
        self.search.param.watch(lambda event: self._show(), "value_input")
        look = {"& .MuiFormControlLabel-root": {"marginBottom": "8px"}, "& .MuiFormControlLabel-label": _SMALL}
        self._names = pmui.RadioBoxGroup(options={}, sx=look, size="small", sizing_mode="stretch_width")
        self._choice = ReaderChoice((self._names,), lambda event: self._choose(event.new))
        self._count, self._broken = (Text(margin=(4, 8), stylesheets=[_STYLES["row"]]) for _ in range(2))
        self.root = WideColumn(self.search, self._count, self._names, self._broken)

    def fill(self, found: Sequence[tuple[Recording, str | None]], chosen: str | None) -> None:
        """Update the list."""
        self.found = {recording.name: recording for recording, wrong in found if wrong is None}
        self._labels = {name: "\n".join([name, " · ".join(_facts(one))]) for name, one in self.found.items()}
        # Their location is known.
        broken = (wrong.replace(str(one.folder), one.name) for one, wrong in found if wrong is not None)
        lines = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in broken)
        self._broken.object = f"<div class='wrong'>{lines}</div>"
        self.chosen = chosen if chosen in self.found else next(iter(self.found), None)
        self._show()

    def _choose(self, name: str) -> None:
        self.chosen = name
        self._on_chosen()

    def _show(self) -> None:
        words = (self.search.value_input or "").lower().split()
        shown = [name for name, text in self._labels.items() if all(word in text.lower() for word in words)]
        # A group of radio buttons always has a choice, so the chosen recording stays in the list.
        listed = {*shown[:_MOST], self.chosen}
        options = {text: name for name, text in self._labels.items() if name in listed}
        with self._choice.setting():
            self._names.param.update(options=options, value=self.chosen)
        if not self._labels:
            text = "No recordings yet."
        elif not shown:
            text = "No recording has all of these words."
        else:
            more = f", the first {_MOST} of them here" if len(shown) > _MOST else ""
            text = f"{len(shown)} of {len(self._labels)} recordings{more}"
        self._count.object = f"<div>{text}</div>"


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

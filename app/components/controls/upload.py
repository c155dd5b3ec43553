"""Opening a CSV file of one's own: choose it, choose what to predict, sample."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz.errors import BnnvizError
from bnnviz.specs import upload
from bnnviz.specs.run import Spec

_MOST_MB = upload.MOST_BYTES // 1_000_000
_ASK, _TASKS = "told apart", ("regression", "classification")
_WIDE = {"sizing_mode": "stretch_width", "margin": (3, 14), "size": "small"}
_BOXED = _WIDE | {"margin": (9, 14, 3, 14)}  # the label of a select stands on its upper edge
_SAID = """
:host {font-size: 12px; line-height: 1.35; color: var(--mui-palette-text-secondary)}
.error {color: var(--mui-palette-error-main)}
"""


_TOO_LARGE = (
    f"That file is larger than the {_MOST_MB} MB that a page takes; use fewer rows, or the command line"
    " (bnnviz sample --data FILE.csv)."
)
_EMPTY = "That file is empty; choose one with a line of names and lines of numbers under it."


class File(pmui.FileInput):
    """A file input that says why the browser sends nothing of a file, where the widget itself fails or is silent.

    Parameters
    ----------
    on_refused : callable
        Called with a sentence when the file is too large to be sent, or empty.
    """

    def __init__(self, on_refused: Callable[[str], None], **params: Any) -> None:
        super().__init__(**params)
        self._on_refused = on_refused

    def _handle_msg(self, msg: Any) -> None:
        if msg.get("status") == "error":
            self._on_refused(_TOO_LARGE)
            return
        empty = msg.get("status") == "finished" and not self._buffer
        super()._handle_msg(msg)
        if empty:
            self._on_refused(_EMPTY)


class Upload:
    """A button for a file, and what has to be known of it.

    Parameters
    ----------
    spec : callable
        Gives the present spec.
    on_spec : callable
        Called with a checked spec on the file's rows.
    """

    def __init__(self, spec: Callable[[], Spec], on_spec: Callable[[Spec], None]) -> None:
        self._spec, self._on_spec = spec, on_spec
        self._file = File(
            self._refuse,
            label="Open a CSV file",
            accept=".csv,.tsv,.txt",
            max_file_size=upload.MOST_BYTES,
            variant="text",
            description=f"Your own table, up to {_MOST_MB} MB, a line of names first. It stays on this server.",
            **_WIDE,
        )
        self._column = pmui.Select(label="Predict the column", options=[], **_BOXED)
        self._task = pmui.Select(label="As", options=[_ASK, *_TASKS], value=_ASK, **_BOXED)
        self._use = pmui.Button(label="Sample a network on it", variant="outlined", **_WIDE)
        # Empty until a file is chosen: the page is painted sooner.
        self._asked = pn.Column(visible=False, sizing_mode="stretch_width", margin=0)
        self._said = pn.pane.HTML("", visible=False, sizing_mode="stretch_width", margin=(0, 14), stylesheets=[_SAID])
        self._file.param.watch(self._opened, "value")
        self._use.on_click(self._used)
        self.root = pn.Column(self._file, self._asked, self._said, sizing_mode="stretch_width", margin=0)

    async def _opened(self, event: Any) -> None:
        if event.new is None:
            return
        self._say("")
        self._ask(False)
        try:
            names = await asyncio.to_thread(upload.headings, event.new, self._name)
        except BnnvizError as error:
            self._say(error.sentence, failed=True)
            return
        self._column.param.update(options=names, value=names[-1])
        self._task.value = _ASK
        self._ask(True)

    def _refuse(self, sentence: str) -> None:
        self._ask(False)
        self._say(sentence, failed=True)

    async def _used(self, event: Any) -> None:
        task = None if self._task.value == _ASK else self._task.value
        arguments = (self._spec(), self._file.value, self._name, self._column.value, task)
        try:
            spec, notes = await asyncio.to_thread(upload.attach, *arguments)
        except BnnvizError as error:
            self._say(error.sentence, failed=True)
            return
        self._ask(False)
        self._say(" ".join([f"{self._name}, {self._column.value}.", *notes]))
        self._on_spec(spec)

    @property
    def _name(self) -> str:
        return self._file.filename or "your file"

    def _ask(self, shown: bool) -> None:
        if shown and not self._asked:
            self._asked[:] = [self._column, self._task, self._use]
        self._asked.visible = shown

    def _say(self, sentence: str, failed: bool = False) -> None:
        role = " class='error' role='alert'" if failed else " role='status'"
        self._said.object = f"<div{role}>{html.escape(sentence)}</div>" if sentence else ""
        self._said.visible = bool(sentence)

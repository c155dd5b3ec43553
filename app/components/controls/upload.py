"""Open a CSV file: choose it, choose what to predict, sample."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui

from bnnviz.errors import BnnvizError
from bnnviz.specs import upload
from bnnviz.specs.run import Spec
from bnnviz_app.access import roles
from bnnviz_app.components.widgets import Message, button

_MOST_MB = upload.MOST_BYTES // 1_000_000
_ASK, _TASKS = "told apart", ("regression", "classification")
_WIDE = {"sizing_mode": "stretch_width", "margin": (3, 14), "size": "small"}
_BOXED = _WIDE | {"margin": (9, 14, 3, 14)}  # the label of a select stands on its upper edge
_TOO_LARGE = (
    f"That file is larger than the {_MOST_MB} MB that a page takes; use fewer rows, or the command line"
    " (bnnviz sample --data FILE.csv)."
)
_EMPTY = "That file is empty; choose one with a line of names and lines of numbers under it."


class File(pmui.FileInput):
    """Choose a file and report why it cannot be sent, or is not taken: what is sent need not come from a browser."""

    def __init__(self, on_refused: Callable[[str], None], too_large: str, empty: str, **params: Any) -> None:
        params["max_file_size"] = roles.present().upload(params["max_file_size"])
        super().__init__(**params)
        self._on_refused, self._too_large, self._empty = on_refused, too_large, empty
        self._taken = 0  # bytes of the file that is being sent
        self._is_refused = False  # and what is left of it is not looked at

    def _handle_msg(self, msg: Any) -> None:
        status = msg.get("status")
        if status == "error":
            self._on_refused(self._too_large)
        elif status == "upload_event":
            self._take(msg)
        elif status == "finished":
            self._finish(msg)
        else:
            super()._handle_msg(msg)

    def _take(self, msg: dict[str, Any]) -> None:
        """Take a piece of the file, as long as all of them are no more than a page takes."""
        size = _size(msg.get("data"))
        self._taken += size or 0
        if self._is_refused or size is None or self._taken > self.max_file_size:
            self._is_refused = True
            self._forget()
        else:
            super()._handle_msg(msg)

    def _finish(self, msg: dict[str, Any]) -> None:
        refused, empty = self._is_refused, not self._buffer
        self._taken, self._is_refused = 0, False
        if refused:
            self._send_msg({"status": "error", "error": self._too_large})
            self._on_refused(self._too_large)
        elif empty:
            self._forget()
            self._send_msg({"status": "error", "error": self._empty})
            self._on_refused(self._empty)
        else:
            super()._handle_msg(msg)

    def _forget(self) -> None:
        self._buffer.clear()
        self._file_buffer.clear()


def _size(data: Any) -> int | None:
    """Return the bytes of a piece of a file; None where it is none: ``bytes`` would make a number so many zeros."""
    try:
        return memoryview(data).nbytes
    except TypeError:
        return len(data) if isinstance(data, list) else None


class Upload:
    """Take a file, and ask what has to be known of it."""

    def __init__(self, spec: Callable[[], Spec], on_spec: Callable[[Spec], None]) -> None:
        self._spec, self._on_spec = spec, on_spec
        self._file = File(
            self._refuse,
            _TOO_LARGE,
            _EMPTY,
            label="Open a CSV file",
            accept=".csv,.tsv,.txt",
            max_file_size=upload.MOST_BYTES,
            variant="text",
            description=f"Your own table, up to {_MOST_MB} MB, a line of names first. It stays on this server.",
            **_WIDE,
        )
        self._column = pmui.Select(label="Predict the column", options=[], **_BOXED)
        self._task = pmui.Select(label="As", options=[_ASK, *_TASKS], value=_ASK, **_BOXED)
        self._use = button("Sample a network on it", self._sample, **_WIDE | {"variant": "outlined"})
        # Empty until a file is chosen: the page is painted sooner.
        self._asked = pn.Column(visible=False, sizing_mode="stretch_width", margin=0)
        self._message = Message()
        self._file.param.watch(self._open, "value", onlychanged=False)  # the same file again is asked about again
        self.root = pn.Column(self._file, self._asked, self._message.root, sizing_mode="stretch_width", margin=0)

    async def _open(self, event: Any) -> None:
        if event.new is None:
            return
        self._message.say("")
        self._ask(False)
        try:
            names = await asyncio.to_thread(upload.headings, event.new, self._name)
        except BnnvizError as error:
            self._message.say(error.message.text, failed=True)
            return
        self._column.param.update(options=names, value=names[-1])
        self._task.value = _ASK
        self._ask(True)

    def _refuse(self, sentence: str) -> None:
        self._ask(False)
        self._message.say(sentence, failed=True)

    async def _sample(self) -> None:
        task = None if self._task.value == _ASK else self._task.value
        arguments = (self._spec(), self._file.value, self._name, self._column.value, task)
        try:
            spec, notes = await asyncio.to_thread(upload.attach, *arguments)
        except BnnvizError as error:
            self._message.say(error.message.text, failed=True)
            return
        self._ask(False)
        self._message.say(" ".join([f"{self._name}, {self._column.value}.", *notes]))
        self._on_spec(spec)

    @property
    def _name(self) -> str:
        return self._file.filename or "your file"

    def _ask(self, shown: bool) -> None:
        if shown and not self._asked:
            self._asked[:] = [self._column, self._task, self._use]
        self._asked.visible = shown

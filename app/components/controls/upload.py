"""Choose a file of the user's, up to a size that the server measures itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel_material_ui as pmui

from bnnviz_app.access import roles


class File(pmui.FileInput):
    """Choose a file and report why it is refused; limits also hold for messages that no browser sent."""

    def __init__(self, on_refused: Callable[[str], None], too_large: str, empty: str, **params: Any) -> None:
        params["max_file_size"] = roles.present().upload(params["max_file_size"])
        super().__init__(**params)
        self._on_refused, self._too_large, self._empty = on_refused, too_large, empty
        self._taken = 0  # received bytes of the file
        self._is_refused = False  # and the rest of the file is ignored

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
        """Take a piece of the file, up to the limit of the page."""
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
    """Return the number of bytes of a piece, or None if invalid; ``bytes`` would turn a number into zeros."""
    try:
        return memoryview(data).nbytes
    except TypeError:
        return len(data) if isinstance(data, list) else None

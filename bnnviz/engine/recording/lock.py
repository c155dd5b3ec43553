"""Hold a recording's folder for the one process that writes it, and notice when somebody takes it away."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from bnnviz.engine.recording.reader import LOCK
from bnnviz.errors import BnnvizError

_DELETED = " (deleted)"  # what Linux writes behind the name of an open file that has none any more


class RecordingGone(BnnvizError):
    """Say that a recording was removed, or renamed, while it was written: nothing more can be written to it."""


class RecordingLock:
    """Lock a recording's folder; the lock goes with its process, however that ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = (folder / LOCK).open("w")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise BnnvizError(
                f"The recording {folder} is being written by another process; wait for its end, or end it.", "run"
            ) from None

    def __del__(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()

    @property
    def is_held(self) -> bool:
        """Whether the folder is still where it was, and is the one that was locked."""
        try:
            return os.path.samestat(os.stat(self._folder / LOCK), os.fstat(self._file.fileno()))
        except (OSError, ValueError):  # the folder has gone, or the lock was released
            return False

    def check(self) -> None:
        """Refuse to write to a folder that was taken away: it would be made anew, with half of a recording."""
        if not self.is_held:
            raise RecordingGone(
                f"The recording {self._folder} was {self._what_happened()} while it was written, and nothing more is"
                " written to it; record the run again under another name.",
                "record",
            )

    def release(self, remove: bool = False) -> None:
        """Let others have the folder, and ``remove`` the lock's file from it."""
        if remove and self.is_held:
            (self._folder / LOCK).unlink(missing_ok=True)
        self._file.close()

    def _what_happened(self) -> str:
        """Return where the folder has gone, where the system tells it."""
        try:
            now = os.readlink(f"/proc/self/fd/{self._file.fileno()}")
        except (OSError, ValueError):
            return "removed or renamed"
        return "removed" if now.endswith(_DELETED) else f"renamed to {Path(now).parent}"

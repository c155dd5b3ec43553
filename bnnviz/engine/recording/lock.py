"""Lock a recording's folder for its only writing process, and detect the removal of the folder."""

from __future__ import annotations

import os
from pathlib import Path

import filelock

from bnnviz.errors import BnnvizError

LOCK = ".lock"


class RecordingGone(BnnvizError):
    """The recording was removed or renamed during the writing, which cannot continue."""


class RecordingLock:
    """Lock a recording's folder; the lock ends with its process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = filelock.FileLock(folder / LOCK, timeout=0, thread_local=False)
        try:
            self._lock.acquire()
        except filelock.Timeout:
            raise BnnvizError(
                f"The recording {folder} is being written by another process; wait until it ends, or end it.", "run"
            ) from None
        self._locked = folder.stat()

    @property
    def is_held(self) -> bool:
        """Whether the locked folder still exists in its place."""
        try:
            return self._lock.is_locked and os.path.samestat(self.folder.stat(), self._locked)
        except OSError:
            return False

    def check(self) -> None:
        """Raise RecordingGone if the folder was removed: recreating it would leave half a recording."""
        if not self.is_held:
            raise RecordingGone(
                f"The recording {self.folder} was removed or renamed while it was written; record the run again under"
                " another name.",
                "record",
            )

    def release(self, remove: bool = False) -> None:
        """Release the folder, and ``remove`` the lock's file from it."""
        if remove and self.is_held:
            (self.folder / LOCK).unlink(missing_ok=True)
        self._lock.release()

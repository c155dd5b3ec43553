"""Make replays in a separate process: this one has no torch, and others wait for it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bnnviz.errors import BnnvizError


class ReplayMaker:
    """Run ``bnnviz replay``, one at a time, and keep the pages that it makes until it is closed."""

    def __init__(self) -> None:
        self._making: asyncio.subprocess.Process | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="bnnviz-replay-")

    async def make(self, name: str, words: Sequence[str]) -> Path:
        """Make a page, and return it."""
        out = Path(self._scratch.name) / f"{name}.html"
        out.unlink(missing_ok=True)
        command = [sys.executable, "-m", "bnnviz", "replay", *words, "--html", str(out)]
        self._making = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        _, errors = await self._making.communicate()
        if self._making.returncode:
            lines = errors.decode(errors="replace").strip().splitlines() or ["no reason was given"]
            raise BnnvizError(lines[-1].removeprefix("bnnviz: "))
        return out

    def close(self) -> None:
        """Stop the replay in progress, and delete finished ones."""
        if self._making is not None and self._making.returncode is None:
            self._making.terminate()
        self._scratch.cleanup()

"""Keep the runs of a browser, so that a page finds its run again, even after a restart of the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import panel as pn
from tornado.httputil import HTTPServerRequest

from bnnviz import files, paths
from bnnviz.engine.cluster.backend import Backend
from bnnviz.engine.cluster.live_runs import STALE_S
from bnnviz.errors import BnnvizError

COOKIE = "bnnviz-browser"
UNSEEN_S = 30.0  # a run that no page shows and that is not recorded ends after so long; its checkpoint is kept
LOOK_S = 5.0  # between two looks at the runs that no page shows
MOST = 4  # runs of a browser that no page shows
_KEPT = ("run_id", "browser", "page", "title", "factory", "draws", "recorded")  # on disk
_ID, _BROWSER = re.compile(r"[0-9a-f]{32}"), re.compile(r"[\w-]{22}")
_TOLD = "browser"  # in the token of a session

log = logging.getLogger(__name__)


@dataclass
class KeptRun:
    """A run that belongs to a browser."""

    run_id: str
    browser: str
    page: str
    title: str
    factory: str
    draws: int = 0  # of all chains
    recorded: bool = False

    handle: Any = field(default=None, repr=False)
    viewer: Any = field(default=None, repr=False)  # the session that shows it
    left: float = 0.0  # when its page was left
    speed: float | None = None  # steps a second on its last page
    opened: set[str] = field(default_factory=set)  # drawers of its last page, and parts chosen by tabs
    playing: bool = False  # when it ended because no page showed it


class KeptRuns:
    """Keep the runs of all browsers, those of an earlier server among them."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or paths.live()
        self._runs: dict[str, KeptRun] = {}
        self._watching: asyncio.Task | None = None
        for path in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                if time.time() - path.stat().st_mtime > STALE_S:
                    path.unlink()
                else:
                    run = KeptRun(**json.loads(path.read_text(encoding="utf-8")))
                    self._runs[run.run_id] = run

    def show(self, handle: Any, viewer: Any, browser: str, page: str, title: str) -> KeptRun:
        """Note that a page shows a run."""
        run = self._runs.get(handle.run_id) or KeptRun(handle.run_id, browser, page, title, handle.factory)
        run.handle, run.viewer, run.title = handle, viewer, title
        self._runs[run.run_id] = run
        self._write(run)
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())
        return run

    def leave(self, run: KeptRun, viewer: Any) -> list[KeptRun]:
        """Note that a page has closed; return the runs that exceed the limit."""
        if run.viewer is not viewer:  # another page has taken it over
            return []
        run.viewer, run.left = None, time.monotonic()
        self._write(run)
        unseen = sorted(self.unseen(run.browser), key=lambda each: each.left)
        return unseen[: max(0, len(unseen) - MOST)]

    def unseen(self, browser: str) -> list[KeptRun]:
        """Return the runs of a browser that no page shows."""
        return [run for run in self._runs.values() if run.browser == browser and run.viewer is None]

    def last(self, browser: str) -> KeptRun | None:
        """Return the run of a browser that was left last, of those that no page shows."""
        return max(self.unseen(browser), key=lambda run: run.left, default=None)

    def find(self, run_id: str | None, browser: str) -> KeptRun | None:
        """Return a browser's run by its id, or None if it is unknown."""
        found = self._runs.get(run_id or "")
        return found if found is not None and found.browser == browser else None

    def take(self, run: KeptRun, backend: Backend, viewer: Any, play: bool) -> Any:
        """Return the handle of a run for a page; a run that has ended is resumed from its checkpoint."""
        run.viewer = viewer
        if run.handle is None or not (run.handle.alive or run.handle.held):
            run.handle = backend.start(None, factory=run.factory, run_id=run.run_id, play=play or run.playing)
        return run.handle

    async def end(self, run: KeptRun) -> None:
        """End a run and forget it."""
        self.forget(run)
        if run.handle is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(run.handle.command("stop"), 10)
        elif _ID.fullmatch(run.run_id):
            (self._folder / f"{run.run_id}.ckpt").unlink(missing_ok=True)

    def forget(self, run: KeptRun) -> None:
        """Forget a run."""
        self._runs.pop(run.run_id, None)
        self._path(run).unlink(missing_ok=True)

    def _path(self, run: KeptRun) -> Path:
        return self._folder / f"{run.run_id}.json"

    def _write(self, run: KeptRun) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            files.write_whole(
                self._path(run), json.dumps({name: getattr(run, name) for name in _KEPT}).encode(), sync=False
            )
        except OSError as error:
            log.warning("the run %s cannot be found after a restart: %s", run.run_id, error)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for run in list(self._runs.values()):
                try:
                    await self._look(run)
                except Exception:  # without this task no run would ever end
                    log.exception("the kept run %s could not be looked at", run.run_id)

    async def _look(self, run: KeptRun) -> None:
        """Count the draws of a run that no page shows, and end it after a while."""
        if run.viewer is not None or run.handle is None:
            return
        with contextlib.suppress(BnnvizError):
            frame = await run.handle.frame(["status"])
            if frame is not None and "status" in frame:
                run.draws, run.recorded = drawn(frame["status"]), bool(frame["status"].get("record"))
                self._write(run)
        if not run.recorded and time.monotonic() - run.left > UNSEEN_S:
            run.playing = run.handle.playing
            run.handle.let_go()
            run.handle = None


def drawn(status: dict[str, Any]) -> int:
    """Return the number of draws of all chains of a run, from its status; 0 if the run makes none."""
    return int(status.get("draws", 0)) * int(status.get("chains", 1))


def runs() -> KeptRuns:
    """Return the runs that this server keeps."""
    if "runs" not in pn.state.cache:
        pn.state.cache["runs"] = KeptRuns()
    return pn.state.cache["runs"]


def visitor(request: HTTPServerRequest) -> dict[str, str]:
    """Return the id of the browser that sends a request; a new one gets a cookie with the answer."""
    given = request.cookies.get(COOKIE)
    if given is not None and _BROWSER.fullmatch(given.value):
        return {_TOLD: given.value}
    new = secrets.token_urlsafe(16)
    # The cookie lasts as long as the browser session.
    request.answer_cookie = f"{COOKIE}={new}; Path=/; HttpOnly; SameSite=Lax"
    return {_TOLD: new}


def browser() -> str:
    """Return the id of the browser of the present session, from its token."""
    context = None if pn.state.curdoc is None else pn.state.curdoc.session_context
    return "" if context is None else context.token_payload.get(_TOLD, "")

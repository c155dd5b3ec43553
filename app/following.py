"""Follow the teacher's run: its frames, asked for once, however many look."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from typing import Any

import panel as pn

from bnnviz.errors import BnnvizError
from bnnviz_app import broadcast
from bnnviz_app.session import Session

_FRESHEN_S = 2.0  # that a browser waits for a picture before it gets the page without one
_LEADER, _FROZEN = "leader", "frozen"
_NONE_YET = "The teacher has not opened the Lab yet; this page shows it as soon as it runs."
_HELD = "The teacher has frozen the picture."


def lead(session: LeadingSession) -> None:
    """Have a class that follows see what this session runs."""
    pn.state.cache[_LEADER] = weakref.ref(session)


def leader() -> Session | None:
    """Return the session that a class follows; None where there is none."""
    session = _opened_last()
    return session if session is not None and session.runs is not None else None


def frozen() -> Picture | None:
    """Return the picture that a class keeps; None where it sees what runs."""
    return pn.state.cache.get(_FROZEN)


def unfreeze() -> None:
    """Have a class that follows see what runs again."""
    pn.state.cache.pop(_FROZEN, None)


def _opened_last() -> LeadingSession | None:
    found = pn.state.cache.get(_LEADER)
    return None if found is None else found()


class Picture:
    """Keep the scene and the frame of the moment in which the teacher freezes, for pages that do not show them."""

    def __init__(self) -> None:
        self.spec: Any = None
        self.awaited = False
        self.scene: dict[str, Any] | None = None
        self.frame: dict[str, Any] | None = None

    async def take(self, run: Any, spec: Any) -> None:
        """Ask a run, by its handle, for its scene, and for all parts of a frame."""
        self.spec, view, self.awaited = spec, run.view(), False
        with contextlib.suppress(BnnvizError):  # a run that has failed has none
            self.scene = await view.scene()
            self.frame = await view.frame(sorted(self.scene["emits"]))


class LeadingSession(Session):
    """Run what the teacher's Lab shows, which a class may follow."""

    def freeze(self) -> None:
        """Have followers keep the picture that they see, whatever runs from now on."""
        picture = pn.state.cache[_FROZEN] = Picture()
        teacher = _opened_last()
        if teacher is not None:
            self._spawn(teacher.fill(picture))

    async def fill(self, picture: Picture) -> None:
        """Have a picture taken of what followers see: of the run before, as long as another one is being built."""
        run, spec = (self._before, self._good) if self.runs is None else (self.runs, self.spec)
        picture.awaited = run is None
        if run is not None:
            await picture.take(run, spec)
        if picture.frame is None and self.runs not in (None, run):
            await picture.take(self.runs, self.spec)  # the one before had to go meanwhile

    async def _bring_up(self) -> None:
        await super()._bring_up()
        picture = frozen()
        if picture is not None and picture.awaited and self.runs is not None and _opened_last() is self:
            await self.fill(picture)

    def close(self) -> None:
        """End the run and the loop, and what followers keep of it: nobody is left to show it again."""
        if _opened_last() is self:
            unfreeze()
        super().close()


class FollowingSession(Session):
    """Show the run of the teacher's Lab, and no other; it cannot be told anything."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._starting = False
        self._source: Any = None  # the handle of the run that is shown
        self._kept: Picture | None = None  # what the page shows while the teacher's picture is frozen
        self._fresh = False  # the page shows the run as it was a moment ago
        self._turning = asyncio.Lock()
        broadcast.before_written(self._doc, self._freshen)

    def step(self, kind: str, times: int = 1) -> None:
        """Do nothing: the teacher steps."""

    def close(self) -> None:
        """Go on: the page is shown to whoever comes."""

    def _send(self, name: str, undo: dict[str, Any] | None = None, **args: Any) -> None:
        """Send nothing: what is watched is the teacher's to choose."""

    def _connected(self) -> bool:
        session = self._server_session()
        return session is not None and session.connection_count > 0

    async def _freshen(self) -> bool:
        """Show what is to be seen before the page is written for a browser; return whether it was not there.

        Else the browser would first paint the page as it was built, or as it was when somebody looked last.
        """
        if self._fresh or (self._kept is not None and self._kept is frozen()):
            return False
        with contextlib.suppress(TimeoutError, BnnvizError):  # the loop says what is wrong, and goes on
            await asyncio.wait_for(self._turn_once(), _FRESHEN_S)
        return True

    async def _turn_once(self) -> None:
        async with self._turning:
            await self._turn_alone()

    async def _turn_alone(self) -> None:
        if not self._connected():
            self._fresh = False
            return
        picture = frozen()
        if picture is not None:
            await self._keep(picture)
            return
        if self._kept is not None:
            self._kept = self._source = None
        teacher = leader()
        if teacher is None:
            if self._source is None or _opened_last() is None:
                await self._tell(_NONE_YET)
            return
        if teacher.runs is not self._source:
            await self._take_up(teacher)
        await self._tick(self._handle)

    async def _take_up(self, teacher: Session) -> None:
        source = teacher.runs
        scene = await source.scene()
        self._source, self._handle = source, source.view()
        self._spec = self._good = teacher.spec
        self._every_view, self._jumps = True, 0
        await self._tell("")
        await self._show(self._screen.show_scene, scene)

    def _paint(self, frame: dict[str, Any]) -> None:
        super()._paint(frame)
        self._fresh = True

    async def _keep(self, picture: Picture) -> None:
        """Leave the page as it is; one that does not show the run, as nobody looked at it, gets the kept picture."""
        if self._kept is not picture and (self._fresh or picture.frame is not None):
            if not self._fresh:
                self._spec = self._good = picture.spec
                await self._tell("")
                await self._show(self._follow, picture.frame, picture.scene)
            self._kept, self._fresh = picture, False
        self._idle, self.playing = True, False
        await self._tell(_HELD)

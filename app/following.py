"""Follow the teacher's run: its frames, asked for once, however many look."""

from __future__ import annotations

import weakref
from typing import Any

import panel as pn

from bnnviz_app.session import Session

_LEADER = "leader"
_NONE_YET = "The teacher has not opened the Lab yet; this page shows it as soon as it runs."


def lead(session: Session) -> None:
    """Have a class that follows see what this session runs."""
    pn.state.cache[_LEADER] = weakref.ref(session)


def leader() -> Session | None:
    """Return the session that a class follows; None where there is none."""
    found = pn.state.cache.get(_LEADER)
    session = None if found is None else found()
    return session if session is not None and session.runs is not None else None


class FollowingSession(Session):
    """Show the run of the teacher's Lab, and no other; it cannot be told anything."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._starting = False
        self._source: Any = None  # the handle of the run that is shown

    def step(self, kind: str, times: int = 1) -> None:
        """Do nothing: the teacher steps."""

    def close(self) -> None:
        """Go on: the page is shown to whoever comes."""

    def _send(self, name: str, undo: dict[str, Any] | None = None, **args: Any) -> None:
        """Send nothing: what is watched is the teacher's to choose."""

    def _connected(self) -> bool:
        session = self._server_session()
        return session is not None and session.connection_count > 0

    async def _turn_once(self) -> None:
        if not self._connected():
            return
        teacher = leader()
        if teacher is None:
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

"""The session of a page: what its page is told where a run cannot be started, and what pressing play does then."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bokeh.document import Document

from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz_app import kept_runs
from bnnviz_app.kept_runs import KeptRuns
from bnnviz_app.session import Session


class Refusing:
    """A backend on which no run can be prepared, as often as it is tried; or only fails later."""

    def __init__(self, later: bool = False) -> None:
        self.tried: list[bool] = []
        self.later = later

    def devices(self) -> list[str]:
        return ["cpu"]

    def start(self, spec: Spec, play: bool, origin: str | None) -> Any:
        self.tried.append(play)

        async def scene() -> dict[str, Any]:
            if not self.later:
                raise BnnvizError("No such data.", "target.data")
            return {"title": "a run"}

        async def stop() -> None:
            pass

        async def frame(want: list[str]) -> None:
            return None

        return SimpleNamespace(
            spec=spec,
            run_id="0" * 32,
            factory="",
            held=True,
            scene=scene,
            stop=stop,
            frame=frame,
            state="failed",
            alive=False,
            playing=False,
            notice="It has no units.",
        )


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a function that gives a session on a backend, and the list of what its page is told."""

    async def show(self: Session, function: Any, *args: Any) -> None:
        function(*args)

    monkeypatch.setattr(Session, "_show", show)
    kept = KeptRuns(tmp_path)
    monkeypatch.setattr(kept_runs, "runs", lambda: kept)

    def begin(backend: Refusing) -> tuple[Session, list[str]]:
        statement: list[str] = []
        screen = SimpleNamespace(
            show_error=lambda error: statement.append(error.sentence),
            show_playing=lambda: statement.append("playing"),
            show_notice=lambda sentence, failed: statement.append(sentence),
            show_devices=lambda names: None,
            show_scene=lambda scene: statement.append("scene"),
            show_waiting=lambda waiting: None,
            show_spec=lambda spec: None,
            requested=set,
        )
        ready: Future = Future()
        ready.set_result(backend)
        heartbeat = SimpleNamespace(hidden=False, still=False)
        return Session(Spec(target="gaussian", sampler="bps"), ready, screen, heartbeat, Document()), statement

    return begin


def test_play_tries_a_run_again_that_could_not_be_started_and_is_no_pause_afterwards(begun: Any) -> None:
    async def visit(backend: Refusing) -> list[str]:
        session, statement = begun(backend)
        for _ in range(2):
            session.play()
            with pytest.raises(BnnvizError) as refused:
                await session._start()
            await session._complain(refused.value)
            assert not session.playing and not session._starting
        return statement

    backend = Refusing()
    assert asyncio.run(visit(backend)) == ["playing", "No such data."] * 2
    assert backend.tried == [True, True]


def test_why_a_run_failed_is_stated_again_when_it_fails_again(begun: Any) -> None:
    async def visit(backend: Refusing) -> list[str]:
        session, statement = begun(backend)
        for _ in range(2):
            session.play()
            await session._start()
            await session._tick(session._handle)
            await session._complain(BnnvizError("It has no units.", "sampler"))  # lingers
            statement.pop()
        return [each for each in statement if each != "playing"]

    assert asyncio.run(visit(Refusing(later=True))) == ["scene", "It has no units.", "scene", "", "It has no units."]


def test_play_is_not_taken_back_by_the_run_before_another_one(begun: Any) -> None:
    async def visit() -> tuple[bool, list[str]]:
        session, statement = begun(Refusing(later=True))

        async def frame(want: list[str]) -> None:
            # Somebody chooses another run and plays while the page waits for a frame of this one, which rests.
            session.begin(Spec(target="banana", sampler="bps"))
            session.play()

        session._starting = False
        session._handle = SimpleNamespace(frame=frame, state="running", playing=False, notice=None, spec=session.spec)
        await session._tick(session._handle)
        return session.playing, statement

    playing, statement = asyncio.run(visit())
    assert playing and "playing" not in statement

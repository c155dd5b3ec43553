"""Freeze what a class follows: frames that are not sent, who comes late, what runs then, and the teacher's button."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import panel as pn
import pytest
from bokeh.document import Document
from bokeh.protocol import Protocol
from bokeh.server.session import ServerSession
from test_class import Connection, Line, class_at

from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz_app import broadcast, following
from bnnviz_app.access import roles
from bnnviz_app.access.roles import GATE, OWNER, STUDENT
from bnnviz_app.address import Visit
from bnnviz_app.following import FollowingSession, LeadingSession, frozen, lead, unfreeze
from bnnviz_app.pages import lab as lab_page
from bnnviz_app.pages.lab import LabPage
from bnnviz_app.session import Session

SHOWN = re.compile(r"\[(\w*) (\d*)\|([^\]]*)\]")
ASKED: Any = Protocol().create("PULL-DOC-REQ")


class Run:
    """Stand in for a run: a frame is a number, which a look sees once."""

    state, notice, playing, waits = "running", None, True, False

    def __init__(self, name: str, number: int = 1) -> None:
        self.name, self.number, self.lost = name, number, False

    def view(self) -> Any:
        return View(self)

    async def scene(self) -> dict[str, Any]:
        if self.lost:
            raise BnnvizError("This run has ended.")
        return {"emits": ["status", "table"], "name": self.name}

    async def stop(self) -> None:
        """End."""


class View:
    def __init__(self, run: Run) -> None:
        self.run, self.seen = run, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)

    async def frame(self, want: list[str]) -> dict[str, Any] | None:
        if self.seen == self.run.number:
            return None
        self.seen = self.run.number
        return {"number": self.seen, "status": {"playing": True}, "want": want}


class Screen:
    """Show scene, frame and sentence in the title of a document; a new scene takes back the others, as on a page."""

    def __init__(self, doc: Document) -> None:
        self.doc, self.shown = doc, ("", "", "")

    def wanted(self, turn: int | None) -> set[str]:
        return {"status"}

    def show_scene(self, scene: dict[str, Any]) -> None:
        self._show(scene["name"], "", "")

    def show_frame(self, frame: dict[str, Any]) -> None:
        self._show(self.shown[0], str(frame["number"]), self.shown[2])

    def show_notice(self, sentence: str, failed: bool) -> None:
        self._show(*self.shown[:2], sentence)

    def _show(self, *shown: str) -> None:
        self.shown = shown
        self.doc.title = f"[{shown[0]} {shown[1]}|{shown[2]}]"


class Browser:
    """Look at a page of many as a browser does: it takes the page, then every change."""

    def __init__(self, page: FollowPage) -> None:
        self._page, self._line = page, Line()
        self._connection = Connection(self._line)
        self._written = ""

    async def open(self) -> Browser:
        """Come to the page."""
        self._page.server.subscribe(self._connection)
        self._written = (await self._page.server._handle_pull(ASKED, self._connection)).content_json
        self._page.sent.shown(self._connection)
        return self

    def leave(self) -> None:
        """Close the tab."""
        self._page.server.unsubscribe(self._connection)

    @property
    def written(self) -> str:
        """The page as it was written for it."""
        return self._written

    @property
    def first(self) -> tuple[str, ...]:
        """Scene, frame and sentence of its first paint."""
        return SHOWN.findall(self._written)[-1]

    @property
    def received(self) -> int:
        """Bytes that came."""
        return len(self._line.data)

    @property
    def shown(self) -> tuple[str, ...]:
        """Scene, frame and sentence that are on its page."""
        return SHOWN.findall(self._written + self._line.data.decode(errors="replace"))[-1]

    @property
    def frames(self) -> list[str]:
        """The numbers of all frames that came, in their order."""
        found = [number for _, number, _ in SHOWN.findall(self._line.data.decode(errors="replace")) if number]
        return list(dict.fromkeys(found))


class FollowPage:
    """Hold the page of one theme that many look at, on the server."""

    def __init__(self) -> None:
        broadcast.install()
        self.doc = Document()
        self.server = ServerSession("page", self.doc)
        self.sent = broadcast.Broadcast(self.server)
        self.doc._session_context = lambda: SimpleNamespace(session=self.server)
        heartbeat: Any = SimpleNamespace(hidden=False, still=False, beat=lambda: None)
        self.screen = Screen(self.doc)
        self.session = FollowingSession(Spec(), Future(), self.screen, heartbeat, self.doc)
        # As on a server, Panel sends a change at once.
        pn.state._connected[self.doc], pn.state._thread_id_[self.doc] = True, threading.get_ident()
        self.session._on_load()

    async def turn(self, times: int = 1) -> None:
        """Take turns of the page's loop."""
        for _ in range(times):
            await self.session._turn_once()
            await asyncio.sleep(0)


class Class:
    """Hold a teacher whose run is followed."""

    def __init__(self) -> None:
        self.teacher = self.lab(Run("one"))

    def lab(self, run: Run) -> LeadingSession:
        """Open a Lab of the teacher."""
        session = LeadingSession(Spec(), Future(), Screen(Document()), SimpleNamespace(), Document())
        session._handle = run
        lead(session)
        return session

    async def freeze(self) -> None:
        """Press the button, and wait until the picture is taken."""
        self.teacher.freeze()
        await asyncio.gather(*self.teacher._tasks)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave no leader, and nothing frozen, to other tests."""
    for name in ("leader", "frozen"):
        monkeypatch.setitem(pn.state.cache, name, None)
    yield


def scene(play: Callable[[Class, FollowPage], Awaitable[None]]) -> None:
    """Play a scene of a class on a page that nobody has opened yet."""

    async def main() -> None:
        await play(Class(), FollowPage())

    asyncio.run(main())


def test_while_frozen_no_frame_is_sent_and_a_sentence_says_why() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        browser = await Browser(page).open()
        await page.turn(2)
        assert browser.shown == ("one", "1", "")
        await held.freeze()
        held.teacher.runs.number = 2
        await page.turn()
        assert browser.shown == ("one", "1", following._HELD)
        before = browser.received
        for number in range(3, 6):
            held.teacher.runs.number = number
            await page.turn()
        assert browser.received == before and browser.frames == ["1"]
        assert page.session._period() > 0.1, "a page that shows nothing new has to rest"

    scene(play)


def test_another_run_of_the_teacher_does_not_come_through() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        browser = await Browser(page).open()
        await page.turn()
        await held.freeze()
        for runs in (None, Run("two", 7)):  # it is being built, and is there
            held.teacher._handle = runs
            await page.turn(2)
            assert browser.shown == ("one", "1", following._HELD)

    scene(play)


def test_who_comes_while_frozen_gets_the_frozen_picture_on_every_page() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        await Browser(page).open()
        await page.turn()
        await held.freeze()
        held.teacher._handle = Run("two", 7)
        await page.turn()
        late, dark = await Browser(page).open(), FollowPage()
        first = await Browser(dark).open()
        await dark.turn(3)
        assert late.shown == first.shown == ("one", "1", following._HELD)
        assert first.first == first.shown and not first.frames, "the kept picture comes once, with the page"

    scene(play)


def test_a_page_that_nobody_looked_at_shows_the_moment_of_freezing_not_what_was_on_it() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        early = await Browser(page).open()
        await page.turn()
        early.leave()
        await page.turn()
        held.teacher.runs.number = 4
        await held.freeze()
        held.teacher.runs.number = 5
        browser = await Browser(page).open()
        await page.turn(2)
        assert browser.shown == ("one", "4", following._HELD)

    scene(play)


def test_the_picture_of_one_freezing_is_not_that_of_the_next() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        browser = await Browser(page).open()
        await page.turn()
        await held.freeze()
        await page.turn()
        unfreeze()
        held.teacher.runs.number = 6
        await held.freeze()  # before the page had a turn
        await page.turn(2)
        assert browser.shown == ("one", "6", following._HELD)

    scene(play)


def test_unfreezing_sends_the_newest_of_what_runs_then() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        browser, dark = await Browser(page).open(), FollowPage()
        await page.turn()
        await held.freeze()
        other = await Browser(dark).open()
        await page.turn()
        await dark.turn()
        held.teacher.runs.number = 8
        unfreeze()
        await page.turn()
        assert browser.shown == ("one", "8", "")
        held.teacher._handle = Run("two", 9)
        await dark.turn()
        assert other.shown == ("two", "9", "")
        assert browser.frames == ["1", "8"]

    scene(play)


def test_without_a_new_frame_unfreezing_shows_the_run_again() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        browser = await Browser(page).open()
        await page.turn()
        await held.freeze()
        await page.turn()
        unfreeze()
        await page.turn()
        assert browser.shown == ("one", "1", "")

    scene(play)


def test_where_the_teacher_closes_the_lab_that_is_frozen_it_ends_for_all() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        browser = await Browser(page).open()
        await page.turn()
        await held.freeze()
        await page.turn()
        held.teacher.close()
        await page.turn()
        assert frozen() is None and browser.shown[2] == following._NONE_YET
        held.teacher = held.lab(Run("next", 3))
        await page.turn()
        assert browser.shown == ("next", "3", "")

    scene(play)


def test_it_stays_frozen_where_the_teacher_opens_the_lab_again() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        browser = await Browser(page).open()
        await page.turn()
        await held.freeze()
        before, held.teacher = held.teacher, held.lab(Run("next", 3))
        before.close()  # as the server does some seconds after a page was loaded again
        await page.turn()
        assert browser.shown == ("one", "1", following._HELD)

    scene(play)


def test_where_nothing_can_be_kept_pages_stay_as_they_are() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        browser = await Browser(page).open()
        await page.turn()
        held.teacher.runs.lost = True
        await held.freeze()
        await page.turn()
        assert browser.shown == ("one", "1", following._HELD)
        unfreeze()
        held.teacher._handle = None
        await held.freeze()
        await page.turn()
        assert browser.shown == ("one", "1", following._HELD)

    scene(play)


def test_who_comes_late_is_written_the_picture_itself_not_a_page_without_one() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        await held.freeze()
        late = await Browser(page).open()
        assert late.first == ("one", "1", following._HELD) and not late.frames
        unfreeze()
        other = FollowPage()  # in the other theme, of a run that goes on
        held.teacher.runs.number = 3
        assert (await Browser(other).open()).first == ("one", "3", "")

    scene(play)


def test_who_comes_back_is_written_what_is_there_now() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        early = await Browser(page).open()
        await page.turn()
        early.leave()
        await page.turn()
        held.teacher._handle = Run("two", 5)
        await held.freeze()
        late = await Browser(page).open()
        assert late.first == ("two", "5", following._HELD)

    scene(play)


def test_a_page_whose_run_does_not_answer_is_written_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_FRESHEN_S", 0.05)

    async def play(held: Class, page: FollowPage) -> None:
        never = asyncio.Event()
        monkeypatch.setattr(Run, "scene", lambda run: never.wait())
        assert not SHOWN.findall((await Browser(page).open()).written)

    scene(play)


def test_while_another_run_is_built_the_one_before_is_kept() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        early = await Browser(page).open()
        await page.turn()
        held.teacher._before, held.teacher._handle = held.teacher.runs, None
        await page.turn()
        assert early.shown == ("one", "1", ""), "the Lab is open"
        held.teacher._before.number = 2
        await held.freeze()
        held.teacher._before, held.teacher._handle = None, Run("two", 7)
        late = await Browser(FollowPage()).open()
        assert late.first == ("one", "2", following._HELD)

    scene(play)


def test_where_the_run_before_goes_while_it_is_asked_the_new_one_is_kept() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        held.teacher._before, held.teacher._handle = held.teacher.runs, None
        held.teacher._before.lost = True
        held.teacher.freeze()
        held.teacher._handle = Run("two", 7)
        await asyncio.gather(*held.teacher._tasks)
        assert (await Browser(page).open()).first == ("two", "7", following._HELD)

    scene(play)


def test_the_first_run_of_all_is_kept_as_soon_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(held: Class, page: FollowPage) -> None:
        held.teacher._handle = None
        await held.freeze()
        assert frozen().awaited

        async def bring_up(self: Session) -> None:
            self._handle = Run("first", 1)

        monkeypatch.setattr(Session, "_bring_up", bring_up)
        await held.teacher._bring_up()
        assert not frozen().awaited
        held.teacher.runs.number = 9
        assert (await Browser(page).open()).first == ("first", "1", following._HELD)
        held.teacher._handle = Run("next", 3)
        await held.teacher._bring_up()
        assert frozen().scene["name"] == "first"

    scene(play)


def test_the_kept_frame_has_all_parts_of_the_run() -> None:
    async def play(held: Class, page: FollowPage) -> None:
        await held.freeze()
        assert frozen().frame["want"] == ["status", "table"] and frozen().scene["name"] == "one"

    scene(play)


# --- the teacher's button


@pytest.fixture
def in_class(no_server: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pn.state.cache, GATE, class_at(5006))
    monkeypatch.setattr(roles, "present", lambda: OWNER)


def labels(page: LabPage) -> list[str]:
    return [each.label for each in page.tools]


def test_the_teachers_lab_freezes_and_all_its_pages_say_so(in_class: None) -> None:
    async def main() -> None:
        one = lab_page.build(False)
        assert labels(one)[0] == "Freeze"
        one.freezing[0].root.clicks += 1
        assert frozen() is not None and labels(one)[0] == "Unfreeze"
        other = lab_page.build(False)
        assert labels(other)[0] == "Unfreeze"
        other.freezing[0].root.clicks += 1
        assert frozen() is None and labels(other)[0] == "Freeze"
        one.freezing[0].update({"status": {}})
        assert labels(one)[0] == "Freeze" and one.freezing[0] in one.components

    asyncio.run(main())


def test_a_student_and_who_has_no_class_cannot_freeze(no_server: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Freeze" not in labels(LabPage(False, Visit(LabPage.opening())))
    monkeypatch.setitem(pn.state.cache, GATE, class_at(5006))
    monkeypatch.setattr(roles, "present", lambda: STUDENT)
    page = LabPage(False, Visit(LabPage.opening()))
    assert "Freeze" not in labels(page) and not hasattr(page.session, "freeze")

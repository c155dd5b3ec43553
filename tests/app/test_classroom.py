"""A class: who is a student, what a student may not do, the question and its counts, and the teacher's place."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import panel as pn
import pytest
from bokeh.application import Application
from bokeh.application.handlers.handler import Handler
from bokeh.document import Document
from bokeh.server.server import Server
from bokeh.util.token import get_token_payload
from panel.io.state import set_curdoc
from servers import BROWSER, serving
from test_gate import Visitor
from tornado.httpclient import HTTPResponse

from bnnviz.errors import BnnvizError
from bnnviz.lessons import content, text
from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec
from bnnviz_app.access import roles
from bnnviz_app.access.gate import GATE, Gate
from bnnviz_app.access.roles import OWNER, STUDENT
from bnnviz_app.access.secret import Secret
from bnnviz_app.address import Visit
from bnnviz_app.classroom import requests
from bnnviz_app.classroom.poll import CLOSED, OPEN, SHOWN, Poll, PollQuestion, PollText, typed
from bnnviz_app.classroom.requests import Classroom, answer_class
from bnnviz_app.components.controls.upload import File
from bnnviz_app.page import _offered
from bnnviz_app.pages.lab import LabPage
from bnnviz_app.session import Session

TEACHER, PUPIL = "the-teachers-token", "the-students-token"
QUESTION = PollQuestion("en", {"en": PollText("Why?", ("this", "that", "neither"), "So it is.")}, 1)
THINNING = content.find("thinning").question


def class_at(port: int) -> Gate:
    return Gate.at("127.0.0.1", port, Secret(TEACHER), students=Secret(PUPIL))


# --- a server of a class


class Roles(Handler):
    """Build nothing but a title, from what the session was told; as `app_hooks.py` has it."""

    def modify_document(self, doc: Document) -> None:
        with set_curdoc(doc):
            refusal = roles.OPEN_PAGES.refusal(doc.session_context)
            doc.title = roles.present().name if refusal is None else "refused"

    def process_request(self, request: Any) -> dict[str, Any]:
        return roles.visitor(request)

    async def on_session_created(self, context: Any) -> None:
        roles.OPEN_PAGES.opened(context)

    async def on_session_destroyed(self, context: Any) -> None:
        roles.OPEN_PAGES.closed(context)


class Browser:
    """Keep cookies, as a browser does."""

    def __init__(self, server: Server) -> None:
        self._visitor, self._cookies = Visitor(server.port), {}

    async def get(self, path: str) -> HTTPResponse:
        answer = await self._visitor.get(path, BROWSER | self._kept())
        for line in answer.headers.get_list("Set-Cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self._cookies[name] = value
        return answer

    async def enter(self, token: str) -> Browser:
        assert (await self.get(f"/app?token={token}")).code == 302
        return self

    async def role(self) -> str:
        """Return the title of the page: the role that its session has."""
        body = (await self.get("/app")).body.decode()
        return body.partition("<title>")[2].partition("</title>")[0]

    async def seen(self) -> dict[str, Any]:
        return json.loads((await self.get("/class")).body)

    async def post(self, body: Any) -> int:
        text = body if isinstance(body, str) else json.dumps(body)
        return (await self._visitor.get("/class", self._kept(), method="POST", body=text)).code

    def _kept(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}


@pytest.fixture
def classroom(monkeypatch: pytest.MonkeyPatch) -> Classroom:
    """The class of this test."""
    made = Classroom()
    monkeypatch.setitem(pn.state.cache, requests._CLASS, made)
    monkeypatch.setattr(roles, "OPEN_PAGES", roles.Pages())
    return made


@asynccontextmanager
async def attending(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """Serve a class."""

    def gate(port: int) -> Gate:
        made = class_at(port)
        monkeypatch.setitem(pn.state.cache, GATE, made)
        return made

    async with serving(Application(Roles()), gate) as server:
        answer_class(server._tornado, pn.state.cache[GATE], "/app")
        yield server


async def test_each_link_gives_its_role_and_a_teacher_who_opens_the_students_stays_one(
    classroom: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with attending(monkeypatch) as server:
        teacher, pupil = await Browser(server).enter(TEACHER), await Browser(server).enter(PUPIL)
        assert (await teacher.role(), await pupil.role()) == ("owner", "student")
        await teacher.enter(PUPIL)
        assert await teacher.role() == "owner"
        await pupil.enter(TEACHER)  # who has the teacher's link is a teacher
        assert await pupil.role() == "owner"
        assert (await Browser(server).get("/app")).headers["Location"].startswith("./login")


async def test_a_session_is_reported_a_role_and_neither_cookies_nor_headers(
    classroom: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with attending(monkeypatch) as server:
        headers = {"Authorization": f"Bearer {TEACHER}", "Cookie": "bnnviz-theme=dark; other=1", "X-Own": "x"}
        assert (await Visitor(server.port).get("/app", headers)).code == 200
        (context,) = server._tornado._applications.values()
        (session,) = context.sessions
        reported = get_token_payload(session.token)
        assert (
            reported["role"] == "owner"
            and reported["cookies"] == {"bnnviz-theme": "dark"}
            and reported["headers"] == {}
        )
        assert TEACHER not in str(reported)


async def test_pages_are_counted_by_person_however_they_are_asked_for(
    classroom: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with attending(monkeypatch) as server:
        anna, ben = await Browser(server).enter(PUPIL), await Browser(server).enter(PUPIL)
        monkeypatch.setitem(BROWSER, "Accept", "*/*")
        assert [await anna.role() for _ in range(4)] == ["student"] * 3 + ["refused"]
        assert await ben.role() == "student"
        person = next(name for name in anna._cookies if name.endswith("person"))
        anna._cookies[person] = "made-up.signature"  # counted by address instead
        assert [await anna.role() for _ in range(4)] == ["student"] * 3 + ["refused"]
        monkeypatch.setattr(roles, "MOST_PAGES", 7)
        assert await ben.role() == "refused"
        monkeypatch.setattr(roles, "_COMES_S", 0.0)  # no browser came to these pages
        assert await anna.role() == "student"


async def test_a_question_is_asked_answered_counted_and_shown(
    classroom: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with attending(monkeypatch) as server:
        teacher = await Browser(server).enter(TEACHER)
        anna, ben = [await Browser(server).enter(PUPIL) for _ in range(2)]
        assert (await anna.seen()) == {"place": None, "question": None}
        assert await teacher.post({"ask": {"lesson": "thinning"}}) == 204
        asked = (await anna.seen())["question"]
        assert asked["texts"]["en"] == {
            "text": text.plain(THINNING.text),
            "choices": list(map(text.plain, THINNING.choices)),
        }
        assert set(asked["texts"]) == set(content.LANGUAGES) and "counts" not in asked and "answer" not in asked
        number = asked["number"]
        for pupil, choice in ((anna, 0), (ben, 0), (ben, 1)):
            assert await pupil.post({"question": number, "choice": choice}) == 204
        for wrong in ({"question": "x", "choice": 0}, {"question": number, "choice": 9}, {"do": "show"}):
            assert await anna.post(wrong) == 409
        for malformed in ("[", "3", "[]", "null", "[" * 190):
            assert await anna.post(malformed) in (400, 409)
        assert await anna.post("x" * 201) == 413
        seen = await teacher.seen()
        assert seen["question"]["counts"][:2] == [1, 1] and seen["people"] == 1
        assert await teacher.post({"do": "close"}) == 204 and "counts" not in (await ben.seen())["question"]
        assert await ben.post({"question": number, "choice": 0}) == 409
        assert await teacher.post({"do": "show"}) == 204
        shown = (await ben.seen())["question"]
        assert (shown["counts"][:2], shown["answer"], shown["phase"]) == ([1, 1], THINNING.answer, SHOWN)
        assert shown["texts"]["en"]["reason"] == text.plain(THINNING.feedback[THINNING.answer])
        assert await teacher.post({"do": "again"}) == 204 and (await teacher.seen())["question"]["phase"] == OPEN
        assert await teacher.post({"do": "end"}) == 204 and (await anna.seen())["question"] is None
        assert await teacher.post({"ask": {"lesson": "nothing"}}) == 409 and await teacher.post({"do": "x"}) == 400


# --- the question


def test_single_answers_are_deleted_when_the_question_closes() -> None:
    poll = Poll()
    poll.ask(QUESTION)
    for person, choice in [("anna", 0), ("ben", 1), ("cleo", 1), ("anna", 2)]:
        poll.answer(person, poll.number, choice)
    assert poll.counts == (0, 2, 1) and "anna" not in repr(vars(poll))
    poll.close()
    assert (poll.counts, poll.phase, poll._answers, poll._key) == ((0, 2, 1), CLOSED, {}, b"")


@pytest.mark.parametrize("choice", [-1, 3, True, "1", None, 1.0, [1]])
def test_what_is_no_choice_is_not_counted(choice: Any) -> None:
    poll = Poll()
    poll.ask(QUESTION)
    with pytest.raises(BnnvizError) as caught:
        poll.answer("anna", poll.number, choice)
    assert caught.value.field == "choice" and poll.counts == (0, 0, 0)


def test_a_typed_question_is_cleaned() -> None:
    given = {"text": " Is  it\n so? ", "choices": ["yes", "", " no\x00 "], "answer": 2}
    assert typed(given, "en") == PollQuestion("en", {"en": PollText("Is it so?", ("yes", "no"))}, 1)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "text"),
        ({"text": "x" * 301, "choices": ["a", "b"]}, "text"),
        ({"text": "x", "choices": ["a"]}, "choices"),
        ({"text": "x", "choices": "ab"}, "choices"),
        ({"text": "x", "choices": list("abcdefg")}, "choices"),
        ({"text": "x", "choices": ["a", "b" * 121]}, "choices"),
        ({"text": "x", "choices": ["a", "a"]}, "choices"),
        ({"text": "x", "choices": ["a", "b", ""], "answer": 2}, "answer"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(given: Any, field: str) -> None:
    with pytest.raises(BnnvizError) as caught:
        typed(given, "en")
    assert caught.value.field == field


# --- what a student may not do


@pytest.fixture
def page(classroom: Classroom, monkeypatch: pytest.MonkeyPatch) -> Callable[[roles.Role], Document]:
    """Return a function that lets pages be built for a role; their runs are never started."""
    monkeypatch.setitem(pn.state.cache, GATE, class_at(5006))
    monkeypatch.setitem(pn.state.cache, "backend", Future())
    monkeypatch.setattr(Session, "open", lambda self: None)

    def opened(role: roles.Role) -> Document:
        monkeypatch.setattr(roles, "present", lambda: role)
        return Document()

    return opened


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"chains": 64}, "chains"),
        ({"draws": 100_000}, "draws"),
        ({"target": "network", "target_settings": {"data": "toy_c", "hidden": "100-100"}}, "hidden"),
        ({"kernel": "compiled"}, "kernel"),
        ({"target": "network", "target_settings": {"data": "toy_c", "hidden": "40-40"}, "chains": 16}, "chains"),
    ],
)
def test_a_run_that_is_too_much_is_refused_to_a_student_and_not_to_the_teacher(changes: Any, field: str) -> None:
    spec = Spec(**{"draws": None, **changes}).checked()
    OWNER.check(spec)
    with pytest.raises(BnnvizError) as caught:
        STUDENT.check(spec)
    assert caught.value.field == field


def test_the_entries_of_a_race_count_together() -> None:
    entry = Spec(target="network", target_settings={"data": "toy_c", "hidden": "40-40"}, chains=8, draws=None)
    STUDENT.check(entry.checked())
    with pytest.raises(BnnvizError):
        STUDENT.check(RaceSpec((entry, entry.replace(sampler="hmc"))).checked())


async def test_the_session_refuses_what_no_control_offers(page: Any) -> None:
    started: list[Any] = []
    with set_curdoc(page(STUDENT)):
        session = LabPage(False, Visit(LabPage.opening())).session
    session._backend = Future()
    session._backend.set_result(SimpleNamespace(start=lambda *a, **k: started.append(a), devices=list))
    session.begin(session.spec.replace(chains=64))
    with pytest.raises(BnnvizError) as caught:
        await session._start()
    assert caught.value.field == "chains"
    session.origin = "theirs"
    with pytest.raises(BnnvizError) as caught:
        await session._start()
    assert caught.value.field == "recording"
    assert not started


def test_a_student_has_no_pages_of_what_is_kept(page: Any) -> None:
    with set_curdoc(page(STUDENT)):
        assert {"recordings", "papers", "ask"}.isdisjoint(_offered())
    with set_curdoc(page(OWNER)):
        assert {"recordings", "papers", "ask"} <= set(_offered())


def test_a_link_that_asks_for_too_much_opens_on_something() -> None:
    opening = LabPage.opening()
    asked = Visit(opening.replace(chains=64).checked(), flags={"recording": "theirs"})
    found = STUDENT.admit(asked, opening)
    assert found.spec == opening.checked() and "recording" not in found.flags and len(found.sentences) == 2


def test_a_students_file_is_small_whatever_the_browser_was_reported(page: Any) -> None:
    refused: list[str] = []
    with set_curdoc(page(STUDENT)):
        file = File(refused.append, "too large", "empty", max_file_size=16_000_000)
        assert file.max_file_size == STUDENT.most_upload
        file._handle_msg({"status": "upload_event", "data": b"x" * 1_000_001, "name": "a.csv", "type": ""})
        file._handle_msg({"status": "finished", "name": "a.csv", "type": "", "mime_type": ""})
    assert refused == ["too large"]


# --- the teacher's place


async def test_the_class_is_reported_where_the_teacher_is(page: Any, classroom: Classroom, monkeypatch: Any) -> None:
    async with attending(monkeypatch) as server:
        teacher, anna = await Browser(server).enter(TEACHER), await Browser(server).enter(PUPIL)
        assert await teacher.post({"at": {"lesson": "thinning", "step": 3}}) == 204
        titles = {code: content.find("thinning", code).title for code in content.LANGUAGES}
        place = {"query": "lessons/thinning.html#3", "titles": titles, "step": 3}
        assert (await anna.seen())["place"] == place
        for wrong in ({"lesson": "nothing", "step": 1}, {"lesson": "thinning", "step": "x"}):
            assert await teacher.post({"at": wrong}) in (400, 409)
        assert await anna.post({"at": {"lesson": "thinning", "step": 1}}) == 409
        assert (await anna.seen())["place"] == place
    with set_curdoc(page(OWNER)):
        LabPage(False, Visit(LabPage.opening())).close()
    assert classroom.place == {"query": "?page=lab", "titles": {"en": "Lab"}, "step": None}

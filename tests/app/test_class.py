"""A class: who is a student, what a student may not do whatever a browser sends, the lobby, and one page for many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import panel as pn
import panel.io.server
import pytest
from bokeh.document import Document
from bokeh.models import Div, ImportedStyleSheet
from bokeh.protocol import Protocol
from bokeh.server.session import ServerSession
from panel.io.state import set_curdoc
from test_gate import BROWSER, Visitor, visit

from bnnviz.errors import BnnvizError
from bnnviz.specs.race import RaceSpec
from bnnviz.specs.run import Spec
from bnnviz_app import broadcast, following, prepared
from bnnviz_app.access import lobby, roles
from bnnviz_app.access.gate import Gate
from bnnviz_app.access.roles import GATE, OWNER, STUDENT
from bnnviz_app.access.secret import Secret
from bnnviz_app.address import Visit
from bnnviz_app.components.controls.upload import File
from bnnviz_app.page import _offered
from bnnviz_app.pages import OF_CLASS, PAGES
from bnnviz_app.pages.lab import LabPage
from bnnviz_app.session import Session

TEACHER, PUPIL = "the-teachers-token", "the-students-token"


def class_at(port: int) -> Gate:
    return Gate.at("127.0.0.1", port, Secret(TEACHER), students=Secret(PUPIL))


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    made = class_at(5006)
    monkeypatch.setitem(pn.state.cache, GATE, made)
    return made


@pytest.fixture
def student(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Document]:
    """Give pages a document of a student, and a backend that never comes."""
    monkeypatch.setattr(roles, "present", lambda: STUDENT)
    monkeypatch.setattr(Session, "open", lambda self: None)
    monkeypatch.setitem(pn.state.cache, "backend", Future())
    with set_curdoc(Document()) as doc:
        yield doc


def keeps(answer: Any) -> dict[str, str]:
    """Return the cookies that an answer gives, as a browser sends them."""
    given = [line.partition(";")[0] for line in answer.headers.get_list("Set-Cookie")]
    return {"Cookie": "; ".join(given)}


# --- who is who


def test_each_link_lets_in_and_only_the_teachers_makes_a_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(visitor: Visitor) -> None:
        made = class_at(visitor.port)
        monkeypatch.setitem(pn.state.cache, GATE, made)
        found = {}
        for token in (TEACHER, PUPIL):
            browser = keeps(await visitor.get(f"/app?token={token}", BROWSER))
            assert (await visitor.get("/app", browser | BROWSER)).code == 200
            cookies = dict(pair.split("=", 1) for pair in browser["Cookie"].split("; "))
            found[token] = roles.of(cookies, {})
            assert (made.person in cookies) == (token == PUPIL)
        assert found == {TEACHER: OWNER, PUPIL: STUDENT}
        assert (await visitor.get("/app?token=neither-of-the-two", BROWSER)).headers["Location"].startswith("./login")

    visit(scene, class_at)


def test_who_shows_nothing_or_a_forged_cookie_is_a_student(gate: Gate) -> None:
    assert roles.of({}, {}) == STUDENT
    assert roles.of({gate.cookie: gate.students.cookie}, {}) == STUDENT
    assert roles.of({gate.cookie: "forged"}, {"authorization": "Bearer forged"}) == STUDENT
    assert roles.of({gate.cookie: gate.secret.cookie}, {}) == OWNER
    assert roles.of({}, {"Authorization": f"Bearer {TEACHER}"}) == OWNER


def test_without_a_class_everybody_who_is_in_is_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pn.state.cache, GATE, Gate.at("127.0.0.1", 5006, Secret(TEACHER)))
    assert roles.of({}, {}) == OWNER


# --- what a student may not do


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"chains": 64}, "chains"),
        ({"draws": 100_000}, "draws"),
        ({"target": "network", "target_settings": {"data": "toy_c", "hidden": "100-100"}}, "hidden"),
        ({"kernel": "compiled"}, "kernel"),
        ({"start": {"recording": "theirs"}}, "start"),
        ({"target": "network", "target_settings": {"data": "toy_c", "hidden": "40-40"}, "chains": 16}, "chains"),
    ],
)
def test_a_run_that_is_too_much_is_refused_to_a_student_and_not_to_the_teacher(changes: Any, field: str) -> None:
    spec = Spec(**{"draws": None, **changes}).checked()
    OWNER.check(spec)
    with pytest.raises(BnnvizError) as caught:
        STUDENT.check(spec)
    assert caught.value.field == field


def test_the_lanes_of_a_race_count_together() -> None:
    lane = Spec(target="network", target_settings={"data": "toy_c", "hidden": "40-40"}, chains=8, draws=None)
    STUDENT.check(lane.checked())
    with pytest.raises(BnnvizError, match="chains times dimensions"):
        STUDENT.check(RaceSpec((lane, lane.replace(sampler="hmc"))).checked())


def test_the_session_refuses_what_no_control_offers(student: Document) -> None:
    page = LabPage(False, Visit(LabPage.opening()))
    said: list[str] = []
    started: list[Any] = []
    page.show_error = lambda error: said.append(error.sentence)

    async def main() -> None:
        session = page.session
        session._backend = Future()
        session._backend.set_result(SimpleNamespace(start=lambda *a, **k: started.append(a), devices=list))
        session._show = lambda function, *args: asyncio.to_thread(function, *args)
        session.begin(session.spec.replace(chains=64))
        with pytest.raises(BnnvizError, match="16 chains"):
            await session._start()
        session.origin = "theirs"
        with pytest.raises(BnnvizError, match="Recordings are the teacher's"):
            await session._start()
        session.record("mine")
        await asyncio.sleep(0.1)

    asyncio.run(main())
    assert said == [roles.KEPT] and not started


def test_a_student_has_no_pages_of_what_is_kept_and_the_class_has_one_to_follow(student: Document) -> None:
    offered = set(_offered())
    assert offered.isdisjoint({"recordings", "papers", "ask"}) and {"learn", "follow"} <= offered
    assert offered <= {*PAGES, *OF_CLASS}


def test_a_link_that_asks_for_too_much_opens_on_something(gate: Gate) -> None:
    opening = LabPage.opening()
    asked = Visit(opening.replace(chains=64).checked(), flags={"recording": "theirs"})
    found = STUDENT.admit(asked, opening)
    assert found.spec == opening.checked() and "recording" not in found.flags and len(found.sentences) == 2


def test_a_students_file_is_small_whatever_the_browser_was_told(student: Document) -> None:
    refused: list[str] = []
    file = File(refused.append, "too large", "empty", max_file_size=16_000_000)
    assert file.max_file_size == STUDENT.most_upload
    file._handle_msg({"status": "upload_event", "data": b"x" * 1_000_001, "name": "a.csv", "type": ""})
    file._handle_msg({"status": "finished", "name": "a.csv", "type": "", "mime_type": ""})
    assert refused == ["too large"]


# --- the lobby


def pages(gate: Gate, *people: str, connected: int = 1) -> Any:
    """Return an application with a page open for each of these people."""

    def session(who: str) -> Any:
        request = SimpleNamespace(cookies={gate.person: who}, remote_ip="10.0.0.1")
        context = SimpleNamespace(request=request)
        document = SimpleNamespace(session_context=context)
        return SimpleNamespace(document=document, connection_count=connected, destroyed=False)

    return SimpleNamespace(_applications={"/app": SimpleNamespace(sessions=[session(who) for who in people])})


def comes(gate: Gate, who: str) -> Any:
    return SimpleNamespace(cookies={gate.person: SimpleNamespace(value=who)}, remote_ip="10.0.0.2")


def test_a_person_has_two_pages_and_a_class_so_many(gate: Gate) -> None:
    assert lobby.why_full(pages(gate, "anna"), gate, comes(gate, "anna")) is None
    assert "close one" in lobby.why_full(pages(gate, "anna", "anna"), gate, comes(gate, "anna"))
    assert lobby.why_full(pages(gate, "anna", "anna"), gate, comes(gate, "ben")) is None
    # A page that is loaded again has been closed before.
    assert lobby.why_full(pages(gate, "anna", "anna", connected=0), gate, comes(gate, "anna")) is None
    many = pages(gate, *map(str, range(lobby.MOST_PAGES)))
    assert "The class is full" in lobby.why_full(many, gate, comes(gate, "ben"))


# --- one page for many


class Line:
    """Stand in for a web socket of the server."""

    def __init__(self) -> None:
        self.data = b""
        self.closed = False
        self.write_lock = SimpleNamespace(_block=SimpleNamespace(_value=1))
        stream = SimpleNamespace(_write_buffer=b"", closed=lambda: False, write=self._write)
        self.ws_connection = SimpleNamespace(is_closing=lambda: False, stream=stream)

    def _write(self, data: bytes) -> Future:
        self.data += data
        done: Future = Future()
        done.set_result(None)
        return done

    def close(self) -> None:
        self.closed = True


class Connection:
    """Stand in for the server's end of a connection."""

    protocol = Protocol()

    def __init__(self, line: Line) -> None:
        self._socket = line

    def ok(self, message: Any) -> str:
        return "ok"


def test_a_change_is_written_once_and_goes_to_all_who_have_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    broadcast.install()
    session = ServerSession("a", Document())
    sent = broadcast.Broadcast(session)
    lines = [Line() for _ in range(3)]
    members = [Connection(line) for line in lines]
    for member in members:
        session.subscribe(member)
    assert session.connection_count == 1 and sent.size == 3

    async def main() -> None:
        message = Protocol().create("PULL-DOC-REQ")
        replies = [await session._handle_pull(message, member) for member in members[:2]]
        assert replies[0].content_json is replies[1].content_json, "the page is written once too"
        assert "roots" in json.loads(replies[0].content_json)["doc"]
        assert replies[0].header["reqid"] == message.header["msgid"]
        await session.with_document_locked(setattr, session.document, "title", "changed meanwhile")
        # What a browser sends changes nothing; it says that the page is there.
        patch: Any = SimpleNamespace(header={"msgid": "1"}, apply_to_document=None)
        assert await session._handle_patch(patch, members[0]) == "ok"
        sent.send(Protocol().create("OK", "7"))

    asyncio.run(main())
    written = broadcast.written(Protocol().create("OK", "7"))
    assert len(lines[0].data) > 0 and len(lines[1].data) == len(lines[2].data) == 0
    assert b"changed meanwhile" in lines[0].data and len(lines[0].data) > len(written)
    sent.shown(members[1])
    assert lines[1].data == lines[0].data, "what has changed meanwhile it gets then"
    for member in members:
        session.unsubscribe(member)
    assert session.connection_count == 0 and session.expiration_blocked


def test_a_message_is_framed_as_a_web_socket_has_it() -> None:
    for length in (0, 125, 126, 65_535, 65_536):
        data = broadcast._framed(b"x" * length, 0x81)
        assert data[0] == 0x81 and data.endswith(b"x" * length) and not data[1] & 0x80
        head = 2 if length < 126 else 4 if length < 65_536 else 10
        told = data[1] if head == 2 else int.from_bytes(data[2:head], "big")
        assert (told, len(data)) == (length, head + length)
    message = Protocol().create("OK", "7")
    assert json.dumps({}).encode() in broadcast.written(message)


def test_who_comes_to_a_page_that_many_look_at_does_not_hold_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared.install()
    pages, held = [Document(), Document()], []
    for page in pages:
        page.add_root(Div(stylesheets=[ImportedStyleSheet(url="https://cdn.holoviz.org/panel/1/dist/css/a.css")]))
        monkeypatch.setattr(page, "hold", lambda *policy, page=page: held.append(page))
        monkeypatch.setattr(page.callbacks, "hold", lambda *policy, page=page: held.append(page))
    prepared._SHARED.add(pages[0])
    for page in pages:
        panel.io.server.patch_model_css(page.roots[0], dist_url="dist/")
    assert held == pages[1:]


def test_who_does_not_take_what_is_sent_is_let_go() -> None:
    line = Line()
    member = broadcast._Member(line)
    member.waiting = []
    member.send(b"x" * (broadcast.MOST_BEHIND + 1))
    assert line.closed and member.waiting is None


def test_a_class_follows_the_last_lab_of_the_teacher_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pn.state.cache, "leader", None)
    assert following.leader() is None

    class Lead:
        runs: Any = None

    teacher = Lead()
    following.lead(teacher)
    assert following.leader() is None
    teacher.runs = object()
    assert following.leader() is teacher
    del teacher
    assert following.leader() is None

"""A question to a class: who may ask and who answers, what is counted, and that nothing says who chose what."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import panel as pn
import pytest
from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.server.server import Server
from test_class import PUPIL, TEACHER, class_at, keeps
from test_gate import BROWSER, Visitor
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from bnnviz.errors import BnnvizError
from bnnviz_app.access import roles
from bnnviz_app.access.gate import Gate
from bnnviz_app.access.guard import guard
from bnnviz_app.access.roles import GATE, OWNER, STUDENT
from bnnviz_app.learn import languages, lessons
from bnnviz_app.pages.ask import AskPage
from bnnviz_app.pages.learn import LearnPage
from bnnviz_app.polls import poll as polls
from bnnviz_app.polls.answers import take_answers
from bnnviz_app.polls.card import PollCard, poll_card
from bnnviz_app.polls.poll import CLOSED, NONE, OPEN, SHOWN, Poll, PollQuestion, PollText

QUESTION = PollQuestion("en", {"en": PollText("Why?", ("this", "that", "neither"), "So it is.")}, 1)


@pytest.fixture
def poll(monkeypatch: pytest.MonkeyPatch) -> Poll:
    """The poll of a server of this test's own."""
    made = Poll()
    monkeypatch.setitem(pn.state.cache, polls._POLL, made)
    return made


@pytest.fixture
def asked(poll: Poll) -> Poll:
    poll.ask(OWNER, QUESTION)
    return poll


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    made = class_at(5006)
    monkeypatch.setitem(pn.state.cache, GATE, made)
    return made


@pytest.fixture
def teacher(gate: Gate, poll: Poll, no_server: Document, monkeypatch: pytest.MonkeyPatch) -> AskPage:
    monkeypatch.setattr(roles, "present", lambda: OWNER)
    return AskPage(False, {}, {"lesson": "thinning"})


def everything(held: Any) -> Iterator[Any]:
    """Yield each name and value in something, however deep."""
    if isinstance(held, dict):
        for name, inner in held.items():
            yield name
            yield from everything(inner)
    elif isinstance(held, list | tuple):
        for inner in held:
            yield from everything(inner)
    else:
        yield held


# --- counting


def test_each_person_counts_once_and_may_choose_another(asked: Poll) -> None:
    for person, choice in [("anna", 0), ("ben", 1), ("cleo", 1), ("anna", 2), ("anna", 2)]:
        asked.answer(person, asked.number, choice)
    assert asked.counts == (0, 2, 1)
    asked.close(OWNER)
    assert asked.counts == (0, 2, 1)
    asked.show(OWNER)
    assert asked.told()["counts"] == [0, 2, 1]
    asked.ask(OWNER, QUESTION)
    assert asked.counts == (0, 0, 0)


def test_no_more_are_counted_than_a_class_has(asked: Poll, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polls, "MOST_ANSWERS", 2)
    for person in ("anna", "ben"):
        asked.answer(person, asked.number, 0)
    with pytest.raises(BnnvizError, match="More have answered"):
        asked.answer("cleo", asked.number, 0)
    asked.answer("ben", asked.number, 1)
    assert asked.counts == (1, 1, 0)


@pytest.mark.parametrize("choice", [-1, 3, True, "1", None, 1.0, [1]])
def test_what_is_no_choice_is_not_counted(asked: Poll, choice: Any) -> None:
    with pytest.raises(BnnvizError, match="Choose one of 0 to 2"):
        asked.answer("anna", asked.number, choice)
    assert asked.counts == (0, 0, 0)


def test_answers_are_taken_while_their_own_question_is_open(asked: Poll) -> None:
    before = asked.number
    asked.ask(OWNER, QUESTION)
    for number in (before, "", None):
        with pytest.raises(BnnvizError, match="not open"):
            asked.answer("anna", number, 0)
    for step in (asked.close, asked.show, asked.end):
        number = asked.number
        step(OWNER)
        with pytest.raises(BnnvizError, match="not open"):
            asked.answer("anna", number, 0)
    assert asked.phase == NONE and asked.told() == {}


# --- anonymity


def test_nothing_says_who_answered_and_the_single_answers_go_when_the_question_is_closed(asked: Poll) -> None:
    asked.answer("anna", asked.number, 2)
    assert "anna" not in repr(vars(asked)) and len(asked._answers) == 1
    first = set(asked._answers)
    asked.close(OWNER)
    assert asked.counts == (0, 0, 1) and not asked._answers and not asked._key
    asked.ask(OWNER, QUESTION)
    asked.answer("anna", asked.number, 2)
    assert first.isdisjoint(asked._answers), "a person can be followed from one question to the next"


def test_students_are_told_numbers_and_what_is_right_when_they_are_shown(asked: Poll) -> None:
    asked.answer("anna", asked.number, 1)
    for _ in range(2):
        told = asked.told()
        assert {"counts", "answer", "reason", "So it is."}.isdisjoint(everything(told))
        assert told["phase"] in (OPEN, CLOSED) and told["texts"]["en"]["choices"] == ["this", "that", "neither"]
        asked.close(OWNER)
    asked.show(OWNER)
    told = asked.told()
    assert (told["phase"], told["counts"], told["answer"]) == (SHOWN, [0, 1, 0], 1)
    assert told["texts"]["en"]["reason"] == "So it is."


# --- roles


def test_a_student_can_neither_ask_nor_close_nor_show_nor_end(asked: Poll) -> None:
    before = vars(asked).copy()
    for step in (
        lambda: asked.ask(STUDENT, QUESTION),
        *(lambda name=name: getattr(asked, name)(STUDENT) for name in ("close", "show", "end")),
    ):
        with pytest.raises(BnnvizError, match="Questions are the teacher's"):
            step()
    assert vars(asked) == before


@pytest.mark.parametrize("message", [{"ask": {"lesson": "thinning"}}, "close", "show", "end", "again"])
def test_a_page_of_a_student_refuses_what_a_browser_asks_all_the_same(
    asked: Poll, gate: Gate, no_server: Document, monkeypatch: pytest.MonkeyPatch, message: Any
) -> None:
    monkeypatch.setattr(roles, "present", lambda: STUDENT)
    page, number = AskPage(False, {}, {}), asked.number
    page._obey(message)
    assert (asked.phase, asked.number) == (OPEN, number)
    assert page.panel.root.sentence.startswith("Questions are the teacher's")


# --- what is asked


def test_the_question_of_a_lesson_is_asked_in_all_languages(teacher: AskPage, poll: Poll) -> None:
    assert teacher.panel.root.chosen == "thinning"
    teacher._obey({"ask": {"lesson": "thinning"}})
    told = poll.told()
    assert set(told["texts"]) == set(languages.names())
    for code in languages.names():
        assert told["texts"][code]["text"] == lessons.load(code)["thinning"].question.text
    poll.answer("anna", poll.number, 0)
    teacher._fill()
    seen = teacher.panel.root.content
    assert (seen["phase"], seen["counts"][0], seen["people"]) == (OPEN, 1, 0) and "answer" not in seen
    teacher._obey("show")
    assert teacher.panel.root.content["answer"] == lessons.load()["thinning"].question.answer
    teacher._obey("again")
    assert poll.phase == OPEN and not any(poll.counts)
    teacher._obey("end")
    assert teacher.panel.root.content == {"phase": NONE, "people": 0}


def test_a_typed_question_is_cleaned_and_asked(teacher: AskPage, poll: Poll) -> None:
    teacher._obey({"ask": {"text": "  Which\none\u202e? ", "choices": ["", " a ", "b"], "answer": 2}})
    assert poll.question == PollQuestion("en", {"en": PollText("Which one?", ("a", "b"))}, 1)


@pytest.mark.parametrize("language", languages.names())
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "text"),
        ({"text": ["a"], "choices": ["a", "b"]}, "text"),
        ({"text": "x" * 301, "choices": ["a", "b"]}, "text"),
        ({"text": "x"}, "choices"),
        ({"text": "x", "choices": "ab"}, "choices"),
        ({"text": "x", "choices": ["a", " "]}, "choices"),
        ({"text": "x", "choices": list("abcdefg")}, "choices"),
        ({"text": "x", "choices": ["a", "b" * 121]}, "choices"),
        ({"text": "x", "choices": ["a", "b", "a "]}, "choices"),
        ({"text": "x", "choices": ["a", "b", ""], "answer": 2}, "answer"),
        (None, "text"),
    ],
)
def test_a_question_that_is_none_is_refused_in_the_language_of_the_page(given: Any, field: str, language: str) -> None:
    refused = languages.text(language, languages.POLL)["refused"]
    with pytest.raises(BnnvizError) as caught:
        polls.typed(given, language, lambda name, **values: refused[name].format(**values))
    assert caught.value.field == field and caught.value.sentence.endswith(".")


def test_a_question_of_the_longest_texts_is_taken() -> None:
    given = {"text": "x" * 300, "choices": [letter * 120 for letter in "abcdef"], "answer": None}
    assert polls.typed(given, "en", lambda name, **values: name).answer is None


def test_a_refused_question_leaves_the_one_that_is_asked(teacher: AskPage, poll: Poll) -> None:
    teacher._obey({"ask": {"lesson": "thinning"}})
    number = poll.number
    for given in ({"lesson": "nothing"}, {"lesson": ["thinning"]}, {"text": ""}):
        teacher._obey({"ask": given})
        assert poll.number == number and teacher.panel.root.sentence
    teacher._obey("close")
    assert teacher.panel.root.sentence == "" and poll.phase == CLOSED


def test_an_address_with_a_lesson_that_there_is_not_says_so(teacher: AskPage) -> None:
    page = AskPage(True, {"projector": "1"}, {"lesson": "nothing", "lang": "de"})
    assert "'nothing'" in page.panel.root.sentence and page.panel.root.chosen == ""
    assert "lesson=" not in page.address.query and "lang=de" in page.address.query and page.large


def test_the_teachers_page_speaks_another_language(teacher: AskPage) -> None:
    teacher._obey({"ask": {"lesson": "thinning"}})
    teacher._obey({"language": "de"})
    german = lessons.load("de")["thinning"]
    assert teacher.panel.root.words["code"] == "de" and "lang=de" in teacher.address.query
    assert teacher.panel.root.content["text"] == german.question.text
    teacher._obey({"ask": {"text": ""}})
    assert teacher.panel.root.sentence == languages.text("de", languages.POLL)["refused"]["no_text"]


# --- the pages of students


def test_pages_of_a_class_show_the_question_and_others_have_no_place_for_it(
    asked: Poll, gate: Gate, no_server: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles, "present", lambda: STUDENT)
    page = LearnPage(False, {}, {"lang": "de"})
    card = page.main[0][0]
    assert card.content == asked.told() and card.answers and card.language == "de"
    monkeypatch.setattr(roles, "present", lambda: OWNER)
    assert not LearnPage(False, {}, {}).main[0][0].answers, "the teacher does not answer"
    monkeypatch.setitem(pn.state.cache, GATE, None)
    assert LearnPage(False, {}, {})._poll is None


def test_people_are_counted_once_wherever_they_look(
    poll: Poll, gate: Gate, no_server: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles, "present", lambda: STUDENT)

    def request(who: str, secret: str) -> Any:
        kept = {gate.person: who, gate.cookie: secret}
        cookies = {name: SimpleNamespace(value=value) for name, value in kept.items()}
        return SimpleNamespace(cookies=cookies, headers={}, remote_ip="10.0.0.1")

    def own(who: str, connected: int = 1) -> Any:
        context = SimpleNamespace(request=SimpleNamespace(cookies={gate.person: who}, remote_ip="10.0.0.1"))
        return SimpleNamespace(document=SimpleNamespace(session_context=context), connection_count=connected)

    pupil, owner = gate.students.cookie, gate.secret.cookie
    many = SimpleNamespace(requests=[request("anna", pupil), request("ben", pupil), request("teacher", owner)])
    followed = SimpleNamespace(bnnviz_broadcast=many, connection_count=1)
    cards = []
    for session in (own("anna"), own("cleo"), own("gone", connected=0), followed, None):
        card = poll_card()
        card._late = SimpleNamespace(session=session)
        cards.append(card)
    assert poll.people(gate) == 3
    cards[1]._answers = False  # a page of lessons of the teacher
    assert poll.people(gate) == 2


def test_a_change_waits_for_the_browser_to_have_the_page(
    poll: Poll, gate: Gate, no_server: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Callable[[], None]] = []
    monkeypatch.setattr(pn.state, "onload", waiting.append)

    async def main() -> None:
        card = PollCard(poll, "", answers=True)
        done: list[str] = []

        async def locked(apply: Callable[[Document], None], doc: Document) -> None:
            apply(doc)
            done.append(card.root.content.get("phase", NONE))

        monkeypatch.setattr(type(card._late), "session", SimpleNamespace(with_document_locked=locked))
        poll.ask(OWNER, QUESTION)
        await asyncio.sleep(0.01)
        assert not done and card.root.content == {} and "closed" in card.root.css_classes
        waiting[0]()
        await asyncio.sleep(0.01)
        assert done == [OPEN] and "closed" not in card.root.css_classes
        poll.close(OWNER)
        await asyncio.sleep(0.01)
        assert done == [OPEN, CLOSED]

    asyncio.run(main())


# --- the way back


@asynccontextmanager
async def classroom(prefix: str) -> AsyncIterator[Visitor]:
    """Serve an empty page to a class."""
    application = Application(FunctionHandler(lambda doc: None))
    made = Server({"/app": application}, io_loop=IOLoop.current(), port=0, address="127.0.0.1", prefix=prefix)
    gate = class_at(made.port)
    guard(made._tornado, gate)
    take_answers(made._tornado, gate, "/app")
    made.start()
    try:
        yield Visitor(made.port)
    finally:
        made.stop()


def in_class(scene: Callable[[Visitor], Awaitable[None]], prefix: str = "") -> None:
    async def main() -> None:
        async with classroom(prefix) as visitor:
            await asyncio.wait_for(scene(visitor), 60)

    asyncio.run(main())


async def comes(visitor: Visitor, token: str, prefix: str = "") -> dict[str, str]:
    """Return the headers of a new browser that has come by a link."""
    return keeps(await visitor.get(f"{prefix}/app?token={token}", BROWSER))


async def answers(
    visitor: Visitor, browser: dict[str, str], body: Any, path: str = "/answer", **headers: str
) -> HTTPResponse:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await visitor.get(path, browser | headers, method="POST", body=content)


@pytest.mark.parametrize(("prefix", "path"), [("", "/answer"), ("", "/app/answer"), ("/lab", "/lab/answer")])
def test_each_student_has_one_answer_and_the_teacher_none(asked: Poll, prefix: str, path: str) -> None:
    async def scene(visitor: Visitor) -> None:
        anna, ben = [await comes(visitor, PUPIL, prefix) for _ in range(2)]
        for browser, choice in ((anna, 0), (ben, 1), (anna, 1)):
            answer = await answers(visitor, browser, {"question": asked.number, "choice": choice}, path)
            assert (answer.code, answer.body) == (204, b"")
        assert asked.counts == (0, 2, 0)
        owner = await comes(visitor, TEACHER, prefix)
        refused = await answers(visitor, owner, {"question": asked.number, "choice": 0}, path)
        assert refused.code == 403 and b"not the teacher" in refused.body
        asked.close(OWNER)
        late = await answers(visitor, anna, {"question": asked.number, "choice": 0}, path)
        assert late.code == 409 and asked.counts == (0, 2, 0)

    in_class(scene, prefix)


def test_who_shows_nothing_and_other_sites_do_not_answer(asked: Poll) -> None:
    async def scene(visitor: Visitor) -> None:
        body = {"question": asked.number, "choice": 0}
        anna = await comes(visitor, PUPIL)
        assert (await answers(visitor, {}, body)).code == 403
        assert (await answers(visitor, anna, body, Origin="http://evil.example")).code == 403
        assert (await answers(visitor, anna, body, **{"Sec-Fetch-Site": "cross-site"})).code == 403
        assert asked.counts == (0, 0, 0)
        assert (await answers(visitor, anna, body, Origin=visitor.base)).code == 204
        assert (await visitor.get("/answer", anna)).code == 405

    in_class(scene)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"7", b'"x"', b"null", b"{}", b'{"choice": 0}', b"\xff", b"[" * 150, {"question": "x"}]
)
def test_what_is_no_answer_is_refused_without_a_traceback(asked: Poll, body: Any, caplog: Any) -> None:
    async def scene(visitor: Visitor) -> None:
        assert (await answers(visitor, await comes(visitor, PUPIL), body)).code == 400

    in_class(scene)
    assert "Traceback" not in caplog.text


def test_an_answer_is_short(asked: Poll) -> None:
    async def scene(visitor: Visitor) -> None:
        body = {"question": asked.number, "choice": 0, "more": "x" * 300}
        assert (await answers(visitor, await comes(visitor, PUPIL), body)).code == 413
        assert asked.counts == (0, 0, 0)

    in_class(scene)

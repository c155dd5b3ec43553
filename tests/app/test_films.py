"""Films of lessons: what of a step is filmed, what a page says beside it, and what can do no harm in it."""

from __future__ import annotations

import asyncio
import base64
import gzip
import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bokeh.document import Document

from bnnviz.errors import BnnvizError
from bnnviz.replays.lesson import ReplayLesson
from bnnviz.replays.player import Look, lesson_page
from bnnviz_app.access import roles
from bnnviz_app.access.roles import STUDENT
from bnnviz_app.components.run.replay_maker import ReplayMaker
from bnnviz_app.learn import films, glossary, languages, lessons
from bnnviz_app.pages.learn import LearnPage

HOSTILE = "</script><img src=x onerror=alert(1)><!-- ${x} $title"
MOST_BYTES = 2_500_000


def held(text: str, name: str) -> Any:
    """Return what a page holds by a name."""
    packed = re.search(rf'id="{name}">([^<]*)<', text).group(1)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def told(pieces: Any) -> str:
    """Return a text of pieces as one."""
    return "".join(words for words, _ in pieces).replace("\u00a0", " ")


@pytest.fixture(scope="module", params=languages.names())
def step(request: pytest.FixtureRequest) -> tuple[str, ReplayLesson]:
    return request.param, films.film("thinning/3", request.param)


def test_a_page_has_the_texts_of_its_step_in_its_language(step: tuple[str, ReplayLesson]) -> None:
    language, filmed = step
    lesson, page = lessons.load(language)["thinning"], lesson_page(filmed)
    assert f'<html lang="{language}">' in page and f"<title>{html.escape(lesson.title)} · bnnviz</title>" in page
    shared = held(page, "shared")
    (said,), asked = shared["lesson"]["steps"], shared["lesson"]["question"]
    assert (said["number"], said["title"]) == (3, lesson.steps[2].title)
    assert told(said["text"]) == lesson.steps[2].text
    known = {term.term: term.meaning for term in glossary.load(language).values()}
    assert len(said["terms"]) == 3 == sum(explained for _, explained in said["text"])
    assert all(known[term] == meaning for term, meaning in said["terms"])
    assert told(asked["text"]) == lesson.question.text and told(asked["reason"]) == lesson.question.reason
    assert asked["answer"] == lesson.question.answer and len(asked["choices"]) == len(lesson.question.choices)
    assert len(page.encode()) < MOST_BYTES


def test_a_film_shows_what_its_step_shows(step: tuple[str, ReplayLesson]) -> None:
    _, filmed = step
    picture = lessons.load()["thinning"].steps[2].picture
    film = held(lesson_page(filmed), "content-0")
    # The run's start, and one frame for each of the step's three evaluations.
    assert film["steps"] == [0, 1, 2, 3]
    cards = {card["part"]: card for card in film["cards"] if not card["bar"]}
    assert set(cards) == set(picture.show) == {"envelope", "path"}
    assert cards["envelope"]["order"] == 0 and cards["path"]["order"] == 1
    assert not film["tabled"] and "envelope path" in film["grid"]


def test_texts_that_would_break_out_of_a_page_are_words(step: tuple[str, ReplayLesson]) -> None:
    _, filmed = step
    passage, terms = ((HOSTILE, False), (HOSTILE, True)), ((HOSTILE, HOSTILE),)
    asked = replace(filmed.question, text=passage, choices=(HOSTILE, "no"), reason=passage, terms=terms)
    said = replace(filmed.steps[0], title=HOSTILE, text=passage, terms=terms, note=HOSTILE)
    page = lesson_page(replace(filmed, title=HOSTILE, steps=(said,), question=asked))
    assert "<img" not in page and "<!--" not in page and page.count("<script>") == 2
    assert held(page, "shared")["lesson"]["steps"][0]["title"] == HOSTILE
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert "default-src 'none'" in policy and "connect-src" not in policy


def test_a_page_begins_as_it_is_asked_to(step: tuple[str, ReplayLesson]) -> None:
    shared = held(lesson_page(step[1], Look(True, True)), "shared")
    assert shared["dark"] is True and shared["large"] is True


# --- what is filmed


@pytest.mark.parametrize(
    ("place", "changes", "last"),
    [
        ("thinning/5", [], 6),  # proposals one by one
        ("events/1", [], 900),  # it plays
        ("bounds/4", [(900, {"horizon": 0.1})], 1800),  # and is changed while it does
        ("bounds/5", [(900, {"horizon": 0.1}), (1800, {"bound": "grid"})], 2700),
        ("random-walk/2", [], 1100),  # after 200 steps it plays
    ],
)
def test_a_film_does_what_its_step_does(place: str, changes: list[Any], last: int) -> None:
    name, number = place.split("/")
    assert films.plan(lessons.load()[name].steps[int(number) - 1].picture, 900) == (changes, last, {})


def test_a_film_is_as_long_as_its_step_says() -> None:
    bounds, events = lessons.load()["bounds"].steps[3].picture, lessons.load()["events"].steps[0].picture
    assert films.plan(bounds) == ([(3000, {"horizon": 0.1})], 33_000, {})
    assert films.plan(bounds, 900)[1] == 1800
    assert films.plan(events)[1] == 10_000


def test_events_are_counted_in_the_run_itself() -> None:
    picture = lessons.load()["thinning"].steps[5].picture
    _, last, _ = films.plan(picture, 1)
    film = films.take(picture)
    assert film.steps == list(range(last + 1))
    before, after = film.frames[6]["status"]["events"], film.frames[-1]["status"]["events"]
    assert after - before == 10 and film.frames[-2]["status"]["events"] == after - 1


def test_what_a_step_watches_its_film_watches() -> None:
    picture = lessons.load()["mixing"].steps[4].picture
    assert films.plan(picture, 5)[2] == {"plane": {"kind": "pca", "canonical": True}}
    film = films.take(picture, frames=3, steps=5)
    assert film.frames[-1]["path"]["x_label"].endswith("(canonical)")


def test_all_steps_of_a_lesson_are_on_one_page_and_what_is_for_the_hand_has_its_text() -> None:
    filmed = films.film("mixing", "de", frames=3, steps=4)
    lesson, page = lessons.load("de")["mixing"], lesson_page(filmed)
    said = held(page, "shared")["lesson"]["steps"]
    assert [each["title"] for each in said] == [each.title for each in lesson.steps]
    assert [each["film"] for each in said] == [None, None, None, 0, 1]
    assert said[0]["note"] == languages.page("de")["no_film"]
    assert len(held(page, "content-1")["steps"]) == 3 and 'id="content-2"' not in page


def test_the_question_has_the_film_of_the_last_step() -> None:
    count = len(lessons.load()["thinning"].steps)
    assert [each.number for each in films.film(f"thinning/{count + 1}", frames=2).steps] == [count]


@pytest.mark.parametrize(
    ("place", "language", "said"),
    [
        ("nothing/1", "en", "no lesson 'nothing'"),
        ("thinning/0", "en", "steps 1 to 7, and none '0'"),
        ("thinning/x", "en", "none 'x'"),
        ("thinning/1", "xx", "no lessons in 'xx'"),
        ("mixing/1", "en", "Step 1 of mixing has no film: it is tried by hand"),
        ("functionals/1", "en", "only runs of one sampler"),
        ("images", "en", "No step of images has a film"),
    ],
)
def test_what_cannot_be_filmed_is_a_sentence(place: str, language: str, said: str) -> None:
    with pytest.raises(BnnvizError, match=said):
        films.film(place, language)


# --- the page of lessons


def labels(page: LearnPage) -> list[str]:
    return [each.label for each in page.tools if each.visible]


def test_a_step_with_a_film_offers_it_in_the_pages_language(no_server: Document) -> None:
    page = LearnPage(False, {}, {"lesson": "mixing", "step": "4"})
    assert labels(page) == ["Replay", "Projector"]
    page._speak("de")
    assert labels(page) == ["Film", "Projector"]
    page._obey("back")
    assert labels(page) == ["Projector"]
    page._obey("all")
    assert labels(page) == ["Projector"]


def test_a_student_makes_no_replays(no_server: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "present", lambda: STUDENT)
    assert labels(LearnPage(False, {}, {"lesson": "thinning"})) == ["Projector"]


def test_the_replay_is_of_the_step_the_language_and_the_look_of_the_page(
    no_server: Document, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, list[str]]] = []

    async def make(self: ReplayMaker, name: str, words: list[str]) -> Path:
        asked.append((name, words))
        page._obey("next")  # the reader goes on meanwhile
        (tmp_path / f"{name}.html").write_text("made")
        return tmp_path / f"{name}.html"

    monkeypatch.setattr(ReplayMaker, "make", make)
    page = LearnPage(True, {"projector": "1"}, {"lesson": "thinning", "step": "3", "lang": "de"})
    asyncio.run(page._replay._make())
    assert asked == [("thinning-3", ["--lesson", "thinning/3", "--lang", "de", "--dark", "--projector"])]
    download = page._replay.roots[1]
    assert download.visible and download.filename == "thinning-3.html" and labels(page)[:2] == ["Film", "Herunterladen"]


def test_why_a_replay_was_not_made_is_said(no_server: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    async def make(self: ReplayMaker, name: str, words: list[str]) -> Path:
        raise BnnvizError("There is no room.")

    monkeypatch.setattr(ReplayMaker, "make", make)
    page = LearnPage(False, {}, {"lesson": "thinning"})
    asyncio.run(page._replay._make())
    assert "The replay was not made: There is no room." in page.stage.caption._text.object
    assert labels(page) == ["Replay", "Projector"]


@pytest.mark.slow
def test_the_maker_makes_a_page_and_tells_the_reason_of_a_failure() -> None:
    async def both() -> None:
        maker = ReplayMaker()
        made = await maker.make("thinning-1", ["--lesson", "thinning/1", "--lang", "de"])
        assert held(made.read_text(encoding="utf-8"), "shared")["lesson"]["steps"][0]["number"] == 1
        with pytest.raises(BnnvizError, match="Step 1 of mixing has no film"):
            await maker.make("mixing-1", ["--lesson", "mixing/1"])
        maker.close()
        assert not made.exists()

    asyncio.run(both())

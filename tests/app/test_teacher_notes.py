"""A teacher's notes: there are some for each step, in each language, and they follow what another window tells."""

from __future__ import annotations

from typing import Any

import pytest
from bokeh.document import Document

from bnnviz_app.access import roles
from bnnviz_app.learn import languages, lessons
from bnnviz_app.learn.notes import NotesPanel
from bnnviz_app.pages import PAGES
from bnnviz_app.pages.learn import LearnPage
from bnnviz_app.pages.notes import NotesPage

LONGEST = 200  # characters: read at a glance while one speaks


@pytest.mark.parametrize("language", languages.names())
def test_each_step_and_each_question_has_a_note(language: str) -> None:
    held = languages.text(language, languages.NOTES)["lessons"]
    assert list(held) == list(lessons.load())
    for name, lesson in lessons.load(language).items():
        texts = [*held[name]["steps"], held[name]["question"]]
        assert len(texts) == len(lesson.steps) + 1
        assert all(text.endswith((".", "?")) and len(text) <= LONGEST for text in texts), name


def test_notes_follow_the_lesson_in_its_language() -> None:
    told: list[str] = []
    panel = NotesPanel("en", told.append)
    assert panel.root.content == {} and panel.root.words["code"] == "en"
    assert panel.take({"lesson": "thinning", "step": 2, "language": "de"}) and told == ["de"]
    german = lessons.load("de")["thinning"]
    shown = panel.root.content
    assert (shown["lesson"], shown["title"], shown["next"]) == (
        german.title,
        german.steps[2].title,
        german.steps[3].title,
    )
    assert shown["note"].replace("\u00a0", " ") == languages.text("de", "notes")["lessons"]["thinning"]["steps"][2]
    assert shown["right"] == "" and panel.root.words["code"] == "de"
    assert panel.take({"lesson": "thinning", "step": 7, "language": "de"}) and told == ["de"]
    assert panel.root.content["right"] == german.question.choices[german.question.answer]
    assert panel.root.content["next"] == "" and panel.root.content["title"] == languages.page("de")["question"]


@pytest.mark.parametrize(
    "message",
    [
        {},
        None,
        "thinning",
        {"lesson": "thinning"},
        {"lesson": "thinning", "step": 8},
        {"lesson": "thinning", "step": -1},
        {"lesson": "thinning", "step": True},
        {"lesson": ["thinning"], "step": 0},
        {"lesson": "../en", "step": 0, "language": "../en"},
    ],
)
def test_what_is_no_place_in_a_lesson_has_no_notes(message: Any) -> None:
    panel = NotesPanel("en")
    assert not panel.take(message) and panel.root.content == {}


def test_notes_are_the_teachers(no_server: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PAGES["notes"].keeps and not PAGES["notes"].listed
    page = LearnPage(False, {"theme": "default", "projector": "1"}, {"lang": "de"})
    assert page.panel.root.notes == "?page=notes&theme=default&lang=de"
    page.theme(True)
    assert page.panel.root.notes == "?page=notes&theme=dark&lang=de"
    assert NotesPage(True, {"lang": "de"}, "de").panel.root.lessons == "?page=learn&theme=dark&lang=de"
    monkeypatch.setattr(roles, "present", lambda: roles.STUDENT)
    assert LearnPage(False, {}, {}).panel.root.notes == ""


def test_the_page_takes_the_language_of_its_address_and_of_the_lesson(no_server: Document) -> None:
    page = NotesPage(False, {}, "de")
    assert page.language == "de" and "lang=de" in page.address.query and page._projector.label == "Beamer"
    page.panel.take({"lesson": "mixing", "step": 0, "language": "en"})
    assert page.language == "en" and page._projector.label == "Projector"

"""Languages of the lessons: each has all texts, with the same numbers and terms, and the Learn page switches."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from bokeh.document import Document

from bnnviz_app.learn import glossary, languages, lessons
from bnnviz_app.learn.lessons import Lesson
from bnnviz_app.pages.learn import LearnPage

ENGLISH = languages.DEFAULT
OTHERS = [code for code in languages.names() if code != ENGLISH]


def said(lesson: Lesson) -> list[str]:
    """Return all texts of a lesson."""
    asked = lesson.question
    steps = [text for step in lesson.steps for text in (step.title, step.text)]
    return [lesson.title, lesson.aim, *steps, asked.text, *asked.choices, asked.reason]


def numbers(text: str) -> Counter[str]:
    """Return the numerals of a text, whatever their marks."""
    return Counter(re.sub(r"[.,\u202f]", "", number) for number in re.findall(r"\d[\d.,\u202f]*", text))


def terms(text: str, language: str) -> set[str]:
    """Return the terms that are explained in a text, by their names in English; labels in quotes are English."""
    text = re.sub("„[^“]*“|“[^”]*”", "", text)
    names = {term.term: name for name, term in glossary.load(language).items()}
    return {names[term] for term in glossary.link(text, language)[1]}


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_all_texts_with_the_same_numbers_terms_and_places(language: str) -> None:
    assert list(glossary.load(language)) == list(glossary.load())
    ours, theirs = languages.page(), languages.page(language)
    assert list(ours) == list(theirs)
    for name, text in ours.items():
        assert set(re.findall(r"{\w+}", text)) == set(re.findall(r"{\w+}", theirs[name])), name
    for name, lesson in lessons.load(language).items():
        for text, english in zip(said(lesson), said(lessons.load()[name]), strict=True):
            assert numbers(text) == numbers(english), text
        steps = zip(lesson.steps, lessons.load()[name].steps, strict=True)
        assert all(terms(step.text, language) >= terms(english.text, ENGLISH) for step, english in steps)


@pytest.mark.parametrize("language", languages.names())
def test_each_form_is_of_one_term(language: str) -> None:
    forms = [form.lower() for term in glossary.load(language).values() for form in (term.term, *term.forms)]
    assert len(set(forms)) == len(forms)


@pytest.mark.parametrize(("code", "taken"), [("", "en"), ("de", "de"), ("DE", "de"), ("de-AT", "de"), ("de_CH", "de")])
def test_an_address_chooses_the_language_and_keeps_it(no_server: Document, code: str, taken: str) -> None:
    page = LearnPage(False, {}, {"lang": code, "lesson": "thinning"} if code else {"lesson": "thinning"})
    assert page.panel.root.words["code"] == taken
    assert page.panel.root.content["title"] == lessons.load(taken)["thinning"].title
    assert (f"lang={taken}" in page.address.query) == bool(code)


@pytest.mark.parametrize("code", ["fr", "x" * 90, "../en", "2", "d"])
def test_an_unknown_language_is_reported_and_english_is_taken(no_server: Document, code: str) -> None:
    page = LearnPage(False, {}, {"lang": code, "lesson": "nothing"})
    sentence = page.panel.root.content["sentence"]
    assert page.language == "en" and repr(code[:20]) in sentence and "'nothing'" in sentence


@pytest.mark.parametrize("message", [{"language": "fr"}, {"language": ["de"]}, {"language": 1}, {"language": None}])
def test_a_browser_that_asks_for_no_language_gets_none(no_server: Document, message: Any) -> None:
    page = LearnPage(False, {}, {})
    page._obey(message)
    assert page.language == "en" and "lang=" not in page.address.query


def test_a_change_of_language_leaves_the_run_the_step_and_the_answer(no_server: Document) -> None:
    page = LearnPage(False, {}, {"lesson": "thinning", "step": "3"})
    spec, picture = page.stage.session.spec, page.stage.picture
    page._obey({"language": "de"})
    german = lessons.load("de")["thinning"]
    assert page.panel.root.content["heading"] == german.steps[2].title
    assert page.stage.session.spec is spec and page.stage.picture is picture
    assert "lang=de" in page.address.query and "step=3" in page.address.query
    page._obey(len(german.steps))
    page._obey({"choose": 1})
    page._obey({"language": "en"})
    told = page.panel.root.content
    assert told["chosen"] == 1 and told["choices"] == list(lessons.load()["thinning"].question.choices)


def test_files_of_languages_are_the_lessons_and_what_surrounds_them() -> None:
    for language in languages.names():
        files = {path.stem: json.loads(path.read_text()) for path in (languages.FOLDER / language).glob("*.json")}
        assert set(files) == {*lessons.load(), languages.PAGE, languages.GLOSSARY}

"""Lessons: texts, links of texts to terms and claims, and translations."""

from __future__ import annotations

import re

import pytest

from bnnviz.figures import listing
from bnnviz.lessons import content, text
from bnnviz.lessons.content import LANGUAGES, Lesson, Question

LESSONS = content.load()
MARKS = re.compile(r"(?:term|claim):[\w\-' ]+|\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)


def texts(lesson: Lesson) -> list[str]:
    """Return all texts that may link terms."""
    asked = [lesson.question, *(step.ask for step in lesson.steps if step.ask)]
    parts = [part for each in asked for part in (each.text, *each.choices, *each.feedback)]
    return [*parts, *(part for step in lesson.steps for part in (step.text, step.why))]


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("name", LESSONS)
def test_texts_link_terms_and_claims_that_there_are(name: str, code: str) -> None:
    lesson, glossary = content.find(name, code), content.glossary(code)
    for part in texts(lesson):
        assert set(text.linked(part, "term")) <= glossary.keys()
        assert "](" not in text.render(part)
    for step in lesson.steps:
        linked = text.linked(step.text, "claim")
        assert sorted(linked) == sorted(claim.name for claim in step.claims)


@pytest.mark.parametrize("name", LESSONS)
def test_films_are_made_of_views_and_specs_that_there_are(name: str) -> None:
    known = {figure.needs[0] for figure in listing.BY_NAME.values()}
    for film in LESSONS[name].films.values():
        assert set(film.views) <= known
        assert film.knob is None or 2 <= len(film.values) <= 9
        for value in film.values:
            film.at(value).checked()
        assert any(step.film is film for step in LESSONS[name].steps)


@pytest.mark.parametrize("name", LESSONS)
def test_questions_have_one_answer_and_feedback_for_each_choice(name: str) -> None:
    lesson = LESSONS[name]
    for asked in (lesson.question, *(step.ask for step in lesson.steps)):
        if isinstance(asked, Question):
            assert 0 <= asked.answer < len(asked.choices) and len(set(asked.choices)) == len(asked.choices) >= 2
            assert all(asked.feedback)


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != content.DEFAULT])
def test_every_text_is_translated_with_its_links_and_formulas(code: str) -> None:
    translate = content._translation(code)
    missing = [message for message in content.messages() if translate(message) == message]
    assert [message for message in missing if len(message.split()) > 3] == []
    for message in content.messages():
        assert sorted(MARKS.findall(message)) == sorted(MARKS.findall(translate(message))), message

"""What stands around a lesson in another language: header, dialog of keys and marks, and sentences of a run's fate."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bokeh.document import Document
from test_wording import OTHERS, ROOT, example, unknown

from bnnviz_app.address import Visit
from bnnviz_app.components.guidance.help import TITLE, Guide
from bnnviz_app.components.run import freeze_button
from bnnviz_app.following import _NONE_YET
from bnnviz_app.learn import languages
from bnnviz_app.learn.wording import wording
from bnnviz_app.page import TOGGLE, _links
from bnnviz_app.pages import OF_CLASS, PAGES
from bnnviz_app.pages.follow import FollowPage
from bnnviz_app.pages.learn import LearnPage

SPEAKING = ("learn", "ask")  # pages that have a language
#: Where it stands what befell a run that a lesson shows.
FATES = (
    "app/session.py",
    "app/following.py",
    *(f"bnnviz/engine/cluster/{name}.py" for name in ("loop", "live_handle", "places", "actor")),
)
SENTENCE = re.compile(r"[A-Z].* .*\.", re.DOTALL)


def texts_in(written: str) -> list[str]:
    """Return the texts of HTML."""
    return [html.unescape(text).strip() for text in re.findall(r">([^<>]+)<", written) if text.strip()]


def sentences(path: Path) -> Iterator[list[str]]:
    """Give the sentences in a module's code, each with examples of its values; none of its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    told |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in told:
            continue
        match node:
            case ast.Constant(value=str(text)):
                found = [text]
            case ast.JoinedStr(values=parts):
                found = [example(parts, filling) for filling in ("1.5", "x1")]
            case _:
                continue
        if SENTENCE.fullmatch(found[0]):
            yield found


@pytest.mark.parametrize("language", OTHERS)
def test_what_befalls_a_run_is_translated(language: str) -> None:
    found = [texts for path in FATES for texts in sentences(ROOT / path)]
    assert len(found) > 15 and ["This run was stopped."] in found
    assert not [texts[0] for texts in found if unknown(texts, language)]


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", SPEAKING)
def test_the_dialog_of_keys_and_marks_is_translated(no_server: Document, name: str, language: str) -> None:
    guide = Guide(name)
    english = [*texts_in(guide.words), *texts_in(guide._marks.object)]
    assert len(english) > 80 and not [text for text in english if unknown([text], language)]
    guide.speak(language)
    say = wording(language)
    said = [*texts_in(guide._words.object), *texts_in(guide._marks.object)]
    assert said == [say(text) for text in english] and said != english
    guide.theme(True)
    assert texts_in(guide._marks.object)[0] == say("Marks and lines")
    guide.speak(languages.DEFAULT)
    assert [*texts_in(guide._words.object), *texts_in(guide._marks.object)] == english


@pytest.mark.parametrize("language", OTHERS)
def test_the_header_is_translated(language: str) -> None:
    say = wording(language)
    for entry in (PAGES | OF_CLASS).values():
        assert not unknown([entry.title], language) and not unknown([entry.purpose], language)
    buttons = ("Projector", TOGGLE, freeze_button.START, freeze_button.STOP)
    assert not [text for text in (TITLE, *buttons) if unknown([text], language)]
    links = _links("learn", language, {})
    assert texts_in(links) == [say(entry.title) for entry in PAGES.values() if entry.listed]
    assert f"lang='{language}'" in links and "href='?page=lab'" in links


def test_the_header_follows_the_language_of_the_page(no_server: Document) -> None:
    page = LearnPage(False, {}, {"lang": "de"})
    told: list[str] = []
    page.on_language = lambda: told.append(page.language)
    assert page._projector.label == wording("de")("Projector") != "Projector"
    page._speak("en")
    assert page._projector.label == "Projector" and told == ["en"]


@pytest.mark.parametrize("language", OTHERS)
def test_what_a_class_follows_is_told_in_its_language(
    language: str, no_server: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = FollowPage(False, Visit(FollowPage.opening().checked()), language)
    say = wording(language)
    for part, card in page.cards.items():
        title = "So far" if part == "table" else card.view.title
        assert texts_in(card._title.object)[0] == say(title) and not unknown([title], language)
    page.show_notice(_NONE_YET, failed=False)
    assert say(_NONE_YET) in page.caption.root[0].object != _NONE_YET
    page.narrator.update({"caption": {"text": "", "warning": ""}, "status": {"step": 1500, "draws": 12, "ess": 7.0}})
    assert page.narrator.root.message == say("Step 1,500, 12 draws, effective sample size 7.")
    assert not unknown(["Step 1,500, 12 draws, effective sample size 7.", "Step 1, 2 draws."], language)
    # The way to it from a page in that language.
    monkeypatch.setattr("bnnviz_app.page._offered", lambda: OF_CLASS)
    assert f"href='?page=follow&amp;lang={language}'" in _links("learn", language, {})
    assert "href='?page=follow'" in _links("learn", languages.DEFAULT, {})

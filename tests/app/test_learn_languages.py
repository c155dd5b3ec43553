"""Languages of the lessons: each has all texts whole, with the same numbers and terms, and the page speaks it alone."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from typing import Any

import panel as pn
import panel_material_ui as pmui
import pytest
from bokeh.document import Document
from bokeh.models import CustomJSTickFormatter, TickFormatter

from bnnviz import views
from bnnviz.views.comparison import leaderboard
from bnnviz_app.components.cards.cards import Card, FiguresCard
from bnnviz_app.components.cards.leaderboard import LeaderboardCard
from bnnviz_app.components.run.transport import BUTTONS, SPEEDS
from bnnviz_app.learn import glossary, languages, lessons, wording
from bnnviz_app.learn.lessons import Lesson
from bnnviz_app.learn.panel import LessonPanel
from bnnviz_app.learn.pieces import PIECES
from bnnviz_app.pages import OF_CLASS, PAGES
from bnnviz_app.pages.learn import LearnPage

ENGLISH = languages.DEFAULT
OTHERS = [code for code in languages.names() if code != ENGLISH]
EXPLAINED = ("question", "reason")  # where terms are, besides steps
LONGEST = 400  # characters of a step; most languages need more of them than English
#: Texts that may be the same in two languages: numbers, names, and words that they share.
SHARED = {"x = {x}", "R-hat {value}", "Dimension d", "Pause"}
#: Of each language but English, patterns of the number words that English texts have.
NUMBER_WORDS = {
    "de": {
        "two": "zwei|beide",
        "three": "drei",
        "four": "vier",
        "five": "fünf",
        "six": "sechs",
        "eight": "acht",
        "nine": "neun",
        "ten": "zehn",
        "sixteen": "sechzehn",
        "twenty": "zwanzig",
        "fifty": "fünfzig",
        "hundred": "hundert",
        "thousand": "tausend",
        "billion": "milliarden",
        "twice": "doppelt",
        "half": "halb|hälfte|halbe",
        "tenth": "zehntel",
        "hundredth": "hundertstel",
    }
}


def said(lesson: Lesson) -> dict[str, str]:
    """Return all texts of a lesson by where they stand."""
    found = {"title": lesson.title, "aim": lesson.aim, "question": lesson.question.text}
    found |= {f"choice {i}": choice for i, choice in enumerate(lesson.question.choices)}
    found |= {f"step {i}": step.text for i, step in enumerate(lesson.steps, start=1)}
    found |= {f"title {i}": step.title for i, step in enumerate(lesson.steps, start=1)}
    return found | {"reason": lesson.question.reason}


def strings(held: Any) -> dict[str, str]:
    """Return all texts of a file, or of what the browser gets, by the way to them."""
    if not isinstance(held, dict | list):
        return {"": held} if isinstance(held, str) else {}
    items = held.items() if isinstance(held, dict) else enumerate(held)
    return {f"{key}.{way}": text for key, part in items for way, text in strings(part).items()}


def file(language: str, name: str) -> dict[str, str]:
    return strings(json.loads((languages.FOLDER / language / f"{name}.json").read_text(encoding="utf-8")))


def numbers(text: str, language: str) -> Counter[str]:
    """Return the numerals of a text, without the marks of its language."""
    marks = languages.page(language)
    text = re.sub(rf"(?<=\d){re.escape(marks['thousands'])}(?=\d\d\d)", "", text)
    text = re.sub(rf"(?<=\d){re.escape(marks['decimal'])}(?=\d)", ".", text)
    return Counter(re.findall(r"\d+(?:\.\d+)?|[²³⁴√±]|−(?=\d)", text))


def terms(text: str, language: str) -> set[str]:
    """Return the terms that are explained in a text, by their names in English."""
    names = {term.term: name for name, term in glossary.load(language).items()}
    return {names[term] for term in glossary.link(text, language)[1]}


# --- the files


def test_there_is_a_second_language() -> None:
    assert list(languages.names())[0] == ENGLISH and OTHERS
    assert languages.names() | {"en": "English", "de": "Deutsch"} == languages.names()


def test_a_letter_stays_with_what_its_hyphen_joins_it_to() -> None:
    assert languages.heading("Fast die A-priori-Verteilung, R-hat") == "Fast die A-\u2060priori-Verteilung, R-\u2060hat"


@pytest.mark.parametrize("language", OTHERS)
def test_pages_are_called_what_the_header_calls_them(language: str) -> None:
    titles = [entry.title for entry in (PAGES | OF_CLASS).values()]
    named = re.compile("|".join(rf"\b{title}\b" for title in titles if wording.wording(language)(title) != title))
    texts = [text for path in (languages.FOLDER / language).iterdir() for text in file(language, path.stem).values()]
    assert not [text for text in texts if named.search(text)]


@pytest.mark.parametrize("language", languages.names())
def test_a_language_has_the_same_files_with_the_same_places(language: str) -> None:
    files = {path.name for path in (languages.FOLDER / language).iterdir()}
    if language != ENGLISH:
        files -= {f"{name}.json" for name in wording.FILES}  # are keyed by the English words
    assert files == {path.name for path in (languages.FOLDER / ENGLISH).iterdir()}
    others = {"page", "pieces", "poll", "notes", "figures", "glossary"}
    assert {name.removesuffix(".json") for name in files} == {*lessons.load(), *others}
    for name in (*lessons.load(), languages.PAGE, languages.PIECES, languages.POLL, languages.NOTES, languages.FIGURES):
        ours, theirs = file(ENGLISH, name), file(language, name)
        assert list(theirs) == list(ours), name
        for way, text in theirs.items():
            assert text, way
            assert set(re.findall(r"{\w+}", text)) == set(re.findall(r"{\w+}", ours[way])), text
    for name, lesson in lessons.load(language).items():
        assert len(lesson.steps) == len(lessons.load()[name].steps)
        assert len(set(lesson.question.choices)) == len(lesson.question.choices)
        assert all(len(step.text) <= LONGEST for step in lesson.steps), name


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", lessons.load())
def test_a_translation_has_the_numbers_and_the_terms_of_its_text(name: str, language: str) -> None:
    theirs = said(lessons.load(language)[name])
    for place, ours in said(lessons.load()[name]).items():
        text = theirs[place]
        assert numbers(text, language) == numbers(ours, ENGLISH), text
        if place in EXPLAINED or place.startswith("step"):
            assert terms(text, language) == terms(ours, ENGLISH), text
        for word, pattern in NUMBER_WORDS.get(language, {}).items():
            if re.search(rf"\b{word}\b", ours, re.IGNORECASE):
                assert re.search(pattern, text, re.IGNORECASE), f"{word} is not in {text!r}"
        assert ours[-1] == text[-1] or not {ours[-1], text[-1]} & set(".?:"), text


@pytest.mark.parametrize("language", OTHERS)
def test_nothing_stands_untranslated(language: str) -> None:
    names = {term.term for term in glossary.load().values()}
    others = (languages.PAGE, languages.PIECES, languages.POLL, languages.NOTES, languages.FIGURES, languages.GLOSSARY)
    for name in (*lessons.load(), *others):
        ours = file(ENGLISH, name)
        for way, text in file(language, name).items():
            same = ours.get(way) == text and re.search(r"[a-z]{3}", re.sub(r"{\w+}", "", text))
            assert not same or text in SHARED | names, f"{name}: {way}{text}"
            # Words that no sentence of English goes without; a quoted or bracketed name of something may have them.
            bare = re.sub(r"„[^“]*“|\([^)]*\)", "", text)
            assert not re.search(r"\b(the|of|is|are|and|with|which|its|than)\b", bare), text


@pytest.mark.parametrize("language", languages.names())
def test_the_glossary_is_complete_and_each_form_is_of_one_term(language: str) -> None:
    ours, theirs = glossary.load(), glossary.load(language)
    assert list(theirs) == list(ours)
    forms = [form.lower() for term in theirs.values() for form in (term.term, *term.forms)]
    assert len(set(forms)) == len(forms)
    for name, term in theirs.items():
        assert term.meaning.endswith(".") and numbers(term.meaning, language) == numbers(ours[name].meaning, ENGLISH)
        for form in (term.term, *term.forms):
            shown, found = glossary.link(f"{form}.", language)
            assert found == {term.term: term.meaning} and f">{html.escape(form)}</button>." in shown


@pytest.mark.parametrize("language", languages.names())
def test_what_figures_are_has_the_numbers_of_english(language: str) -> None:
    ours = file(ENGLISH, languages.FIGURES)
    for way, text in file(language, languages.FIGURES).items():
        assert numbers(text, language) == numbers(ours[way], ENGLISH), text
        assert way.startswith(("turn", "back")) or text.endswith(".")


def test_the_english_columns_are_told_as_on_other_pages() -> None:
    held = languages.text(ENGLISH, languages.FIGURES)
    assert held["columns"] == {column.name: column.doc for column in leaderboard.COLUMNS}
    assert held["rank"] == leaderboard.RANK


def test_what_is_read_as_one_thing_is_kept_in_one_line() -> None:
    text = "Of 100 % the rate is max(0, v · grad U) with a = v · Px, or 2.4 / √d of it; rows / columns break."
    shown, _ = glossary.link(text)
    plain = html.unescape(re.sub("<[^>]+>", "", shown))
    assert plain.replace("\u00a0", " ") == text
    for whole in ("100 %", "max(0, v · grad U)", "a = v · Px", "2.4 / √d"):
        assert whole.replace(" ", "\u00a0") in plain
    assert "rows / columns break" in plain and "√d of" in plain


@pytest.mark.parametrize("language", languages.names())
def test_no_equation_of_a_lesson_is_broken(language: str) -> None:
    texts = [text for name in lessons.load() for text in file(language, name).values()]
    broken = [text for text in map(languages.unbroken, texts) if re.search(" [=≠] ", text)]
    assert len(texts) > 100 and not broken


def test_numbers_are_written_as_the_language_does() -> None:
    assert languages.number("10,000.5", "en") == "10,000.5"
    assert languages.number("10,000.5", "de") == "10\u202f000,5"


def decimal_of(formatter: TickFormatter | str) -> str:
    """Return the decimal mark that a formatter writes."""
    return formatter.args["decimal"] if isinstance(formatter, CustomJSTickFormatter) else "."


@pytest.mark.parametrize("language", languages.names())
@pytest.mark.parametrize("name", views.BY_NAME)
def test_every_axis_of_every_view_has_the_decimal_mark_of_its_language(name: str, language: str) -> None:
    card, mark = Card(views.BY_NAME[name]()), languages.page(language)["decimal"]
    plain = [axis.formatter for axis in card.view.root.axis]
    card.speak(language)
    found = [axis.formatter for axis in card.view.root.axis]
    assert len(found) >= 2
    assert found == plain if language == ENGLISH else [decimal_of(each) for each in found] == [mark] * len(found)


# --- the page


@pytest.mark.parametrize(
    ("code", "taken"), [("", "en"), ("en", "en"), ("de", "de"), ("DE", "de"), ("de-AT", "de"), ("de_CH", "de")]
)
def test_an_address_chooses_the_language_and_keeps_it(no_server: Document, code: str, taken: str) -> None:
    page = LearnPage(False, {}, {"lang": code, "lesson": "thinning"} if code else {"lesson": "thinning"})
    assert page.panel.root.words["code"] == taken
    assert page.panel.root.content["title"] == lessons.load(taken)["thinning"].title
    assert page.panel.root.content["sentence"] == ""
    assert (f"lang={taken}" in page.address.query) == bool(code)
    page._obey("all")
    hrefs = [item["href"] for item in page.panel.root.content["lessons"]]
    assert all((f"lang={taken}" in href) == bool(code) for href in hrefs)


@pytest.mark.parametrize("code", ["fr", "x" * 90, "../en", "2", "d"])
def test_an_unknown_language_is_said_and_english_is_taken(no_server: Document, code: str) -> None:
    page = LearnPage(False, {}, {"lang": code, "lesson": "nothing"})
    assert page.language == "en"
    sentence = page.panel.root.content["sentence"]
    assert sentence.startswith(f"There are no lessons in a language {code[:20]!r}; English was taken.")
    assert "no lesson 'nothing'" in sentence
    page._obey({"language": "de"})
    assert page.panel.root.content["sentence"] == languages.page("de")["no_lesson"].format(name="'nothing'")


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
    page._obey("next")
    assert page.panel.root.content["heading"] == german.steps[3].title
    page._obey(len(german.steps))
    page._obey({"choose": 1})
    page._obey({"language": "en"})
    told = page.panel.root.content
    assert (
        told["chosen"] == 1 and told["reason"] and told["choices"] == list(lessons.load()["thinning"].question.choices)
    )


@pytest.mark.parametrize("language", languages.names())
@pytest.mark.parametrize("name", PIECES)
def test_a_piece_says_nothing_that_is_not_in_its_language(no_server: Document, name: str, language: str) -> None:
    words = languages.piece(name, language)
    PIECES[name].prepare()
    piece = PIECES[name](False, words)
    own = "|".join(re.sub(r"\\{\w+\\}", ".+", re.escape(text)) for text in words.texts.values())
    shown = [
        button.label for card in piece.cards.values() for button in card.root.select(lambda m: hasattr(m, "label"))
    ]
    for card in piece.cards.values():
        view = card.view
        legend = re.findall(r">([^<>]+)<", view.legend_html())
        labels = [text for text in (view.x_label, view.y_label) if text]
        shown += [view.title, *legend, *labels, *([view.note] if view.note else [])]
        assert view.description.startswith(view.title)
        if language != ENGLISH:
            assert not re.search(r" against |nothing yet| draws|chain ", view.description)
    symbols = r"x|y|f\(.*\)"
    for text in shown:
        assert re.fullmatch(rf"{own}|{symbols}", text.strip()), f"{text!r} is not of pieces.json"


@pytest.mark.parametrize("language", languages.names())
@pytest.mark.parametrize("name", PIECES)
def test_a_piece_writes_all_numbers_as_its_language_does(no_server: Document, name: str, language: str) -> None:
    PIECES[name].prepare()
    piece, mark = PIECES[name](False, languages.piece(name, language)), languages.page(language)["decimal"]
    formats = [axis.formatter for card in piece.cards.values() for axis in card.view.root.axis]
    assert [decimal_of(each) for each in formats] == [mark] * len(formats) and len(formats) >= 4
    for card in piece.cards.values():
        for slider in card.root.select(lambda model: isinstance(model, pmui.FloatSlider)):
            assert slider.format.args["mark"] == mark


@pytest.mark.parametrize("language", OTHERS)
def test_the_panel_in_a_language_has_no_text_of_english_in_it(no_server: Document, language: str) -> None:
    files = (*lessons.load(), languages.PAGE, languages.PIECES, languages.POLL)
    english = {text for name in files for text in file(ENGLISH, name).values()}
    english -= {text for name in files for text in file(language, name).values()}
    panel = LessonPanel(language, lambda message: None)
    seen = list(panel.root.words.values())
    panel.show_all({})
    seen += strings(panel.root.content).values()
    for lesson in lessons.load(language).values():
        for number in range(len(lesson.steps)):
            panel.show_step(lesson, number)
            seen += strings(panel.root.content).values()
        panel.ask(lesson, chosen=0)
        seen += strings(panel.root.content).values()
    assert len(seen) > 500 and not english & set(seen)


def test_the_buttons_below_a_picture_are_in_its_language(no_server: Document) -> None:
    page = LearnPage(False, {}, {"lesson": "thinning"})
    bar = page.stage.transport
    buttons = [widget for widget in bar.root.select(pn.widgets.Widget) if widget.visible]
    english = [widget.label for widget in buttons]
    assert {label for label in english if label} <= {*BUTTONS.values(), "Speed"}
    assert bar._speed.options == SPEEDS
    model = bar._speed.get_root(no_server)
    assert model.data.value == "full speed"
    page._obey({"language": "de"})
    words = languages.page("de")
    assert model.data.value == words["full_speed"], "the browser knows the speed by a name that is gone"
    shared = {"Pause"}
    assert {widget.label for widget in buttons} <= {text for name, text in words.items() if name.startswith("bar_")}
    assert not {widget.label for widget in buttons} & set(english) - shared
    assert list(bar._speed.options.values()) == list(SPEEDS.values()) and "volles Tempo" in bar._speed.options
    page.stage.session.playing = True
    bar.show_playing()
    assert bar._play.label == words["bar_pause"]


def test_screen_readers_hear_of_the_language_of_what_is_shown(no_server: Document) -> None:
    page = LearnPage(False, {}, {"lang": "de", "lesson": "mixing"})
    assert page.stage.picture.piece and page.stage._spoken.language == "de"
    page._obey({"language": "en"})
    assert page.stage._spoken.language == "en"
    assert len(page.stage.stage) == 1 + len(page.stage._pieces["exchange"].cards), "cards of the other language stay"
    page._obey(3)
    assert page.stage.runs and page.stage._spoken.language == "en"
    page._obey({"language": "de"})
    assert page.stage._spoken.language == "de"
    page._obey("all")
    assert page.stage._spoken.language == ""


def test_what_the_figures_are_is_told_in_the_language_of_the_lesson(no_server: Document) -> None:
    page = LearnPage(False, {}, {"lesson": "random-walk", "step": "2", "lang": "de"})
    card = next(card for card in page.stage._cards.values() if isinstance(card, FiguresCard))
    card.update({"table": {"rows": [["ESS of U", "31", ""]]}})
    german = languages.text("de", languages.FIGURES)
    assert german["rows"]["ESS of U"] in html.unescape(card._rows.object) and card._turn.label == german["turn"]
    page._speak(ENGLISH)
    english = languages.text(ENGLISH, languages.FIGURES)
    assert english["rows"]["ESS of U"] in html.unescape(card._rows.object) and card._turn.label == english["turn"]


def test_the_columns_of_a_race_are_told_in_the_language_of_the_lesson(no_server: Document) -> None:
    page = LearnPage(False, {}, {"lesson": "images", "lang": "de"})
    card = next(card for card in page.stage._cards.values() if isinstance(card, LeaderboardCard))
    card.reset({"lanes": [{"spec": {"chains": 4}}]})
    card.update({"table": {"rows": [], "scores": ["nll"]}})
    german = languages.text("de", languages.FIGURES)
    assert all(column[2] == german["columns"][column[0]] for column in card._leaderboard.columns)
    assert card._leaderboard.columns and card._leaderboard.rank == german["rank"]

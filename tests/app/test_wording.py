"""What a lesson's figures, tables and bar say in another language: nothing is left in English."""

from __future__ import annotations

import ast
import html
import importlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import panel as pn
import pytest
from bokeh.document import Document
from bokeh.models import BasicTickFormatter, Plot
from example_frames import example_scene

from bnnviz.specs import catalogue
from bnnviz.views.chain.rate_ratios import RateRatiosView
from bnnviz.views.chain.thinning import ThinningView
from bnnviz.views.chain.trajectory import TrajectoryView
from bnnviz.views.comparison import leaderboard
from bnnviz_app.components.cards.cards import Card, FiguresCard
from bnnviz_app.components.cards.leaderboard import Leaderboard, LeaderboardCard
from bnnviz_app.learn import languages, lessons, wording
from bnnviz_app.learn.lessons import LivePicture
from bnnviz_app.learn.stage import LessonStage
from bnnviz_app.learn.wording import Wording

ROOT = Path(__file__).resolve().parents[2]
OTHERS = [code for code in languages.names() if code != languages.DEFAULT]
#: Where calls have what is read, by the place of the argument.
READ = {"mark_html": (2,), "line_html": (0,), "band_html": (0,), "ramp_html": (0, 1), "Kind": (0,), "_figure": (0, 1)}
READ_BY_NAME = ("label", "text", "hint", "title")
ASSIGNED = ("title", "note", "x_label", "y_label", "figure", "TITLES", "MEASURES")
RETURNED = ("_words", "_note", "_text", "_drawn")
PHASES = ("preparing", "start", "tuning", "warm-up", "sampling", "racing", "reference", "done", "failed")
SHORT = ("functionals",)  # the other lessons take long
SEPARATOR = re.compile(r"^ *[·;:,]? *| *[·;:,]? *$")
WRITTEN = re.compile(r">([^<>]+)<| title='([^']+)'| title=\"([^\"]+)\"")


# --- what there is to say


def leaves(node: ast.AST | None) -> Iterator[list[str]]:
    """Give examples of the texts that an expression may be: of each with numbers, and with names, for its values."""
    match node:
        case ast.Constant(value=str(text)):
            yield [text]
        case ast.JoinedStr(values=parts):
            yield [example(parts, filling) for filling in ("1.5", "x1")]
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, op=ast.Add(), right=other):
            yield from [*leaves(one), *leaves(other)]
        case ast.BoolOp(values=nodes) | ast.Tuple(elts=nodes) | ast.List(elts=nodes) | ast.Dict(values=nodes):
            for each in nodes:
                yield from leaves(each)
        case ast.GeneratorExp(elt=one) | ast.ListComp(elt=one):
            yield from leaves(one)
        case ast.Call(func=ast.Attribute(attr="join"), args=[one]):
            yield from leaves(one)


def example(parts: list[ast.expr], filling: str) -> str:
    """Give a text of an f-string; what has a format is a number."""
    return "".join(
        part.value if isinstance(part, ast.Constant) else "1.5" if part.format_spec else filling for part in parts
    )


def read_of(node: ast.AST) -> Iterator[list[str]]:
    """Give examples of what a node of a view's module has to be read."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=given, keywords=named):
            for place in READ.get(name, ()):
                yield from leaves(given[place] if place < len(given) else None)
            if name in READ or name == "words":
                for each in named:
                    yield from leaves(each.value if each.arg in READ_BY_NAME else None)
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=value):
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            values = value.elts if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [value]
            for each, given in zip(targets, values, strict=False):
                if (getattr(each, "attr", None) or getattr(each, "id", None)) in ASSIGNED:
                    yield from leaves(given)
        case ast.FunctionDef(name=name) if name in RETURNED:
            for each in ast.walk(node):
                if isinstance(each, ast.Return):
                    yield from leaves(each.value)


def read_of_views() -> dict[str, list[str]]:
    """Return examples of all that views have to be read, by where it stands."""
    found = {}
    for path in sorted((ROOT / "bnnviz" / "views").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for number, texts in enumerate(read_of(node)):
                if "=" not in texts[0]:  # HTML
                    found[f"{path.name}:{node.lineno}.{number}"] = [SEPARATOR.sub("", text) for text in texts]
    return found


def rows_of_tables() -> list[str]:
    """Return what rows are called, of their patterns."""
    patterns = languages.text(languages.DEFAULT, languages.FIGURES)["rows"]
    texts = [each for pattern in patterns for each in pattern.split("|")]
    named = [each for each in texts if not each.startswith((".*", "Swaps"))]
    shown = [re.sub(r"\\(.)", r"\1", each.replace(".*", "x1")) for each in named]
    return [each.replace("ESS x1", "ESS (x1)") for each in shown]


def unknown(texts: list[str], language: str) -> list[str]:
    """Return what of a text has no translation, of the example that has most."""
    say = wording.wording(language)
    return min((list(say.unknown(text)) for text in texts), key=len)


@pytest.mark.parametrize("language", OTHERS)
def test_all_that_views_have_to_be_read_is_translated(language: str) -> None:
    read = read_of_views()
    assert len(read) > 150 and ["Thinning, this segment"] in read.values() and ["refresh clock"] in read.values()
    assert not {place: texts[0] for place, texts in read.items() if unknown(texts, language)}


@pytest.mark.parametrize("language", OTHERS)
def test_rows_columns_phases_and_names_are_translated(language: str) -> None:
    shipped = catalogue.load()
    names = [each["title"] for each in (*shipped["samplers"], *shipped["data"])]
    columns = [each.head for each in leaderboard.COLUMNS]
    phases = [text for phase in PHASES for text in (phase, f"{phase}, paused")]
    images = [name for name in names if "MNIST" in name or name in [each["title"] for each in shipped["samplers"]]]
    texts = [*rows_of_tables(), *columns, *phases, *images]
    assert len(texts) > 100
    assert not [text for text in texts if unknown([text], language)]


@pytest.mark.parametrize("name", wording.FILES)
@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_has_the_places_of_its_english(language: str, name: str) -> None:
    held = languages.FOLDER / language / f"{name}.json"
    pairs = json.loads(held.read_text(encoding="utf-8"), object_pairs_hook=list)
    assert len({english for english, _ in pairs}) == len(pairs), "one is there twice"
    for english, text in pairs:
        assert sorted(re.findall(r"{\w+}", text)) == sorted(re.findall(r"{\w+}", english)), english
        assert text and text.strip() == text
        assert english == wording.ORDINAL or (text[-1] == ".") == (english[-1] == "."), english
        assert not re.search(r"\b(the|of|is|are|and|with|which|its|than|draws?|steps?)\b", text), text


@pytest.mark.parametrize("language", OTHERS)
def test_what_lessons_quote_of_a_figure_is_what_it_says(language: str) -> None:
    say, found = wording.wording(language), 0
    ours, theirs = (json.dumps([languages.text(code, name) for name in lessons.load()]) for code in ("en", language))
    quoted = [json.loads(f'"{each}"') for each in re.findall(r"\\u201c(.*?)\\u201d", ours)]
    in_theirs = json.loads(theirs)
    for text in quoted:
        if not say.unknown(text) and say(text) != text:
            found += 1
            assert f"„{say(text)}“" in json.dumps(in_theirs, ensure_ascii=False), text
    assert found > 10


# --- how it is said


def test_numbers_and_phrases_are_put_in_their_places() -> None:
    texts = {
        "{0} of {1} draws": "von {1} Ziehungen {0}",
        "Variance of {name}; true {0}": "Varianz von {name}; wahr {0}",
        "PC {0}": "HK {0}",
        "{label}, {0} chains": "{label}, {0} Ketten",
        "The {0} try failed.": "Der {0} Versuch misslang.",
        "{0}th": "{0}.",
        "Press play.": "Start drücken.",
    }
    say = Wording("de", texts)
    assert say("-3.15 × 10⁻⁶ of 12 draws") == "von 12 Ziehungen −3,15 × 10⁻⁶"
    assert say("1,234.5 of 2e-05 draws") == "von 2 × 10⁻⁵ Ziehungen 1\u202f234,5"
    assert say("Variance of x1; true 0.5") == "Varianz von x1; wahr 0,5"
    assert say("PC 1, 4 chains") == "HK 1, 4 Ketten"
    assert say("The 3rd try failed. Press play.") == "Der 3. Versuch misslang. Start drücken."
    assert say("PC 2 · 3 of – draws; PC 1.") == "HK 2 · von – Ziehungen 3; HK 1."
    assert say(" PC 1 ") == " HK 1 " and say("") == "" and say(" ") == " "
    assert say("0.weight[0, 0]") == "0.weight[0, 0]" and say("1.5") == "1,5"


def test_what_has_no_translation_stays_and_is_told() -> None:
    say = Wording("de", {"draws": "Ziehungen", "{name} (canonical)": "{name} (kanonisch)"})
    assert say("draws · colours 1.5") == "Ziehungen · colours 1,5"
    assert say.unknown("draws · colours 1.5") == ("colours 1.5",)
    assert say.unknown("shape (canonical)") == ("shape",) and say.unknown("x1 (canonical)") == ()


def test_markup_is_kept_around_its_words() -> None:
    say = Wording("de", {"rate": "Rate", "a < b": "a kleiner b", "the rate": 'die "Rate"'})
    written = '<span title="the rate" style=\'color:red\'><svg><path d="M1 6H19"/></svg>rate</span> <b>a &lt; b</b>'
    assert say.markup(written) == (
        '<span title="die &quot;Rate&quot;" style=\'color:red\'><svg><path d="M1 6H19"/></svg>Rate</span>'
        " <b>a kleiner b</b>"
    )


def test_english_is_left_as_it_is() -> None:
    say = wording.wording(languages.DEFAULT)
    text = "1,234.5 of 2 draws"
    assert say(text) is text and say.markup(text) is text and say.unknown("colours") == ()


# --- where it is said


def test_a_view_speaks_and_goes_back_to_english(no_server: Document) -> None:
    view = TrajectoryView(example_scene("banana"))
    card = Card(view, long_legend=True)
    english = card._title.object, card._legend.object, view.root.xaxis[0].axis_label, view.description
    card.speak("de")
    assert "Trajektorie" in card._title.object and "Reflexion" in card._legend.object
    assert [tool.description for tool in view.root.tools][0] == "Verschieben"
    assert view.description.startswith("Trajektorie, ") and view.root.html_attributes["aria-label"] == view.description
    assert view.root.xaxis[0].formatter.args["decimal"] == ","
    card.speak("en")
    assert english == (card._title.object, card._legend.object, view.root.xaxis[0].axis_label, view.description)
    assert isinstance(view.root.xaxis[0].formatter, BasicTickFormatter)


def test_labels_and_words_within_a_figure_are_translated() -> None:
    for made, word, label in (
        (ThinningView(), "Auffrischungsuhr", "Zeit seit dem letzten Ereignis (Pfadzeit)"),
        (RateRatiosView(), "keine Schranke über 1", "Rate / Hüllkurve"),
    ):
        made.speak(wording.wording("de"))
        assert word in [glyph["text"] for glyph in made.canvas.model.tags]
        assert made.root.xaxis[0].axis_label == label
        made.x_label = "rate ({unit})".format(unit="1/time")
        assert made.root.xaxis[0].axis_label == "Rate (1/Zeit)" and made.x_label == "rate (1/time)"


class Heard:
    """Hold what was said in a language, and what had no translation."""

    def __init__(self) -> None:
        self.said: set[str] = set()
        self.unknown: set[str] = set()


def listen(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """Hear all that is said from now on."""
    heard, call = Heard(), Wording.__call__

    def hear(self: Wording, text: str) -> str:
        heard.said.add(call(self, text).strip())
        heard.unknown |= set(self.unknown(text))
        return call(self, text)

    monkeypatch.setattr(Wording, "__call__", hear)
    return heard


def strings(held: Any) -> Iterator[str]:
    """Give all texts of what a file or a component holds."""
    if isinstance(held, str):
        yield held
    elif isinstance(held, dict | list | tuple):
        for each in held.values() if isinstance(held, dict) else held:
            yield from strings(each)


def shown_in(root: Any) -> Iterator[str]:
    """Give all that can be read in a part of a page."""
    for held in root.select(lambda model: True):
        if isinstance(held, pn.pane.HTML):
            yield from (
                html.unescape(next(filter(None, found))).strip() for found in WRITTEN.findall(f">{held.object}<")
            )
        elif isinstance(held, Leaderboard):
            yield from [held.who, held.rank, *strings([column[1:] for column in held.columns])]
            yield from strings([[row[2], row[4], *(text for _, text in row[5].values())] for row in held.rows])
        elif isinstance(held, pn.pane.Bokeh):
            yield from drawn_in(held.object)
        elif hasattr(held, "label"):
            yield from [held.label, *(held.options if hasattr(held, "options") else ())]


def drawn_in(figure: Plot) -> Iterator[str]:
    """Give what can be read, or heard, in a figure."""
    yield from [axis.axis_label for axis in figure.axis if axis.visible and axis.axis_label]
    yield from [tool.description for tool in figure.tools]
    canvas = next(tag for tag in figure.tags if isinstance(tag.tags, list) and tag.tags and "shape" in tag.tags[0])
    yield from [glyph["text"] for glyph in canvas.tags if glyph["text"]]


def assert_said(root: Any, heard: Heard, language: str, names: Iterable[str]) -> None:
    """Require that all that can be read was translated, or is of the language's own texts."""
    assert not heard.unknown - {*names, "cpu"}
    own = {*strings(languages.text(language, languages.FIGURES)), *strings(languages.page(language))}
    speeds = re.escape(languages.page(language)["speed"]).replace(r"\{steps\}", r"\d+")
    for text in (shown.replace("\u00a0", " ") for shown in filter(None, shown_in(root))):
        assert text in heard.said | own or re.fullmatch(speeds, text), f"{text!r} was not translated"


def frames_of(picture: LivePicture) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Run what a step shows for a moment, and give scenes and frames."""
    module, _, name = picture.spec.factory.partition(":")
    run, want = getattr(importlib.import_module(module), name)(picture.spec), [*picture.show, "status", "caption"]

    def look() -> tuple[dict[str, Any], dict[str, Any]]:
        frame = run.frame(want)
        more = {"playing": True, "shared": 3, "chains": "–", "draws": 0, "ess": 1.0}
        return run.scene(), {**frame, "status": {**more, "events_per_s": 1.0, "gradients_per_s": 1.0} | frame["status"]}

    run.prepare()
    yield look()
    for kind, value in picture.from_start:
        if kind == "change":
            run.change(value)
        elif kind == "watch":
            run.watch(**value)
        else:
            for _ in range({"proposal": value, "event": value}.get(kind, 0)):
                run.step_event() if kind == "event" else run.step_proposal()
                yield look()
    for _ in range(4):
        run.step_proposal()
        yield look()
    for _ in range(6):
        run.advance(0.15)
        yield look()


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.slow) for name in lessons.load()]
)
def test_the_figures_of_a_lesson_say_nothing_in_english(
    name: str, language: str, no_server: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = listen(monkeypatch)
    stage = LessonStage(False, language, lambda key: None, lambda: None)
    names: set[str] = set()  # of the coordinates of all steps so far: what was heard stays heard
    for step in lessons.load(language)[name].steps:
        if step.picture.spec is None:
            continue
        stage.show(step.picture, onward=False)
        begun = False
        for scene, frame in frames_of(step.picture):
            if not begun:
                stage.show_scene(scene)
            begun = True
            stage.show_frame(frame)
            names |= {*scene.get("names", ())}
            assert_said(stage.root, heard, language, names)


def test_a_table_and_a_race_change_their_language_as_they_stand(no_server: Document) -> None:
    figures, race = FiguresCard(), LeaderboardCard()
    figures.update({"table": {"rows": [["ESS of U", "1,031", ""]]}})
    race.reset({"lanes": [{"spec": {"chains": 4}}]})
    row = {"ranks": "1", "lane": 0, "name": "Most probable weights (MAP)", "settings": {}, "nll": 0.5}
    race.update({"table": {"rows": [{**row, "diverged": True, "chains_lost": 0}], "scores": ["nll"], "errors": False}})
    for card in (figures, race):
        card.speak("de")
    assert "ESS von U" in figures._rows.object and "1\u202f031" in figures._rows.object
    assert race._leaderboard.rows[0][2] == "MAP-Schätzung"
    assert race._leaderboard.rows[0][4] == "divergiert" and race._leaderboard.rows[0][5]["nll"] == [0.5, "0,5"]
    assert "Bisher" in figures._title.object and "Rangliste" in race._title.object

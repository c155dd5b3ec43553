"""Lessons: what the files hold is whole, each step can be shown, and what they say is true."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bokeh.document import Document

from bnnviz import diagnostics
from bnnviz.specs.run import Spec
from bnnviz_app.components.guidance import scenes
from bnnviz_app.learn import collapse, copies, exchange, glossary, lessons, small_posterior, stage
from bnnviz_app.learn.pieces import PIECES
from bnnviz_app.pages.learn import LearnPage

ROOT = Path(__file__).resolve().parents[2]
LESSONS = lessons.load()
STEPS = [(name, number) for name, lesson in LESSONS.items() for number in range(len(lesson.steps))]


@pytest.fixture
def page(no_server: Document) -> LearnPage:
    return LearnPage(False, {}, {})


def texts(name: str) -> list[str]:
    """Return all texts of a lesson in which terms are explained."""
    lesson = LESSONS[name]
    return [*(step.text for step in lesson.steps), lesson.question.text, lesson.question.reason]


# --- the files


def test_there_are_lessons_on_what_the_page_is_for() -> None:
    assert len(LESSONS) >= 10
    assert len({json.loads(path.read_text())["order"] for path in lessons.FOLDER.glob("*.json")}) == len(LESSONS)


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_is_whole(name: str) -> None:
    lesson, asked = LESSONS[name], LESSONS[name].question
    assert len(lesson.steps) >= 3 and 3 <= lesson.minutes <= 8
    assert 2 <= len(asked.choices) <= 4 and len(set(asked.choices)) == len(asked.choices)
    assert 0 <= asked.answer < len(asked.choices)
    for step in lesson.steps:
        assert step.title and step.text
        picture = step.picture
        assert (picture.spec is None) == bool(picture.piece)
        if picture.piece:
            assert picture.piece in PIECES
            continue
        assert 1 <= len(picture.show) <= 4 and len(set(picture.show)) == len(picture.show)
        assert set(picture.show) <= stage.known_parts()
        assert picture.spec == picture.spec.checked()
        assert {kind for kind, _ in picture.from_start} <= {*scenes.ACTIONS, "watch"}


def test_a_step_that_goes_on_begins_with_all_that_came_before_it() -> None:
    plan = {
        "order": 1,
        "minutes": 3,
        "answer": 0,
        "steps": [
            {"run": {"target": "banana"}, "do": [{"proposal": 2}], "show": ["path"]},
            {"do": ["play"], "show": ["path", "table"]},
            {"scene": "horizon", "step": 2, "show": ["table"]},
            {"scene": "horizon", "step": 3, "show": ["table"]},
        ],
    }
    said = [{"title": str(i), "text": f"{i}."} for i in range(4)]
    asked = {"text": "Is it?", "choices": ["yes", "no"], "reason": "It is."}
    read = lessons.read("x", plan, {"title": "t", "aim": "a.", "steps": said, "question": asked})
    first, second, third, fourth = (step.picture for step in read.steps)
    assert (first.goes_on, second.goes_on, third.goes_on, fourth.goes_on) == (False, True, False, True)
    assert second.spec == first.spec
    assert second.actions == (("play", 1),) and second.from_start == (("proposal", 2), ("play", 1))
    assert third.from_start == (("play", 1), ("change", {"alpha": 2.0}))
    assert fourth.actions == (("change", {"alpha": 1.0, "horizon": 0.1}),)
    with pytest.raises(ValueError, match="No run goes on"):
        lessons.read("x", plan | {"steps": [{"show": ["path"]}] * 4}, {"steps": said, "question": asked})


# --- the words


def test_the_shipped_terms_are_those_of_the_glossary() -> None:
    written = glossary.read((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
    assert glossary.load() == written, "run python -m bnnviz_app.learn.glossary"
    assert "](" not in "".join(term.meaning for term in written.values())
    assert {"ESS", "effective sample size", "bound", "envelope", "R-hat"} <= set(written)


@pytest.mark.parametrize("name", LESSONS)
def test_every_term_that_a_lesson_uses_is_explained_where_it_stands(name: str) -> None:
    for text in texts(name):
        shown, meanings = glossary.link(text)
        for term, known in glossary.load().items():
            # Words by another rule than the page's: letters and hyphens.
            words = re.findall(r"[\w-]+(?: [\w-]+)*", text if term.isupper() else text.lower())
            wanted = term if term.isupper() else term.lower()
            used = any(re.search(rf"(^|\s){re.escape(wanted)}($|\s)", run) for run in words)
            if used and not any(wanted.lower() in other.lower().split() for other in meanings if other != term):
                assert meanings.get(term) == known.meaning, f"{term!r} in {text!r}"
                assert f"data-term='{term}'" in shown
        whole = text.replace("&", "&amp;").replace("'", "&#x27;")
        assert re.sub(r"<[^>]+>", "", shown) == whole


def test_terms_are_linked_once_whole_and_in_their_own_letters() -> None:
    shown, meanings = glossary.link("MAP, a map; two mini-batches and a mini-batch; <b>prior</b>; precision.")
    assert list(meanings) == ["MAP", "mini-batch", "prior"]
    assert shown.count("data-term=") == 3
    assert "&lt;b&gt;" in shown and "<b>" not in shown


# --- the page


def test_punctuation_stays_with_its_term() -> None:
    shown, _ = glossary.link("“Variances / true (Stein's identity)”: 1. A chain, a rate/bound")
    button = "<button type='button' class='term' data-term='{0}'>{0}</button>"
    stein = button.format("Stein&#x27;s identity")
    assert f"true <span class='glued'>({stein})”:</span> 1." in shown
    rate, bound = button.format("rate"), button.format("bound")
    assert f"a <span class='glued'>{rate}/</span>{bound}" in shown


@pytest.mark.parametrize("name", LESSONS)
def test_every_step_of_a_lesson_can_be_shown(no_server: Document, name: str) -> None:
    page = LearnPage(False, {}, {"lesson": name})
    session, lesson = page.stage.session, LESSONS[name]
    for number, step in enumerate(lesson.steps):
        picture = step.picture
        assert f"lesson={name}&step={number + 1}" in page.address.query
        assert page.panel.root.content["number"] == number
        assert page.panel.root.content["heading"] == step.title
        shown = [card for card in list(page.stage.stage)[1:] if card.visible]
        if picture.piece:
            assert session.spec is not picture.spec and not session._starting
            assert len(shown) == len(page.stage._pieces[picture.piece].cards)
        else:
            assert session._starting and session.spec == picture.spec
            assert {card.styles["grid-area"] for card in shown} == set(picture.show)
            assert {"caption", "status", *picture.show} <= page.stage.wanted(None)
            assert all(area in page.stage.stage.styles["grid-template"] for area in picture.show)
        page._obey("next")
    assert page.panel.root.content["kind"] == "question"
    assert f"step={len(lesson.steps) + 1}" in page.address.query


def test_a_question_says_nothing_before_it_is_answered(page: LearnPage) -> None:
    lesson = next(iter(LESSONS.values()))
    page._obey({"lesson": lesson.name})
    page._obey(len(lesson.steps))
    asked = page.panel.root.content
    assert asked["kind"] == "question" and not {"right", "reason", "chosen"} & set(asked)
    page._obey("next")
    assert page.panel.root.content is asked, "an unanswered question was left by Next"
    wrong = (lesson.question.answer + 1) % len(lesson.question.choices)
    page._obey({"choose": wrong})
    told = page.panel.root.content
    assert (told["chosen"], told["right"]) == (wrong, lesson.question.answer) and told["reason"]
    page._obey("next")
    assert page.lesson is list(LESSONS.values())[1] and page.number == 0


def test_the_last_lesson_leads_back_to_the_list(page: LearnPage) -> None:
    lesson = list(LESSONS.values())[-1]
    page._obey({"lesson": lesson.name})
    page._obey(len(lesson.steps))
    page._obey({"choose": 0})
    page._obey("next")
    assert page.lesson is None and page.panel.root.content["kind"] == "all"
    assert not page.stage.root.visible and not page.stage.session._starting


@pytest.mark.parametrize(
    "message",
    [None, 7, -1, True, 1.5, "x", [], {}, {"lesson": "none"}, {"lesson": []}, {"choose": 0}, {"choose": "0"}, "next"],
)
def test_what_the_browser_may_send_is_no_failure(page: LearnPage, message: Any) -> None:
    page._obey(message)
    page._obey({"lesson": "thinning"})
    page._obey(message)
    page._obey(len(LESSONS["thinning"].steps))
    page._obey(message)


@pytest.mark.parametrize(
    ("asked", "number", "words"),
    [
        ({"lesson": "thinning", "step": "3"}, 2, ""),
        ({"lesson": "thinning", "step": "8"}, 7, ""),
        ({"lesson": "thinning", "step": "0"}, 0, "steps 1 to 8"),
        ({"lesson": "thinning", "step": "²"}, 0, "steps 1 to 8"),
        ({"lesson": "thinning", "step": "99"}, 7, ""),
        ({"lesson": "nothing"}, 0, "There is no lesson 'nothing'"),
        ({"step": "2"}, 0, ""),
    ],
)
def test_an_address_opens_its_step_or_says_that_there_is_none(
    no_server: Document, asked: dict[str, str], number: int, words: str
) -> None:
    page = LearnPage(True, {"projector": "1"}, asked)
    assert page.number == number
    assert (page.lesson is None) == (asked.get("lesson") not in LESSONS)
    assert words in page.panel.root.content["sentence"]
    assert "theme=dark" in page.address.query and "projector=1" in page.address.query


def test_nothing_runs_before_a_step_asks_for_it_nor_after_the_last(page: LearnPage) -> None:
    session = page.stage.session
    assert not session._starting and not page.stage.runs and page.stage.wanted(None) == set()
    page._key("play")
    assert not session._starting
    page._obey({"lesson": "thinning"})
    assert session._starting
    page._obey("all")
    assert not session._starting and not session.playing


# --- what the pieces show


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 3)])
def test_an_exchange_moves_the_weights_and_not_the_function(pair: tuple[int, int]) -> None:
    moved = exchange.exchanged(exchange.START, *pair)
    assert np.abs(moved - exchange.START).max() > 1
    assert np.abs(exchange.outputs(moved) - exchange.outputs(exchange.START)).max() < 1e-6
    # Incoming weights alone are another function.
    half = exchange.START.copy()
    half[:, 0] = moved[:, 0]
    assert np.abs(exchange.outputs(half) - exchange.outputs(exchange.START)).max() > 0.1


def test_a_unit_whose_sign_is_turned_is_the_same_unit() -> None:
    moved = exchange.turned(exchange.START, 2)
    assert (moved[2] == -exchange.START[2]).all() and (moved[:2] == exchange.START[:2]).all()
    assert np.abs(exchange.outputs(moved) - exchange.outputs(exchange.START)).max() < 1e-6


def test_exchanges_are_drawn_where_the_units_stand(no_server: Document) -> None:
    piece = exchange.ExchangePiece(False)
    piece.exchange(0, 1)
    piece.turn(0)
    piece.exchange(0, 2)
    frame = piece.frame()
    assert frame["graph"]["order"] == [1, 2, 0, 3]
    assert np.abs(frame["function"]["y"] - exchange.outputs(exchange.START)).max() < 1e-6
    assert np.allclose(piece.units[2], -exchange.START[0])
    assert len(frame["weight_plane"]["x"]) == 4 and frame["weight_plane"]["distance"] > 1
    piece.begin()
    assert (piece.units == exchange.START).all() and piece.frame()["weight_plane"]["distance"] == 0


@pytest.mark.parametrize(("dimension", "width"), [(1, 0.9), (2, 1.3), (5, 1.3), (10, 1.2), (10, 1.5)])
def test_measured_weights_collapse_as_the_closed_form_says(dimension: int, width: float) -> None:
    weights = collapse.weights(dimension, width)
    assert weights.shape == (collapse.DRAWS,) and np.isclose(weights.sum(), 1)
    # The ESS is N / mean of squares of weights of mean 1; its error is that of this mean, within four of which it lies.
    squares = (weights * collapse.DRAWS) ** 2
    measured, error = squares.mean(), squares.std() / np.sqrt(collapse.DRAWS)
    known = collapse.DRAWS / collapse.expected(dimension, width)
    assert abs(measured - known) < 4 * error
    assert np.isclose(collapse.measured(width)[dimension - 1], 1 / (weights**2).sum())


def test_the_closed_form_is_the_second_moment_of_the_weights() -> None:
    x = np.linspace(-40, 40, 400_001)
    target, proposal = np.exp(-(x**2) / 2), np.exp(-(x**2) / (2 * 1.3**2)) / 1.3
    second = np.trapezoid(target**2 / proposal, x) / np.sqrt(2 * np.pi)
    assert np.isclose(collapse.expected(1, 1.3, draws=1), 1 / second, rtol=1e-9)
    assert np.isclose(collapse.expected(20, 1.3, draws=1), second**-20.0, rtol=1e-8)


# --- what the lessons show


def made(spec: Any) -> Any:
    """Return what executes a spec, prepared."""
    module, _, name = getattr(spec, "factory", "bnnviz.engine.viewed_run:ViewedRun").partition(":")
    run = getattr(import_module(module), name)(spec)
    run.prepare()
    return run


def begun(name: str) -> list[tuple[int, Any, set[str]]]:
    """Return the steps of a lesson that begin a run: its spec, and what it and those that go on show."""
    found: list[tuple[int, Any, set[str]]] = []
    for number, step in enumerate(LESSONS[name].steps):
        picture = step.picture
        if picture.spec is not None and picture.goes_on and found:
            found[-1][2].update(picture.show)
        elif picture.spec is not None:
            found.append((number, picture.spec, set(picture.show)))
    return found


def on_network(name: str) -> list[pytest.MarkDecorator]:
    """Mark lessons whose runs look for modes of networks first."""
    run = [spec for _, spec, _ in begun(name)]
    slow = any(not isinstance(s, Spec) or s.target_settings.get("data") or s.sampler == "nuts" for s in run)
    return [pytest.mark.slow] if slow else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=on_network(name)) for name in LESSONS])
def test_a_run_feeds_every_part_that_its_steps_show(name: str) -> None:
    for number, spec, parts in begun(name):
        scene = made(spec).scene()
        assert parts <= {*scene["emits"], "table"}, f"step {number + 1}"


# --- chains at copies of a network


def test_the_gradient_of_the_small_posterior_is_that_of_its_potential() -> None:
    units = np.random.default_rng(0).normal(size=(small_posterior.CHAINS, 4, 3))
    known, step = small_posterior.gradient(units), 1e-5
    for i, j in np.ndindex(4, 3):
        moved = np.zeros_like(units)
        moved[:, i, j] = step
        slope = (small_posterior.potential(units + moved) - small_posterior.potential(units - moved)) / (2 * step)
        assert np.allclose(slope, known[:, i, j], rtol=1e-6, atol=1e-5)


def test_chains_begin_at_copies_of_one_network() -> None:
    begun_at = small_posterior.copies()
    for units in begun_at[1:]:
        assert np.abs(units - begun_at[0]).max() > 1
        assert np.abs(exchange.outputs(units) - exchange.outputs(begun_at[0])).max() < 1e-6
    draws = small_posterior.flat(begun_at)
    ordered = diagnostics.canonical(draws, small_posterior.LAYERS, reference=draws[0])
    assert np.allclose(ordered, draws[0])


def test_chains_at_copies_agree_on_functions_and_not_on_a_weight() -> None:
    """What two lessons say: far above 1 raw, nearer in one order, near 1 for the function wherever it is asked for."""
    raw, ordered = copies.agreement(copies.weights()), copies.agreement(copies.ordered_weights())
    values = copies.functions()[:, :, ::10]
    of_functions = [copies.agreement(values[:, :, i]) for i in range(values.shape[2])]
    assert raw > 1.5 and ordered < 1.2 and max(of_functions) < 1.1 and np.median(of_functions) < 1.05
    x = exchange.GRID[::10]
    inside, ends = values[:, :, np.abs(x) <= 1.25].std((0, 1)).mean(), values[:, :, np.abs(x) == 2].std((0, 1))
    assert (ends / inside > 1.5).all() and (ends / inside < 2.8).all(), "about twice as much"

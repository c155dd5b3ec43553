"""Negative numbers have the minus sign of the axes wherever a page writes them, in each language."""

from __future__ import annotations

from typing import Any

import pytest

from bnnviz.views.comparison import leaderboard
from bnnviz_app.components.cards.caption import Caption
from bnnviz_app.components.guidance.narrator import Narrator
from bnnviz_app.learn import languages

CAPTION: dict[str, Any] = {"text": "U fell by -0.172.", "warning": "It is -3 now.", "remedies": []}


@pytest.mark.parametrize("language", languages.names())
def test_the_sentences_over_the_figures_have_it(language: str) -> None:
    caption = Caption(lambda settings: None)
    caption.speak(language)
    caption.update({"caption": CAPTION})
    caption.notice("The step size is -1.")
    said = caption._text.object
    assert said.count("−") == 3
    assert "-0" not in said
    assert "-3" not in said
    assert "-1" not in said


@pytest.mark.parametrize("language", languages.names())
def test_what_is_read_aloud_has_it(language: str) -> None:
    narrator = Narrator()
    narrator.speak(language)
    narrator.update({"caption": CAPTION})
    assert narrator.root.message.count("−") == 2


@pytest.mark.parametrize("language", languages.names())
def test_the_pieces_for_the_hand_have_it(language: str) -> None:
    assert languages.number("-0.50", language) == f"−0{languages.page(language)['decimal']}50"


def test_the_leaderboard_has_it() -> None:
    column = next(each for each in leaderboard.COLUMNS if each.name == "nll")
    assert leaderboard.cell({"nll": -0.172}, column) == "−0.17"

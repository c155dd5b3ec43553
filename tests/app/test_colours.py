"""For everybody: colours that stay apart, and words for those who do not see the figures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from colours import SIGHT, contrast, difference, lab
from example_frames import example_frame, example_scene

from bnnviz.figures.listing import figures_for
from bnnviz.figures.live.view import View
from bnnviz.figures.palette import DARK, LIGHT, Palette

# CIEDE2000 that two colours keep which mean different things in one figure, to every eye of SIGHT. Stated
# before the palette was measured: 1 is just noticed side by side, 10 is told at a glance.
APART = 10.0
CHAINS_APART = 8.0  # eight lines that no legend names need only be told from each other
TOGETHER = {
    "trajectory": ("ink", "orange", "magenta", "purple"),
    "lines of thinning": ("blue", "orange", "red"),
    "marks of thinning": ("grey", "green", "magenta", "ink"),
    "prediction": ("ink", "blue", "orange", "red"),
    "prediction against truth": ("blue", "orange", "red"),
}


def test_the_difference_of_colours_is_ciede2000() -> None:
    """Against pairs 1, 17, 25 and 34 of Sharma, Wu and Dalal (2005), table 1."""
    pairs = [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ]
    for one, other, expected in pairs:
        assert difference(np.array(one), np.array(other)) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_of_one_figure_stay_apart_to_every_eye(palette: Palette, sight: str) -> None:
    for figure, roles in TOGETHER.items():
        for one, other in itertools.combinations(roles, 2):
            apart = difference(lab(getattr(palette, one), sight), lab(getattr(palette, other), sight))
            assert apart >= APART, f"{figure}: {one} and {other}: {apart:.1f}"
    seen = [lab(colour, sight) for colour in palette.chains]
    for (i, one), (j, other) in itertools.combinations(enumerate(seen), 2):
        apart = difference(one, other)
        assert apart >= (APART if j < 4 else CHAINS_APART), f"chains {i} and {j}: {apart:.1f}"


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_stand_out_from_the_card(palette: Palette) -> None:
    for colour in (palette.green, palette.red, palette.grey, *palette.chains):
        assert contrast(colour, palette.surface) >= 3.0


@pytest.mark.parametrize("kind", ["banana", "network1d"])
def test_every_figure_says_in_words_what_it_shows(kind: str) -> None:
    scene = example_scene(kind)
    for figure in figures_for(scene):
        view = View(figure, scene)
        assert view.description.startswith(view.title)
        frame = example_frame(scene, 30)
        view.update(frame)
        statement = view.root.html_attributes["aria-label"]
        assert statement == view.description
        assert "nothing yet" not in statement
        assert any(letter.isdigit() for letter in statement), statement

"""The end of a lesson's film shows what the text beside it says; the bounds are what the words of the text allow."""

from __future__ import annotations

import re

import pytest

from bnnviz_app.learn import films, lessons

NEAR = 0.1  # of the variance that a text gives

#: Of steps: rows of the table, and where the first number of each lies; and how many draws all chains have made.
ENDS = {
    "bounds/4": {"draws": (10_000, 99_999), "Variance of x1; true 1": (0.9, 1.1), "Variance of x2; true 3": (2.7, 3.3)},
    "bounds/3": {"Variance of x1; true 1": (1.7, 2.5), "Variance of x2; true 3": (3 * 2.3, 3 * 4.5)},
    "bounds/6": {"Variances / true (Stein's identity)": (1.5, 4.0)},
    "refreshment/3": {"Variance of x1; true 1": (2.54 - NEAR, 2.54 + NEAR)},
    "agreement/4": {"Variance of x1; true 26": (0.8, 1.3), "Variances / true (Stein's identity)": (0.8, 1.2)},
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("place", ENDS)
def test_the_end_of_a_film_shows_what_its_text_says(place: str) -> None:
    name, number = place.split("/")
    filmed = films.take(lessons.load()[name].steps[int(number) - 1].picture, frames=3)
    rows = {
        label: float(re.match(r"[\d.]+", text).group())
        for label, text, _ in filmed.frames[-1]["table"]["rows"]
        if text[0].isdigit()
    }
    status = filmed.frames[-1]["status"]
    rows["draws"] = status["draws"] * status["chains"]
    found = {label: rows.get(label) for label in ENDS[place]}
    assert all(low <= (found[label] or -1) <= high for label, (low, high) in ENDS[place].items()), found

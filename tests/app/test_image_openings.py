"""What the page of images opens on has draws of every sampler, on a student's page too."""

from __future__ import annotations

import time

import pytest

from bnnviz.engine.race.image_race import ImageRace
from bnnviz.specs.race import ImageRaceSpec
from bnnviz_app.access import roles
from bnnviz_app.pages.uncertainty import UncertaintyPage


def of_the_page(monkeypatch: pytest.MonkeyPatch, role: roles.Role) -> ImageRaceSpec:
    """Return what the page opens on for somebody."""
    monkeypatch.setattr(roles, "present", lambda: role)
    return UncertaintyPage.opening()


def test_a_student_of_a_class_may_run_them(monkeypatch: pytest.MonkeyPatch) -> None:
    roles.STUDENT.check(of_the_page(monkeypatch, roles.STUDENT))
    assert of_the_page(monkeypatch, roles.OWNER).entries[0].target_settings["network"] == "lenet5"


def fewest_draws(spec: ImageRaceSpec, seconds: float) -> int:
    """Return the fewest draws that a sampler has when its budget is spent; MAP has its point, and no more."""
    race, end = ImageRace(spec), time.process_time() + seconds
    while race.phase != "done":
        race.advance(0.5)
        assert time.process_time() < end, race.phase
    draws = {row["sampler"]: row["draws"] for row in race.frame(["table"])["table"]["rows"]}
    assert draws.pop("map") == 1
    return min(draws.values())


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_sampler_of_the_page_has_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fewest_draws(of_the_page(monkeypatch, roles.OWNER), 900) >= 5

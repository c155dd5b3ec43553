"""The runs that pages open on: shipped starting points of the Lab, and recorded frames of the other pages."""

from __future__ import annotations

import pytest

from bnnviz.engine.race.image_race import ImageRace
from bnnviz.engine.run.start_points import unpacked
from bnnviz_app import address, opening_frames
from bnnviz_app.access import roles
from bnnviz_app.pages.lab import _START, FIRST_DRAWS, LabPage
from bnnviz_app.pages.population import PopulationPage
from bnnviz_app.pages.race import RacePage
from bnnviz_app.pages.uncertainty import UncertaintyPage
from bnnviz_app.pages.wells import DoubleWellPage
from tests.driven import finished


def test_the_lab_opens_on_points_that_a_run_can_start_from() -> None:
    spec = LabPage.opening()
    assert unpacked(_START).shape == (spec.chains, spec.known_dim)


def test_the_lab_has_a_frame_to_show_while_the_workers_start() -> None:
    found = opening_frames.read(LabPage.name, LabPage.opening())
    assert found is not None
    _, frame = found
    assert {"prediction", "envelope", "status", "caption", "table"} <= frame.keys()
    assert 0 < frame["status"]["draws"] < FIRST_DRAWS  # otherwise the run would leave full speed before it begins


@pytest.mark.parametrize("page", [DoubleWellPage, PopulationPage, RacePage, UncertaintyPage])
def test_a_page_opens_on_a_recorded_run_of_its_spec(page: type) -> None:
    found = opening_frames.read(page.name, page.opening())
    assert found is not None
    scene, frame = found
    assert set(scene["emits"]) - {"timeline"} <= frame.keys() | {"density", "history"}


def test_a_student_may_run_the_opening_images(monkeypatch: pytest.MonkeyPatch) -> None:
    assert UncertaintyPage.opening().entries[0].target_settings["network"] == "lenet5"
    monkeypatch.setattr(roles, "present", lambda: roles.STUDENT)
    roles.STUDENT.check(UncertaintyPage.opening())


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_sampler_of_the_opening_images_has_draws() -> None:
    """Except MAP, which has its point."""
    race = finished(ImageRace(UncertaintyPage.opening()), 0.5)
    draws = {row["sampler"]: row["draws"] for row in race.frame(["table"])["table"]["rows"]}
    assert draws.pop("map") == 1 and min(draws.values()) >= 5


@pytest.mark.parametrize("page", [LabPage, RacePage, PopulationPage, UncertaintyPage])
def test_a_link_to_a_file_of_the_user_opens_other_data_and_says_so(page: type) -> None:
    visit = address.read({"target": [b"network"], "t.data": [b"own"]}, page.opening())
    assert visit.sentences
    entries = getattr(visit.spec, "entries", (visit.spec,))
    assert {entry.target for entry in entries} == {"network"}
    assert "own" not in {entry.target_settings["data"] for entry in entries}

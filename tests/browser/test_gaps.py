"""Small things of the Lab that somebody once missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psutil
import pytest
from test_lab import ON_NETWORK, Lab, alone, cluster, of_run, until

AXES = """() => {
  const path = [...Bokeh.documents[0]._all_models.values()].find((m) => m.type === "Figure" && m.name === "trajectory")
  return [path.below[0].axis_label, path.left[0].axis_label]
}"""


@pytest.fixture
def lab(open_page: Callable[..., Any], dashboard: Any) -> Lab:
    return Lab(open_page(dashboard.url + ON_NETWORK)).ready()


@pytest.mark.slow
def test_a_folded_setting_is_unfolded_to_say_what_is_wrong_with_it(lab: Lab) -> None:
    fold = lab.page.get_by_role("button", name="More settings, each begins a new run")
    fold.click()
    spacing = lab.field("Spacing")
    spacing.fill("often")
    fold.click()  # leaving the field sends it
    alert = lab.page.locator(".error[role=alert]:visible")
    until(
        lambda: "spacing must be a number" in " ".join(alert.all_inner_texts()), 10, "nothing was said of the spacing"
    )
    assert fold.get_attribute("aria-expanded") == "true"


@pytest.mark.slow
def test_the_chosen_plane_is_kept_through_a_reset_and_a_lost_worker(lab: Lab, dashboard: Any) -> None:
    lab.pick("Plane", "coordinates")
    across = lab.page.get_by_role("combobox", name="across")
    across.click()
    across.fill("0.weight[3, 0]")
    lab.page.keyboard.press("Enter")
    chosen = ["0.weight[3, 0]", "0.weight[1, 0]"]
    until(lambda: lab.page.evaluate(AXES) == chosen, 10, f"the plane is not taken: {lab.page.evaluate(AXES)}")
    lab.press("Reset")
    until(lambda: lab.number("step") > 0, 20, "it did not begin anew")
    until(lambda: lab.page.evaluate(AXES) == chosen, 10, "a reset forgot the plane")
    lab.press("Play")
    until(lambda: lab.number("draws") >= 5, 60, "no draws were made")
    lab.page.wait_for_timeout(4000)  # for a checkpoint
    with cluster(dashboard) as backend:
        worker = of_run(backend, alone(backend))["worker"]
    port = int(worker.rsplit(":", 1)[1])
    process = next(p for p in dashboard.workers() if any(c.laddr.port == port for c in p.net_connections("tcp")))
    assert isinstance(process, psutil.Process)
    process.kill()
    until(lambda: "goes on from step" in lab.said(), 40, f"it did not go on: {lab.said()}")
    step = lab.number("step")
    until(lambda: lab.number("step") > step + 50, 20, "it did not advance")
    assert lab.select("Plane").inner_text() == "coordinates"
    assert lab.page.evaluate(AXES) == chosen


@pytest.mark.slow
def test_the_status_line_says_with_how_many_runs_the_worker_is_shared(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    labs = [
        Lab(open_page(dashboard.url + ON_NETWORK, viewport={"width": 1280, "height": 720})).ready() for _ in range(3)
    ]
    shared = [lab.page.locator(".line .shared") for lab in labs]
    assert [text.count() for text in shared] == [0, 0, 0]
    labs[0].press("Play")
    labs[1].press("Play")
    until(lambda: shared[0].all_inner_texts() == ["shared with 1 other run"], 15, "the first does not say it")
    until(lambda: shared[2].all_inner_texts() == ["shared with 2 other runs"], 15, "the third does not say it")
    assert until(lambda: (box := shared[2].bounding_box()) and box["x"] + box["width"], 5, "it is not seen") <= 1280
    labs[0].press("Pause")
    labs[1].press("Pause")
    until(lambda: shared[2].count() == 0, 15, "it is still said")


@pytest.mark.slow
def test_a_live_setting_that_does_not_fit_is_refused_and_the_run_goes_on(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    lab = Lab(open_page(dashboard.url + "?target=banana&sampler=bps")).ready()
    lab.press("Play")
    until(lambda: lab.number("step") > 50, 20, "it did not play")
    lab.pick("Bound", "exact")
    lab.page.get_by_text("needs a Gaussian target").first.wait_for(timeout=10_000)
    step = lab.number("step")
    until(lambda: lab.number("step") > step + 100, 20, "the run did not go on")
    assert "bound=exact" not in lab.page.evaluate("location.search")
    lab.pick("Bound", "interpolated")
    until(lambda: "bound=interpolated" in lab.page.evaluate("location.search"), 10, "the next change was not taken")

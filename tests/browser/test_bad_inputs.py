"""What cannot be typed into the page: each bad input gets a sentence beside its control, and the run goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from bad_page_inputs import FOLDED, GAUSSIAN, NETWORK, Bad
from driving import ON_NETWORK, Lab, until


@pytest.fixture(scope="module")
def dashboard(own_dashboard: Any) -> Any:
    """Give a dashboard that no other tests have seen: the server's log must stay clean."""
    return own_dashboard


@pytest.fixture
def lab(open_page: Callable[..., Any], dashboard: Any) -> Lab:
    return Lab(open_page(dashboard.url + ON_NETWORK)).ready()


def refuse(lab: Lab, bad: Bad) -> None:
    """Type a bad input, read what is said of it, and put it right again."""
    field = lab.field(bad.label)
    right = field.input_value()
    beside = lab.page.locator(".error[role=alert]:visible")
    field.fill(bad.typed)
    lab.page.keyboard.press("Enter")
    until(
        lambda: bad.statement in " ".join(beside.all_inner_texts()),
        20,
        f"{bad}: {beside.all_inner_texts()} {lab.statement()}",
    )
    assert beside.count() == 1
    # It stands directly under its field.
    low, high = field.bounding_box(), beside.bounding_box()
    assert 0 <= high["y"] - (low["y"] + low["height"]) < 40, bad
    field.fill(right)
    lab.page.keyboard.press("Enter")
    until(lambda: beside.count() == 0, 20, f"{bad}: it is still said: {beside.all_inner_texts()}")


def work_through(lab: Lab, dashboard: Any, table: tuple[Bad, ...]) -> None:
    """Refuse every row of a table, and see that the same run plays on and the server's log stays clean."""
    lab.press("Play")
    until(lambda: lab.number("step") > 20, 30, "it does not play")
    run = lab.run()
    for bad in table:
        refuse(lab, bad)
    step = lab.number("step")
    until(lambda: lab.number("step") > step + 20, 20, "the run stands still")
    assert lab.run() == run
    assert lab.button("Pause").is_visible()
    assert "Traceback" not in lab.page.content()
    assert not re.search(r'File "[^"]*/(app|bnnviz)/', dashboard.log.read_text())


@pytest.mark.timeout(600)
def test_bad_inputs_for_a_network_and_its_run(lab: Lab, dashboard: Any) -> None:
    work_through(lab, dashboard, NETWORK)


def test_bad_inputs_for_a_density(lab: Lab, dashboard: Any) -> None:
    lab.pick("Target", "Gaussian")
    until(lambda: lab.page.locator("h2:visible", has_text="Prediction").count() == 0, 20, "the target did not change")
    work_through(lab, dashboard, GAUSSIAN)


def test_bad_inputs_for_folded_settings(lab: Lab, dashboard: Any) -> None:
    lab.settings()
    lab.page.get_by_role("button", name="More settings, each begins a new run").click()
    work_through(lab, dashboard, FOLDED)


def test_the_table_is_long_enough_and_holds_nothing_twice() -> None:
    rows = [*NETWORK, *GAUSSIAN, *FOLDED]
    assert len(rows) >= 15
    assert len({(bad.label, bad.typed) for bad in rows}) == len(rows)

"""What cannot be typed into the page: each bad input gets a sentence beside its control, and the run goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from driving import ON_NETWORK, Lab, until

#: The label of a field, what is typed, and a part of what is reported beside it.
NETWORK = [
    ("Hidden layers", "abc", "hidden"),
    ("Hidden layers", "5-" * 400 + "5", "hidden"),
    ("Chains", "0", "16384"),
    ("Chains", "2.5", "2.5"),
    ("Chains", "", "chains"),
    ("Seed", "NaN", "seed"),
    ("Seed", "<script>alert(1)</script>", "<script>alert(1)</script>"),
    ("Noise sd", "1,5", "1,5"),
]
GAUSSIAN = [
    ("Mean", "zero", "zero"),
    ("Mean", "[1, NaN]", "finite"),
    ("Covariance", "[[1, 2], [2, 1]]", "positive definite"),
]
FOLDED = [("Spacing", "often", "often"), ("Mode steps", "0", "mode_steps")]


@pytest.fixture(scope="module")
def dashboard(own_dashboard: Any) -> Any:
    """Give a dashboard that no other tests have seen: the server's log must stay clean."""
    return own_dashboard


@pytest.fixture
def lab(open_page: Callable[..., Any], dashboard: Any) -> Lab:
    return Lab(open_page(dashboard.url + ON_NETWORK)).ready()


def refuse(lab: Lab, label: str, typed: str, key: str) -> None:
    """Type a bad input, read what is reported, and put it right again."""
    field = lab.field(label)
    right = field.input_value()
    beside = lab.page.locator(".error[role=alert]:visible")
    field.fill(typed)
    lab.page.keyboard.press("Enter")
    until(lambda: key in " ".join(beside.all_inner_texts()), 20, f"{typed}: {beside.all_inner_texts()}")
    assert beside.count() == 1
    # It stands directly under its field.
    low, high = field.bounding_box(), beside.bounding_box()
    assert 0 <= high["y"] - (low["y"] + low["height"]) < 40, typed
    field.fill(right)
    lab.page.keyboard.press("Enter")
    until(lambda: beside.count() == 0, 20, f"{typed}: the message stays")


def work_through(lab: Lab, dashboard: Any, table: list[tuple[str, str, str]]) -> None:
    """Refuse every row of a table, and see that the same run plays on and the server's log stays clean."""
    lab.press("Play")
    until(lambda: lab.number("step") > 20, 30, "it does not play")
    run = lab.run()
    for bad in table:
        refuse(lab, *bad)
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

"""What the settings commit, find, mark and undo, without a browser."""

from __future__ import annotations

from typing import Any

import pytest

from bnnviz.specs import catalogue
from bnnviz.specs.run import Spec
from bnnviz_app.components.controls.controls import CHANGED
from bnnviz_app.components.controls.sidebar import Sidebar


@pytest.fixture
def made() -> tuple[Sidebar, list[Any]]:
    """A sidebar for the bouncy particle sampler on a network, and what it commits."""
    received: list[Any] = []
    spec = Spec(target="network", sampler="bps", draws=None).checked()
    return Sidebar(catalogue.load(), received.append, received.append, spec), received


def settings(sidebar: Sidebar) -> Any:
    return sidebar.sampler.controls


@pytest.mark.parametrize("typed", ["abc", "-3", "1e99"])
def test_what_is_mistyped_and_deleted_commits_nothing(made: tuple[Sidebar, list[Any]], typed: str) -> None:
    sidebar, received = made
    field = settings(sidebar)["batch_size"].widget
    field.value = typed
    field.value = ""
    assert received == []


def test_only_changed_values_are_committed_and_each_can_be_undone(made: tuple[Sidebar, list[Any]]) -> None:
    sidebar, received = made
    control = settings(sidebar)["refresh_rate"]
    rate = control.value
    control.widget.param.update(value=rate + 1)
    control.widget.param.update(value_throttled=rate + 1)
    assert received == [{"refresh_rate": rate + 1}] and control.widget.label.endswith(CHANGED)
    sidebar.undo.clicks += 1
    assert received[1:] == [{"refresh_rate": rate}] and not control.widget.label.endswith(CHANGED)
    sidebar.target.select.value = "banana"
    sidebar.undo.clicks += 1
    assert [spec.target for spec in received[2:]] == ["banana", "network"]
    assert sidebar.target.name == "network" and sidebar.undo.disabled


def test_a_search_shows_the_settings_that_match(made: tuple[Sidebar, list[Any]]) -> None:
    sidebar, _ = made
    sidebar.search.value_input = "mini-batch"
    controls = settings(sidebar)
    assert controls["batch_size"].root.visible and not controls["bound"].root.visible
    sidebar.search.value_input = ""
    assert controls["bound"].root.visible

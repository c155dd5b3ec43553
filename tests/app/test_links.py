"""Whatever a link says, the page opens on a spec that can be run."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from bnnviz.specs import catalogue
from bnnviz_app import address
from bnnviz_app.pages import PAGES
from bnnviz_app.pages.base import RunPage

_LISTING = catalogue.load()
_NASTY = ("", "none", "nan", "inf", "-1", "1e300", "x" * 50, "1;2", "own", "true")


def openings() -> dict[str, Any]:
    """Return what each page opens on."""
    found = {}
    for name, entry in PAGES.items():
        classes = [value for value in vars(importlib.import_module(entry.module)).values() if isinstance(value, type)]
        pages = [each for each in classes if issubclass(each, RunPage) and each.__module__ == entry.module]
        if pages:
            found[name] = pages[0].opening()
    return found


OPENINGS = openings()


def texts(setting: dict[str, Any]) -> list[str]:
    """Return what a link may say of a setting: each choice, each bound, and what does not fit."""
    bounds = [str(bound) for bound in setting["bounds"] or () if bound is not None]
    return [*_NASTY, *map(str, setting["choices"] or ()), *bounds]


def links() -> list[dict[str, str]]:
    """Return links with each setting of each target, sampler and run, and each of its texts."""
    found: list[dict[str, str]] = [{"t.data": "own"}]
    for kind, owner, prefix in (("targets", "target", "t."), ("samplers", "sampler", "s.")):
        for item in _LISTING[kind]:
            for setting in item["settings"]:
                found += [{owner: item["name"], prefix + setting["name"]: text} for text in texts(setting)]
    return found + [{setting["name"]: text} for setting in _LISTING["run"] for text in texts(setting)]


@pytest.mark.parametrize("page", OPENINGS)
def test_any_setting_of_any_link_opens_something(page: str) -> None:
    failures = []
    # A race reads each link once for each entry.
    for link in links()[:: 1 if page == "lab" else 11]:
        try:
            OPENINGS[page].read_query(link)[0].checked()
        except Exception as error:  # noqa: BLE001
            failures.append((link, error))
    assert not failures, failures[:3]


@pytest.mark.parametrize("page", ["lab", "race", "population", "uncertainty"])
def test_a_link_to_a_file_of_somebodys_own_says_so_and_takes_other_data(page: str) -> None:
    visit = address.read({"target": [b"network"], "t.data": [b"own"]}, OPENINGS[page])
    assert any("open it on this page" in sentence for sentence in visit.sentences)
    entries = getattr(visit.spec, "entries", (visit.spec,))
    assert {entry.target for entry in entries} == {"network"} and "own" not in {
        entry.target_settings["data"] for entry in entries
    }

"""Sharing in a real browser: the address holds the run, opening it starts the same one, copying works."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from driving import Lab, until

from bnnviz.specs.run import Spec

BANANA = "?target=banana&sampler=bps&t.bend=2&s.refresh_rate=0.4&s.bound=interpolated&s.alpha=2&chains=3&seed=11"
WORST = [
    "target=<script>alert(1)</script>",
    "target=banana&chains=4096",
    "target=banana&seed=" + "1" * 9000,
    # Panel's own reading of an address would fail on these, before anything is shown.
    "target=banana&a=b?c",
    "target=banana&seed=\u00b2",
]


def address(lab: Lab) -> dict[str, str]:
    """Return the parameters of the address bar but the run, which is for this browser."""
    query = urlsplit(lab.page.evaluate("location.href")).query
    return {name: value for name, value in (part.split("=") for part in query.split("&")) if name != "run"}


def opened(open_page: Callable[..., Any], dashboard: Any, query: str, **options: Any) -> Lab:
    return Lab(open_page(dashboard.url + query, **options)).ready()


def test_how_a_page_looks_and_speaks_holds_for_those_reached_from_it(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    page = open_page(f"{dashboard.url}?page=papers&theme=dark&projector=1")
    page.get_by_role("button", name="Menu", exact=True).click(timeout=60_000)
    page.get_by_role("menuitem", name="Recordings").click()
    page.get_by_text("Runs on disk").wait_for(timeout=60_000)
    query = page.evaluate("location.search")
    assert all(part in query for part in ("page=recordings", "theme=dark", "projector=1"))
    assert page.locator(".mui-dark").count() and "bnnviz-theme" not in page.evaluate("document.cookie")
    # What the button chooses goes along as well, and is kept for addresses that say nothing.
    Lab(page).press("Light or dark")
    page.get_by_role("button", name="Menu", exact=True).click()
    link = page.get_by_role("menuitem", name="Papers")
    until(lambda: "theme=default" in link.get_attribute("href"), 20, "the links have the theme before")
    assert "bnnviz-theme=default" in page.evaluate("document.cookie")


def test_a_link_starts_the_same_run_in_a_new_tab(open_page: Callable[..., Any], dashboard: Any) -> None:
    first = opened(open_page, dashboard, BANANA)
    assert first.select("Target").inner_text() == "Banana"
    assert first.field("Seed").input_value() == "11"
    assert first.select("Bound").inner_text() == "interpolated"
    second = opened(open_page, dashboard, "?" + urlsplit(first.page.url).query)
    assert address(second) == address(first)
    first.page.wait_for_timeout(1500)
    # The same seed, the same first event: what is drawn is the same.
    assert first.statement() == second.statement()
    assert first.figures()["trajectory"] == pytest.approx(second.figures()["trajectory"])


def test_a_changed_setting_changes_the_address_and_a_reload_restores_it(
    open_page: Callable[..., Any], dashboard: Any
) -> None:
    lab = opened(open_page, dashboard, BANANA)
    entries = lab.page.evaluate("history.length")
    lab.field("Refresh rate").focus()
    lab.page.keyboard.press("End")
    until(lambda: address(lab).get("s.refresh_rate") == "20", 5, f"a live setting: {lab.page.url}")
    lab.field("Seed").fill("12")
    lab.page.keyboard.press("Enter")
    until(lambda: address(lab).get("seed") == "12", 5, f"a setting of the run: {lab.page.url}")
    lab.pick("Sampler", "Boomerang")
    until(lambda: address(lab).get("sampler") == "boomerang", 5, f"another sampler: {lab.page.url}")
    assert lab.page.evaluate("history.length") == entries
    before = address(lab)
    lab.page.reload()
    lab.ready()
    assert address(lab) == before
    assert lab.field("Seed").input_value() == "12"


@pytest.mark.parametrize("query", WORST, ids=lambda query: query[:40])
def test_a_bad_link_gets_a_sentence_and_a_page_that_works(
    open_page: Callable[..., Any], dashboard: Any, query: str
) -> None:
    sentence = Spec(draws=None).read_query(query)[1][0]
    lab = opened(open_page, dashboard, "?" + query)
    until(lambda: sentence[:60] in lab.statement(), 15, f"not said: {lab.statement()}")
    lab.press("Play")
    until(lambda: lab.number("step") > 20, 20, "the page does not play")
    assert "Traceback" not in lab.page.content()


def test_a_device_that_is_not_there_is_stated(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(dashboard.url + BANANA + "&device=cuda:77"))
    lab.page.locator(".statement").wait_for()
    until(lambda: "There is no device 'cuda:77'" in lab.statement(), 30, "nothing was said")
    lab.pick("Device", "auto")
    lab.ready()


def test_link_script_and_command_are_copied(open_page: Callable[..., Any], dashboard: Any, tmp_path: Path) -> None:
    lab = opened(open_page, dashboard, BANANA, permissions=["clipboard-read", "clipboard-write"])
    lab.press("Share")
    lab.button("Copy link").wait_for()
    lab.page.wait_for_timeout(400)
    texts = {}
    for label, name in (("Copy link", "link"), ("Copy as Python", "python"), ("Copy as command", "command")):
        lab.press(label)
        texts[name] = until(lambda: lab.page.evaluate("navigator.clipboard.readText()"), 5, "nothing was copied")
        assert lab.page.locator(f"textarea.{name}").input_value() == texts[name]
    assert texts["link"] == lab.page.evaluate("location.href").partition("&run=")[0]
    assert texts["command"].startswith("bnnviz sample --target banana")
    spec = Spec(draws=None).read_query(urlsplit(texts["link"]).query)[0]
    assert texts["command"] == spec.as_command()
    (tmp_path / "again.py").write_text(re.sub(r"draws=\d+", "draws=20", texts["python"]))
    done = subprocess.run([sys.executable, tmp_path / "again.py"], capture_output=True, text=True, timeout=100)
    assert "3x20x2" in done.stdout, done.stderr


def test_without_a_clipboard_the_old_way_copies(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = opened(open_page, dashboard, BANANA)
    lab.page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')) }")
    lab.press("Share")
    lab.press("Copy as command")
    until(lambda: lab.page.get_by_text("Copied.", exact=True).is_visible(), 5, "it was not copied")

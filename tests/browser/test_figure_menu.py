"""A figure's own menu: on the whole screen, as a file, and alone in another page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from driving import Lab
from PIL import Image

FOCUSED = "(el) => el === el.getRootNode().activeElement"
BANANA = "?target=banana&sampler=bps&seed=11"


def opened(open_page: Callable[..., Any], dashboard: Any, query: str) -> Lab:
    return Lab(open_page(dashboard.url + query)).ready()


def menu(lab: Lab, item: str = "") -> Any:
    """Open the trajectory's menu, and return one of its items."""
    lab.page.locator("button[data-figure=trajectory]").click()
    return lab.page.get_by_role("menuitem", name=item) if item else lab.page.get_by_role("menu")


def saved(lab: Lab, item: str, to: Path) -> str:
    with lab.page.expect_download() as download:
        menu(lab, item).click()
    download.value.save_as(to)
    return download.value.suggested_filename


def test_a_figure_is_saved_and_shown_alone(open_page: Callable[..., Any], dashboard: Any, tmp_path: Path) -> None:
    lab = opened(open_page, dashboard, BANANA)
    assert saved(lab, "Save as SVG", tmp_path / "figure.svg") == "trajectory.svg"
    drawing = ElementTree.parse(tmp_path / "figure.svg").getroot()
    # Axes by Bokeh, and the density's contours by the view.
    assert "x1" in {el.text for el in drawing.iter()}
    assert sum(el.tag.endswith("path") for el in drawing.iter()) > 10
    assert saved(lab, "Save as PNG", tmp_path / "figure.png") == "trajectory.png"
    with Image.open(tmp_path / "figure.png") as picture:
        assert min(picture.size) > 200 and len(picture.convert("RGB").getcolors(1 << 24)) > 20


def test_the_menu_is_used_by_keys(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = opened(open_page, dashboard, BANANA)
    steps = lab.number("step")
    button = lab.page.locator("button[data-figure=trajectory]")
    button.focus()
    lab.page.keyboard.press("Enter")
    assert lab.page.get_by_role("menuitem").first.evaluate(FOCUSED)
    lab.page.keyboard.press("ArrowUp")
    assert lab.page.get_by_role("menuitem").last.evaluate(FOCUSED)
    lab.page.keyboard.press("Escape")
    assert lab.page.get_by_role("menu").count() == 0
    assert button.evaluate(FOCUSED)
    lab.page.keyboard.press("Enter")
    lab.page.keyboard.press("Enter")
    lab.page.wait_for_function("document.fullscreenElement !== null")
    lab.page.evaluate("document.exitFullscreen()")
    assert lab.number("step") == steps

"""The Lab for everybody: axe finds nothing, keys do all of it, the latest event is told, stillness is kept."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from colours import contrast
from PIL import Image
from test_lab import FIGURES, ON_NETWORK, Lab, at_length, until

from bnnviz_app import BACKGROUND

THEMES = ["default", at_length("dark")]

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
RUN_AXE = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
# What has the focus, in whichever shadow it lies.
FOCUS = """() => {
  let at = document.activeElement
  while (at.shadowRoot?.activeElement) { at = at.shadowRoot.activeElement }
  const {outlineStyle, outlineColor} = getComputedStyle(at), box = at.getBoundingClientRect()
  const thumb = at.closest(".MuiSlider-thumb, .MuiSwitch-switchBase"), frame = at.closest(".MuiInputBase-root")
  const shown = getComputedStyle(thumb ?? frame?.querySelector("fieldset") ?? at)
  return {
    tag: at.tagName, role: at.getAttribute("role"), said: at.getAttribute("aria-description") ?? "",
    text: at.getAttribute("aria-label") || at.labels?.[0]?.innerText || at.innerText?.trim() || "",
    top: at === document.body,
    line: frame && !thumb ? [shown.borderTopStyle, shown.borderTopColor, shown.borderTopWidth]
                          : [shown.outlineStyle, shown.outlineColor, shown.outlineWidth],
  }
}"""
# How long anything still moves by itself: the longest animation or transition in any shadow, in seconds.
LONGEST_MOTION = """() => {
  let longest = 0
  const look = (root) => {
    for (const el of root.querySelectorAll("*")) {
      const {transitionDuration, animationDuration, animationName} = getComputedStyle(el)
      const seconds = (words) => Math.max(...words.split(",").map(parseFloat))
      const animated = animationName === "none" ? 0 : seconds(animationDuration)
      longest = Math.max(longest, seconds(transitionDuration), animated)
      if (el.shadowRoot) { look(el.shadowRoot) }
    }
  }
  look(document)
  return longest
}"""
COUNT_FRAMES = """() => {
  const sent = [...Bokeh.documents[0]._all_models.values()].find((m) => m.type === "ColumnDataSource" && "at" in m.data)
  window.frames_came = 0
  sent.properties.data.change.connect(() => { window.frames_came += 1 })
}"""


def faults(page: Any) -> list[str]:
    """Return what axe finds wrong on a page, of any impact."""
    page.evaluate(AXE)
    return [
        f"{rule['impact']} {rule['id']}: {node['html'][:160]}"
        for rule in page.evaluate(RUN_AXE)
        for node in rule["nodes"]
        # Menus and explanations lie in a layer over the page, in none of its regions; each belongs to its control.
        if not (rule["id"] == "region" and "data-pmui-layer" in node["html"])
    ]


@pytest.fixture
def lab(open_page: Callable[..., Any], dashboard: Any) -> Lab:
    return Lab(open_page(dashboard.url + ON_NETWORK)).ready()


def focus_of(page: Any) -> dict[str, Any]:
    return page.evaluate(FOCUS)


def hex_of(colour: str) -> str:
    """Return rgb(...) as #rrggbb."""
    return "#" + "".join(f"{int(value):02x}" for value in re.findall(r"\d+", colour)[:3])


# ---- axe ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing(
    open_page: Callable[..., Any], dashboard: Any, screenshot: Callable[..., Path], theme: str
) -> None:
    lab = Lab(open_page(f"{dashboard.url}{ON_NETWORK}&theme={theme}")).ready()
    lab.page.wait_for_timeout(1000)
    assert faults(lab.page) == []
    lab.press("Play")
    until(lambda: lab.number("draws") > 5, 60, "it made no draws")
    assert faults(lab.page) == []
    lab.press("Pause")
    for fold in lab.page.get_by_text("More settings").all():
        fold.click()
    lab.field("Seed").fill("many")
    lab.page.keyboard.press("Enter")
    until(lambda: lab.page.locator(".error[role=alert]:visible").count(), 10, "nothing was said of the seed")
    lab.page.wait_for_timeout(500)
    assert faults(lab.page) == []
    screenshot(lab.page, f"access-{theme}-unfolded")
    lab.select("Target").click()
    lab.page.wait_for_timeout(500)
    assert faults(lab.page) == []
    lab.page.keyboard.press("Escape")
    lab.page.wait_for_timeout(400)
    lab.page.get_by_role("button", name="Keys and marks").click()
    lab.page.wait_for_timeout(700)
    assert faults(lab.page) == []
    screenshot(lab.page, f"access-{theme}-keys")


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_what_axe_cannot_decide_has_contrast_too(open_page: Callable[..., Any], dashboard: Any, theme: str) -> None:
    """The frame of a field lies over its text, so axe does not tell its background: it is the card's own surface."""
    lab = Lab(open_page(f"{dashboard.url}{ON_NETWORK}&theme={theme}")).ready()
    pairs = lab.page.evaluate(
        """() => {
          const colours = []
          const look = (root) => {
            for (const el of root.querySelectorAll("*")) {
              if (el.matches(".MuiInputBase-input, .MuiFormLabel-root") && el.checkVisibility()) {
                const paper = el.closest(".MuiPaper-root") ?? root.host.closest(".MuiPaper-root") ?? document.body
                colours.push([getComputedStyle(el).color, getComputedStyle(paper).backgroundColor])
              }
              if (el.shadowRoot) { look(el.shadowRoot) }
            }
          }
          look(document)
          return colours
        }"""
    )
    surfaces = {"default": "#ffffff", "dark": "#1b2530"}
    assert len(pairs) > 15
    assert {hex_of(ink) for ink, _ in pairs if contrast(hex_of(ink), surfaces[theme]) < 4.5} == set()


# ---- keys ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_tab_comes_to_every_control_in_order_and_shows_where_it_is(
    open_page: Callable[..., Any], dashboard: Any, theme: str
) -> None:
    lab = Lab(open_page(f"{dashboard.url}{ON_NETWORK}&theme={theme}")).ready()
    seen: list[dict[str, Any]] = []
    while len(seen) < 80:
        lab.page.keyboard.press("Tab")
        at = focus_of(lab.page)
        if at["top"]:
            break
        seen.append(at)
    names = " | ".join(at["text"].replace("\n", " ") for at in seen)
    order = [
        "Keys and marks",
        "Toggle theme",
        "Network on data",
        "Hidden layers",
        "Boomerang",
        "Refresh rate",
        "More settings",
    ]
    order += ["Chains", "Seed", "follow", "Play", "Step proposal", "Step event", "full speed", "Reset"]
    places = [names.find(name) for name in order]
    assert -1 not in places, f"{order[places.index(-1)]} is not among {names}"
    assert places == sorted(places), names
    header = {"default": "#24435d", "dark": "#0f1c28"}[theme]
    paper = {"default": "#ffffff", "dark": "#1b2530"}[theme]
    for i, at in enumerate(seen):
        style, colour, width = at["line"]
        assert style == "solid" and float(width[:-2]) >= 2, at
        around = header if i < names[: names.find("Network on data")].count(" | ") else paper
        assert contrast(hex_of(colour), around) >= 3.0, at
    controls = [at for at in seen if at["text"].startswith(("Hidden layers", "Refresh rate", "Network on data"))]
    assert all(at["said"] for at in controls), "a setting has no description"


@pytest.mark.slow
def test_keys_alone_choose_slide_and_type(lab: Lab) -> None:
    page = lab.page
    lab.select("Target").focus()
    page.keyboard.press("Enter")
    until(lambda: page.get_by_role("option").count() > 1, 5, "enter did not open the select")
    chosen = page.get_by_role("option", selected=True)
    assert chosen.all_inner_texts() == ["Network on data"]
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
        page.wait_for_timeout(150)
    until(lambda: lab.select("Target").inner_text() == "Banana", 5, "the arrow did not choose")
    until(lambda: focus_of(page)["role"] == "combobox", 5, "the focus did not come back")
    before = lab.field("Refresh rate").input_value()
    lab.field("Refresh rate").focus()
    step = lab.number("step")
    page.keyboard.press("ArrowRight")
    until(lambda: lab.field("Refresh rate").input_value() != before, 5, "the arrow did not slide")
    assert lab.number("step") <= step + 1
    follow = page.get_by_role("switch", name="follow")
    follow.focus()
    page.keyboard.press("Space")
    until(lambda: not follow.is_checked(), 5, "space did not switch")
    assert lab.button("Play").is_visible()


@pytest.mark.slow
def test_space_after_a_choice_plays_and_on_a_select_only_opens_it(lab: Lab) -> None:
    page = lab.page
    lab.pick("Sampler", "NUTS")
    until(lambda: lab.select("Sampler").inner_text() == "NUTS", 20, "the sampler was not chosen")
    until(lambda: focus_of(page)["role"] != "combobox", 20, "the select keeps the keys")
    page.keyboard.press("Space")
    until(lambda: lab.button("Pause").is_visible(), 20, "space did not play")
    lab.select("Sampler").focus()
    page.keyboard.press("Space")
    until(lambda: page.get_by_role("option").count() > 1, 20, "space did not open the select")
    page.keyboard.press("Escape")
    until(lambda: page.get_by_role("option").count() == 0, 20, "escape did not close the list")
    assert lab.select("Sampler").inner_text() == "NUTS"
    assert lab.button("Pause").is_visible()


@pytest.mark.slow
def test_space_presses_the_button_that_the_keyboard_has_come_to_and_plays_elsewhere(lab: Lab) -> None:
    page = lab.page
    lab.button("Step proposal").focus()
    for _ in range(2):
        step = lab.number("step")
        page.keyboard.press("Space")
        until(lambda step=step: lab.number("step") == step + 1, 5, "space did not press the button")
    assert lab.button("Play").is_visible()
    # A click leaves the focus where nobody sees it.
    step = lab.number("step")
    lab.press("Step proposal")
    until(lambda: lab.number("step") == step + 1, 5, "the click did not step")
    page.keyboard.press("Space")
    until(lambda: lab.button("Pause").is_visible(), 5, "space did not play")
    page.keyboard.press("Space")
    until(lambda: lab.button("Play").is_visible(), 5, "space did not pause")


@pytest.mark.slow
def test_the_explanation_of_a_setting_comes_with_the_focus_and_goes_with_escape(lab: Lab) -> None:
    tips = lab.page.locator(".MuiTooltip-tooltip:visible")
    lab.select("Target").focus()
    lab.page.keyboard.press("Tab")
    until(lambda: "The data set." in tips.all_inner_texts(), 5, "nothing was explained")
    lab.page.keyboard.press("Escape")
    until(lambda: tips.count() == 0, 5, "the explanation stayed")


@pytest.mark.slow
def test_the_focus_stays_in_the_dialog_and_no_key_acts_behind_it(lab: Lab) -> None:
    page = lab.page
    step = lab.number("step")
    page.get_by_role("button", name="Keys and marks").focus()
    page.keyboard.press("Space")
    until(lambda: page.get_by_role("dialog").is_visible(), 5, "the dialog did not open")
    page.wait_for_timeout(400)
    for keys in ("Tab", "Tab", "Shift+Tab", "ArrowRight", "e"):
        page.keyboard.press(keys)
        assert focus_of(page)["text"] == "close" or not keys.endswith("Tab")
    assert lab.number("step") == step
    page.keyboard.press("Escape")
    until(lambda: not page.get_by_role("dialog").count(), 5, "escape did not close")


# ---- words --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_latest_event_is_told_at_once_after_a_step_and_now_and_then_while_playing(lab: Lab) -> None:
    told = lab.page.locator(".narration[aria-live=polite]")
    before = told.inner_text()
    lab.press("Step event")
    until(lambda: told.inner_text() != before and told.inner_text().startswith("Event "), 5, "the event was not told")
    until(lambda: f"Step {lab.number('step'):,.0f}, " in told.inner_text(), 5, "the step was not told")
    assert lab.said()[:30] in told.inner_text()
    told.evaluate(
        """(el) => {
          window.told = []
          new MutationObserver(() => window.told.push(performance.now())).observe(el, {childList: true})
        }"""
    )
    lab.press("Play")
    lab.page.wait_for_timeout(10_000)
    moments = lab.page.evaluate("window.told")
    assert 2 <= len(moments) <= 5
    # The first may follow the step at once.
    gaps = [later - earlier for earlier, later in zip(moments[1:], moments[2:], strict=False)]
    assert all(gap > 2500 for gap in gaps), gaps
    assert "draws" in told.inner_text()


@pytest.mark.slow
def test_every_figure_has_a_name_that_says_what_is_shown(lab: Lab) -> None:
    figures = lab.page.get_by_role("figure")
    until(lambda: figures.count() == len(lab.page.evaluate(FIGURES)), 10, "a figure has no role")
    lab.press("Play")
    until(lambda: lab.number("draws") > 5, 60, "it made no draws")
    lab.press("Pause")
    lab.page.wait_for_timeout(1500)
    names = [figure.get_attribute("aria-label") for figure in figures.all()]
    assert any(re.match(r"Trajectory, .*: the path of one chain with its last \d+ events", name) for name in names)
    assert all("nothing yet" not in name for name in names), names


# ---- stillness ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_reduced_motion_is_kept(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(dashboard.url + ON_NETWORK, reduced_motion="reduce")).ready()
    assert lab.page.evaluate(LONGEST_MOTION) == 0
    lab.page.evaluate(COUNT_FRAMES)
    lab.press("Play")
    until(lambda: lab.number("step") > 20, 20, "it did not play")
    before, begin = lab.page.evaluate("frames_came"), time.monotonic()
    lab.page.wait_for_timeout(6000)
    rate = (lab.page.evaluate("frames_came") - before) / (time.monotonic() - begin)
    assert 1 < rate <= 2.2


@pytest.mark.slow
def test_others_have_motion(lab: Lab) -> None:
    assert lab.page.evaluate(LONGEST_MOTION) > 0.1


@pytest.mark.parametrize("theme", ["dark", "default"])
def test_a_page_that_is_coming_has_the_colour_of_its_theme(
    theme: str, open_page: Callable[..., Any], dashboard: Any
) -> None:
    # Without scripts nothing paints over it.
    page = open_page(f"{dashboard.url}?page=learn&theme={theme}", java_script_enabled=False)
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        found = picture.convert("RGB").getpixel((5, 5))
    assert "#" + bytes(found).hex() == BACKGROUND[theme == "dark"]

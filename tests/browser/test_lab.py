"""The Lab in a real browser: it opens, plays, steps, obeys, and leaves nothing behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from driving import ON_NETWORK, OVERFLOW, Lab, until

SIZES = [(1400, 900), (1280, 720)]
PLOTS = {"trajectory", "thinning", "prediction", "trace", "acf", "journey"}
SEEN = PLOTS - {"trajectory"}  # it is behind the prediction

# How many canvases are drawn on in each figure, besides Bokeh's own.
PENS = """() => Object.fromEntries(
  [...Bokeh.documents[0]._all_models.values()].filter((model) => model.type === "Figure").map((figure) => {
    const home = Bokeh.index.get_one(figure).canvas_view.shadow_el
    return [figure.name, home.querySelectorAll("canvas[data-box]").length]
  })
)"""
# By how many pixels each figure that is seen was laid out for another size than it has, or drawn over its card's edge.
MISLAID = """() => Object.fromEntries(
  [...Bokeh.documents[0]._all_models.values()].filter((model) => model.type === "Figure").flatMap((figure) => {
    const view = Bokeh.index.get_one(figure)
    if (!view.el.checkVisibility()) { return [] }
    const is = view.el.getBoundingClientRect(), frame = view.frame.bbox
    const other = [Math.abs(view.bbox.width - is.width), Math.abs(view.bbox.height - is.height)]
    return [[figure.name, Math.max(...other, frame.right - is.width, frame.bottom - is.height)]]
  })
)"""


@pytest.fixture
def lab(open_page: Callable[..., Any], dashboard: Any) -> Lab:
    """Open the Lab on a network, with its diagnostics."""
    return Lab(open_page(dashboard.url + ON_NETWORK)).ready().diagnose()


# ---- opening ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_opens_on_one_stage_without_scrolling(
    open_page: Callable[..., Any], dashboard: Any, size: tuple[int, int]
) -> None:
    lab = Lab(open_page(dashboard.url + ON_NETWORK, viewport={"width": size[0], "height": size[1]})).ready()
    assert set(lab.diagnose().figures()) == PLOTS
    lab.press("Play")
    until(lambda: lab.number("step") > 50, 20, "it did not play")
    assert lab.page.evaluate(OVERFLOW) == [0, 0]
    # The line is written anew with every frame, and one that has just gone has no box.
    status = until(lambda: lab.page.locator(".line").bounding_box(), 5, "there is no status line")
    assert status["y"] + status["height"] <= size[1]
    assert "?page=lab" in lab.page.url


def test_figures_are_laid_out_for_the_room_they_have(lab: Lab) -> None:
    def laid_out() -> bool:
        off = lab.page.evaluate(MISLAID)
        return off.keys() >= SEEN and max(off.values()) < 1

    widths = "() => Math.round(document.documentElement.clientWidth)"
    until(laid_out, 5, "the page that has opened is laid out wrongly")
    for change in (
        lambda: lab.settings(),
        lambda: lab.page.set_viewport_size({"width": 1280, "height": 720}),
        lambda: lab.page.get_by_text("More settings, each begins a new run").click(),
        lambda: lab.settings(False),
        lambda: lab.press("Projector mode"),
        lambda: lab.press("Leave projector mode"),
        lambda: lab.page.set_viewport_size({"width": 1400, "height": 900}),
    ):
        change()
        lab.page.wait_for_timeout(400)
        until(laid_out, 5, f"at {lab.page.evaluate(widths)} pixels: {lab.page.evaluate(MISLAID)}")


# ---- playing ----------------------------------------------------------------------------------------------


def test_plays_every_view_and_pauses_them(lab: Lab) -> None:
    before = lab.figures()
    lab.press("Play")
    until(
        lambda: all(lab.figures()[name] != before[name] for name in SEEN),
        45,
        f"not every view changed: {before} {lab.figures()}",
    )
    until(lambda: "ESS" in " ".join(lab.page.locator("td").all_inner_texts()), 20, "the table has no ESS")
    pens = lab.page.evaluate(PENS)
    assert {pens[name] for name in SEEN} == {1}
    lab.press("Pause")
    lab.page.wait_for_timeout(1800)  # what was under way, and the slow parts of the last frame
    still, step = lab.figures(), lab.number("step")
    lab.page.wait_for_timeout(1200)
    assert lab.figures() == still
    assert lab.number("step") == step
    assert lab.button("Play").is_visible()


def test_step_event_ends_with_an_event(lab: Lab) -> None:
    for _ in range(2):
        step = lab.number("step")
        lab.press("Next event")
        until(lambda step=step: lab.number("step") > step, 10, "the event did not come")
        until(lambda: re.match(r"Event \d+", lab.statement()), 5, f"no event: {lab.statement()}")


def test_keys_play_and_step_but_not_while_typing(lab: Lab) -> None:
    step = lab.number("step")
    lab.page.keyboard.press("ArrowRight")
    until(lambda: lab.number("step") == step + 1, 5, "the arrow did not step")
    lab.page.keyboard.press("Space")
    until(lambda: lab.button("Pause").is_visible(), 5, "space did not play")
    lab.page.keyboard.press("Space")
    until(lambda: lab.button("Play").is_visible(), 5, "space did not pause")
    lab.page.wait_for_timeout(800)
    step = lab.number("step")
    lab.field("Hidden layers").focus()
    lab.page.keyboard.press("ArrowRight")
    lab.page.keyboard.press("Space")
    lab.page.wait_for_timeout(800)
    assert lab.number("step") == step
    assert lab.button("Play").is_visible()
    lab.page.locator(".statement").click()
    lab.page.keyboard.press("?")
    until(
        lambda: lab.page.get_by_role("heading", name="Keys", exact=True).first.is_visible(),
        5,
        "? did not open the keys",
    )


def test_a_hidden_page_gets_no_frames_and_its_run_goes_on(lab: Lab) -> None:
    hide = """(hidden) => {
      Object.defineProperty(document, "hidden", {value: hidden, configurable: true})
      document.dispatchEvent(new Event("visibilitychange"))
    }"""
    lab.press("Play")
    until(lambda: lab.number("step") > 50, 20, "it did not play")
    lab.page.evaluate(hide, True)
    lab.page.wait_for_timeout(1000)
    figures, step = lab.figures(), lab.number("step")
    lab.page.wait_for_timeout(4000)
    assert lab.figures() == figures
    lab.page.evaluate(hide, False)
    until(lambda: lab.number("step") > step, 5, "no frames came back")
    assert lab.figures() != figures
    assert lab.button("Pause").is_visible()


# ---- changing ---------------------------------------------------------------------------------------------


def test_a_live_setting_takes_effect_in_the_same_run(lab: Lab) -> None:
    lab.pick("Target", "Gaussian")
    until(lambda: "prediction" not in shown(lab), 20, "the prediction is still there")
    lab.press("Play")
    until(lambda: lab.number("step") > 300, 30, "it did not play")
    before = refreshments(lab)
    run = lab.run()
    lab.field("Refresh rate").focus()
    lab.page.keyboard.press("End")
    until(lambda: refreshments(lab) > max(0.75, before), 20, f"{before} to {refreshments(lab)} refreshments")
    assert lab.run() == run


def shown(lab: Lab) -> set[str]:
    """Return the headings of the cards on the stage."""
    headings = lab.page.locator("b:visible").all_inner_texts()
    return {heading.split(",")[0].lower() for heading in headings}


def refreshments(lab: Lab) -> float:
    """Return the share of refreshments among the events of the timeline."""
    return lab.page.evaluate(
        """() => {
          const figure = [...Bokeh.documents[0]._all_models.values()].find((m) => m.name === "journey")
          const marks = bnnviz_pens.get(figure).marks().filter(({kind}) => kind === "points")
          const number = (label) => marks.find((mark) => mark.label === label)?.data.x?.length ?? 0
          return number("refresh") / Math.max(1, number("bounce") + number("refresh") + number("violation"))
        }"""
    )


def test_a_biased_preset_says_so_and_offers_the_remedy(lab: Lab) -> None:
    lab.pick("Target", "Banana")
    lab.pick("Preset", "Wrong: points clipped at zero")
    lab.press("Play")
    remedy = lab.page.get_by_role("button", name="Use the grid bound", exact=True)
    until(remedy.is_visible, 40, "no remedy was offered")
    assert lab.page.locator(".statement .warning").inner_text()
    remedy.click()
    until(lambda: lab.select("Bound").inner_text() == "grid", 10, "the remedy did nothing")


# ---- leaving ----------------------------------------------------------------------------------------------


def test_a_sampler_without_events_shows_what_it_has(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = Lab(open_page(dashboard.url + "?target=banana&sampler=sgld&kernel=eager")).ready()
    assert "moves/s" in lab.diagnose().page.locator(".line").inner_text()
    step = lab.number("step")
    lab.press("Next step")
    until(lambda: lab.number("step") == step + 1, 5, "it made no step")
    until(lambda: re.match(r"Move \d+: U was ", lab.statement()), 5, f"no move: {lab.statement()}")
    lab.press("Play")
    until(lambda: lab.number("draws") > 50, 20, "it did not play")
    lab.press("Pause")
    lab.pick("Sampler", "HMC")
    until(lambda: lab.number("step") < 5, 10, "the other sampler did not begin")
    lab.press("Next step")
    until(lambda: "along the trajectory" in lab.statement(), 5, f"no trajectory: {lab.statement()}")
    lab.pick("Sampler", "Bouncy Particle")
    until(lambda: re.match("Event ", lab.statement()), 10, "events did not come back")

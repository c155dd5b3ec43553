"""Drawing data and picking in a real browser, with mouse, finger and keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from driving import Lab, until

# Few points, so that one more counts; a small network, so that a busy machine keeps up.
CURVE = (
    "?target=network&t.data=toy_c&t.hidden=10&t.prior_sd=2&sampler=boomerang&s.refresh_rate=2&warmup=10"
    "&t.points=-0.4,-0.5;-0.2,0.3;0,0;0.2,0.3;0.4,-0.5"
)
MOONS = "?target=network&t.data=moons&t.hidden=8&sampler=boomerang&warmup=10"

HELP = """
const models = [...Bokeh.documents[0]._all_models.values()]
const figure = (name) => models.find((m) => m.type === "Figure" && m.name === name)
const view = (name) => Bokeh.index.get_one(figure(name))
const sheets = (name) => [...new Set(figure(name).tags[0].tags.map((stroke) => stroke.source))]
const sheet = (name, columns) => sheets(name).find((s) => columns.every((c) => s.tags[0].includes(c)))
const columns = ({data: {packed}, tags: [names]}) => {
  const n = packed.length / names.length
  return Object.fromEntries(names.map((name, i) => [name, [...packed.slice(i * n, (i + 1) * n)]]))
}
"""
# Until the mean at x has moved by so much.
UNTIL_MOVED = (
    """async ([x, least]) => {"""
    + HELP
    + """
  const band = sheet("prediction", ["mean", "lo95"])
  const mean = () => { const c = columns(band); return c.mean[c.x.findIndex((v) => v >= x)] }
  const before = mean()
  return new Promise((resolve, reject) => {
    band.properties.data.change.connect(() => {
      if (Math.abs(mean() - before) > least) { requestAnimationFrame(resolve) }
    })
    setTimeout(() => reject("the band did not move in 15 s"), 15000)
  })
}"""
)


class Drawing(Lab):
    """The Lab with its figures under the hands."""

    def place(self, name: str, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a point of a figure's axes."""
        code = f"""([name, x, y]) => {{{HELP}
          const {{left, top}} = view(name).canvas_view.events_el.getBoundingClientRect(), frame = view(name).frame
          return [left + frame.x_scale.compute(x), top + frame.y_scale.compute(y)]
        }}"""
        return tuple(self.page.evaluate(code, [name, x, y]))

    def read(self, name: str, *needed: str) -> dict[str, list[float]]:
        """Return the columns of the sheet that has these columns."""
        code = f"([name, needed]) => {{{HELP} return columns(sheet(name, needed))}}"
        found = self.page.evaluate(code, [name, list(needed)])
        return {column: [v for v in values if v is not None] for column, values in found.items()}

    def marked(self, name: str) -> int:
        """Return how many picks are marked in the trajectory or the trace."""
        code = f"""(name) => {{{HELP}
          const stroke = figure(name).tags[0].tags.find((s) => s.shape === "diamond")
          return columns(stroke.source).x.length
        }}"""
        return self.page.evaluate(code, name)

    def picked_lines(self) -> int:
        """Return how many picked functions are drawn."""
        code = f"""() => {{{HELP}
          const stroke = figure("prediction").tags[0].tags.find((s) => s.kind === "line" && s.width === 1.6 && s.shown)
          return columns(stroke.source).y.filter(Number.isNaN).length
        }}"""
        return self.page.evaluate(code)

    def points(self) -> list[list[float]]:
        """Return the points that are drawn."""
        held = self.read("prediction", "class")
        return [list(row) for row in zip(held["x"], held["y"], held["class"], strict=True)]

    def drag(self, name: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag from one point of a figure's axes to another."""
        self.page.mouse.move(*self.place(name, *start))
        self.page.mouse.down()
        self.page.mouse.move(*self.place(name, *end), steps=5)
        self.page.mouse.up()

    def click_at(self, x: float, y: float, **options: Any) -> None:
        """Click on a point of the prediction's axes."""
        self.page.mouse.click(*self.place("prediction", x, y), **options)

    def sampling(self) -> Drawing:
        """Play until there are some draws."""
        self.press("Play")
        until(lambda: self.number("draws") > 15, 60, "there were no draws")
        return self

    def address(self) -> str:
        """Return what the address bar says."""
        return self.page.evaluate("location.href")

    def focus(self, name: str) -> None:
        """Give a figure the keys, as Tab does."""
        self.page.evaluate(f"(name) => {{{HELP} view(name).canvas_view.events_el.focus()}}", name)


@pytest.fixture
def draw(open_page: Callable[..., Any], dashboard: Any) -> Callable[..., Drawing]:
    """Return a function that opens the Lab on a link."""

    def draw(query: str = CURVE, **options: Any) -> Drawing:
        return Drawing(open_page(dashboard.url + query, **options)).ready()

    return draw


# ---- drawing ----------------------------------------------------------------------------------------------


def test_points_are_added_moved_deleted_and_taken_back(draw: Callable[..., Drawing]) -> None:
    lab = draw()
    lab.click_at(0.1, 0.5)
    until(lambda: len(lab.points()) == 6, 5, "no point came")
    assert lab.points()[-1][:2] == pytest.approx([0.1, 0.5], abs=0.02)
    lab.drag("prediction", (0.1, 0.5), (0.3, -0.4))
    until(lambda: lab.points()[-1][1] < -0.3, 5, "the point did not move")
    lab.click_at(*lab.points()[-1][:2], button="right")
    until(lambda: len(lab.points()) == 5, 5, "the point stayed")
    lab.press("Undo")
    until(lambda: len(lab.points()) == 6, 5, "undo did nothing")
    lab.press("Clear: no points, the prior alone")
    until(lambda: lab.points() == [], 5, "points stayed")
    lab.press("Undo")
    until(lambda: len(lab.points()) == 6, 5, "undo did nothing")
    assert lab.number("step") < 200  # it has never played


def test_the_band_follows_a_dragged_point(draw: Callable[..., Drawing]) -> None:
    # How soon is measured by `python -m benchmarks live --case drawing`.
    lab = draw().sampling()
    moving = lab.page.evaluate_handle(f"(at) => ({{done: ({UNTIL_MOVED})(at)}})", [0.0, 0.1])
    lab.drag("prediction", (0.0, 0.0), (0.0, 0.45))
    moving.evaluate("async (m) => await m.done")
    until(lambda: lab.number("draws") > 15, 30, "the run did not go on")


def test_a_reloaded_address_has_the_points(draw: Callable[..., Drawing]) -> None:
    lab = draw()
    lab.click_at(0.1, 0.5)
    until(lambda: len(lab.points()) == 6, 5, "no point came")
    until(lambda: lab.address().count(";") == 5, 5, "the address lacks the point")
    again = draw("?" + urlsplit(lab.address()).query)
    assert len(again.points()) == 6
    assert again.points()[-1] == pytest.approx(lab.points()[-1], abs=1e-3)


def test_presets_and_the_datas_own_points(draw: Callable[..., Drawing]) -> None:
    lab = draw()

    def choose(name: str) -> None:
        lab.press("Settings")
        lab.press("Points")
        lab.page.get_by_role("menuitem", name=name, exact=True).click()
        lab.press("Settings")

    choose("sine")
    until(lambda: len(lab.points()) == 21, 5, "the preset did not come")
    choose("the data's own")
    until(lambda: len(lab.points()) == 28, 20, "the data's own points did not come back")
    until(lambda: "points" not in lab.address(), 5, "the address kept the points")


def test_fingers_draw_too(draw: Callable[..., Drawing]) -> None:
    lab = draw(has_touch=True)
    lab.page.touchscreen.tap(*lab.place("prediction", 0.1, 0.5))
    until(lambda: len(lab.points()) == 6, 5, "no point came")


def test_keys_alone_add_move_delete_and_box(draw: Callable[..., Drawing]) -> None:
    lab = draw().sampling()
    lab.press("Pause")
    lab.focus("prediction")
    press = lab.page.keyboard.press
    for _ in range(3):
        press("ArrowUp")
    press("Enter")
    until(lambda: len(lab.points()) == 6, 5, "no point came")
    high = lab.points()[-1][1]
    press("Enter")
    for _ in range(4):
        press("ArrowDown")
    press("Enter")
    until(lambda: lab.points()[-1][1] < high - 0.05, 5, "the point did not move")
    press("Delete")
    until(lambda: len(lab.points()) == 5, 5, "the point stayed")
    press("Control+z")
    until(lambda: len(lab.points()) == 6, 5, "undo did nothing")
    lab.press("Play")
    until(lambda: lab.number("draws") > 15, 60, "there were no draws")
    lab.focus("trajectory")
    for key in ["Alt+ArrowLeft"] + ["ArrowLeft"] * 19 + ["ArrowUp"] * 19 + ["Shift+ArrowRight"] * 39:
        press(key)
    for _ in range(39):
        press("Shift+ArrowDown")
    press("Enter")
    until(lambda: lab.picked_lines() > 0, 20, "the box picked nothing")
    press("Escape")
    until(lambda: lab.picked_lines() == 0, 5, "the picks stayed")


def test_classes_are_drawn_on_a_map(draw: Callable[..., Drawing], screenshot: Callable[..., Any]) -> None:
    lab = draw(MOONS).sampling()
    assert {"prediction", "spread"} <= set(lab.figures())
    before = lab.figures()
    until(lambda: lab.figures()["spread"] != before["spread"], 10, "the spread stands still")
    count = len(lab.points())
    lab.press("add 1")
    until(lambda: lab.button("add 1").get_attribute("aria-pressed") == "true", 5, "the class stays")
    lab.page.wait_for_timeout(300)  # the server takes a widget's news up after a pause that a hand does not notice
    lab.click_at(-1.5, 2.0)
    until(lambda: len(lab.points()) == count + 1, 5, "no point came")
    assert lab.points()[-1][2] == 1
    until(lambda: lab.number("draws") > 5, 30, "the run did not go on")
    screenshot(lab.page, "lab-moons")


# ---- picking ----------------------------------------------------------------------------------------------


def test_an_event_under_the_pointer_shows_its_function(draw: Callable[..., Drawing]) -> None:
    lab = draw().sampling()
    lab.press("Pause")
    lab.page.wait_for_timeout(700)
    marks = lab.read("trajectory", "step_high")
    lab.page.mouse.move(*lab.place("trajectory", marks["x"][-4], marks["y"][-4]))
    until(lambda: lab.picked_lines() == 1, 5, "no function came")
    lab.page.get_by_text(re.compile(r"event [\d,]+: \w+")).first.wait_for()
    lab.page.mouse.move(5, 5)
    until(lambda: lab.picked_lines() == 0, 5, "the function stayed")


def test_boxes_link_functions_and_weights_both_ways(
    draw: Callable[..., Drawing], screenshot: Callable[..., Any]
) -> None:
    lab = draw().sampling()
    until(lambda: lab.number("draws") > 60, 60, "there were few draws")
    lab.press("Pause")
    lab.page.wait_for_timeout(700)
    band = lab.read("prediction", "mean", "lo95")
    column = len(band["x"]) // 2
    x, low, high = band["x"][column], band["mean"][column], band["hi95"][column]
    lab.drag("prediction", (x + 0.05, high + 0.2), (x - 0.05, low))
    until(lambda: lab.marked("trajectory") > 5, 5, "no draw was marked in the trajectory")
    assert lab.marked("trace") == lab.marked("trajectory")
    assert lab.picked_lines() > 0
    lab.page.get_by_text(re.compile(r"\d+ of \d+ draws")).first.wait_for()
    screenshot(lab.page, "lab-picked")
    lab.click_at(x - 0.45, -0.9)
    until(lambda: lab.marked("trajectory") == 0, 5, "the picks stayed")
    assert len(lab.points()) == 5  # the click that takes the box away adds no point
    trace = lab.read("trace", "draw", "chain0")
    lab.drag("trace", (0.5, min(trace["chain0"])), (trace["draw"][-1] / 2, max(trace["chain0"])))
    until(lambda: lab.picked_lines() > 0 and lab.marked("trajectory") > 0, 5, "the trace picked nothing")

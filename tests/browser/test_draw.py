"""Drawing data and picking in a real browser, with mouse, finger and keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from driving import Lab, until

from bnnviz.figures.chain.trajectory import DRAW

# Few points, so that one more counts; a small network, so that a busy machine keeps up.
CURVE = (
    "?target=network&t.data=toy_c&t.hidden=10&t.prior_sd=2&sampler=boomerang&s.refresh_rate=2&warmup=10"
    "&t.points=-0.4,-0.5;-0.2,0.3;0,0;0.2,0.3;0.4,-0.5"
)
MOONS = "?target=network&t.data=moons&t.hidden=8&sampler=boomerang&warmup=10"

#: A sampler without events: prediction and trajectory are visible at the same time.
BESIDE = CURVE.replace("sampler=boomerang&s.refresh_rate=2", "sampler=hmc")

HELP = """
const models = [...Bokeh.documents[0]._all_models.values()]
const figure = (name) => models.find((model) => model.type === "Figure" && model.name === name)
const view = (name) => Bokeh.index.find_one(figure(name))
const marks = (name) => bnnviz_pens.get(figure(name))?.marks() ?? []
const labelled = (name, label) => marks(name).find((mark) => mark.label === label)?.data ?? {x: [], y: []}
"""


class Drawing(Lab):
    """The Lab with its figures under the hands."""

    def look(self, code: str, *arguments: Any) -> Any:
        """Return what JavaScript reads from the figures."""
        return self.page.evaluate(f"(args) => {{{HELP} return ({code})(...args)}}", list(arguments))

    def place(self, name: str, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a point of a figure's axes."""
        code = """(name, x, y) => {
          const {left, top} = view(name).canvas_view.events_el.getBoundingClientRect(), frame = view(name).frame
          return [left + frame.x_scale.compute(x), top + frame.y_scale.compute(y)]
        }"""
        return tuple(self.look(code, name, x, y))

    def labelled(self, name: str, label: str) -> list[list[float]]:
        """Return the points of the first mark of a figure that has a label."""
        code = "(name, label) => { const {x, y} = labelled(name, label); return [...x].map((at, i) => [at, y[i]]) }"
        return self.look(code, name, label)

    def mean_at(self, x: float) -> float:
        """Return the mean of the predictions at an input."""
        return min(self.labelled("prediction", "mean"), key=lambda point: abs(point[0] - x))[1]

    def picked_lines(self) -> int:
        """Return how many picked functions are drawn."""
        return self.look('() => [...labelled("prediction", "picked").y].filter(Number.isNaN).length')

    def marked(self, name: str) -> int:
        """Return how many draws are marked in the trajectory or the trace."""
        return len(self.labelled(name, "picked"))

    def points(self) -> list[list[float]]:
        """Return the points that are drawn, each with its class."""
        code = """() => marks("prediction").filter(({editable, data}) => editable && data.x).flatMap(
          ({data: {x, y}}, of) => [...x].map((at, i) => [i, at, y[i], of]).filter(([, at]) => !Number.isNaN(at)))"""
        return [[x, y, of] for _, x, y, of in sorted(self.look(code))]

    def drag(self, name: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag from one point of a figure's axes to another."""
        self.page.mouse.move(*self.place(name, *start))
        self.page.mouse.down()
        self.page.mouse.move(*self.place(name, *end), steps=5)
        self.page.mouse.up()

    def click_at(self, x: float, y: float, **options: Any) -> None:
        """Click on a point of the prediction's axes."""
        self.page.mouse.click(*self.place("prediction", x, y), **options)

    def sampling(self, draws: int = 15) -> Drawing:
        """Play until there are some draws."""
        self.press("Play")
        until(lambda: self.number("draws") > draws, 90, "there were no draws")
        return self

    def address(self) -> str:
        """Return the address."""
        return self.page.evaluate("location.href")

    def focus(self, name: str) -> None:
        """Give a figure the keys, as Tab does."""
        self.look("(name) => view(name).canvas_view.events_el.focus()", name)


@pytest.fixture
def draw(open_page: Callable[..., Any], dashboard: Any) -> Callable[..., Drawing]:
    """Return a function that opens the Lab on a link."""

    def draw(query: str = CURVE, **options: Any) -> Drawing:
        return Drawing(open_page(dashboard.url + query, **options)).ready()

    return draw


# ---- drawing ----------------------------------------------------------------------------------------------


def test_points_are_added_moved_deleted_and_taken_back(draw: Callable[..., Drawing]) -> None:
    lab = draw()
    lab.page.locator("button[data-figure=prediction]").click()
    lab.click_at(0.2, 0.25)  # closes the menu, and does nothing else
    lab.click_at(0.1, 0.25)
    until(lambda: len(lab.points()) == 6, 5, "no point came")
    assert lab.points()[-1][:2] == pytest.approx([0.1, 0.25], abs=0.02)
    lab.rest()  # the axes follow the data, now that there is no band
    lab.drag("prediction", (0.1, 0.25), (0.3, -0.4))
    until(lambda: lab.points()[-1][1] < -0.3, 5, "the point did not move")
    lab.click_at(*lab.points()[-1][:2], button="right")
    until(lambda: len(lab.points()) == 5, 5, "the point stayed")
    lab.press("Undo")
    until(lambda: len(lab.points()) == 6, 5, "undo did nothing")
    lab.press("Clear: no points, the prior alone")
    until(lambda: lab.points() == [], 5, "points stayed")
    lab.press("Undo")
    until(lambda: len(lab.points()) == 6, 5, "undo did nothing")
    lab.press("Weights")
    lab.press("Prediction")
    until(lambda: len(lab.points()) == 6, 5, "a card that comes back lacks the point")
    assert lab.number("step") < 200  # it has never played


def test_the_band_follows_a_dragged_point(draw: Callable[..., Drawing]) -> None:
    # How soon is measured by `python -m benchmarks live --case drawing`.
    lab = draw().sampling()
    before = lab.mean_at(0.0)
    lab.drag("prediction", (0.0, 0.0), (0.0, 0.25))
    until(lambda: abs(lab.mean_at(0.0) - before) > 0.05, 60, "the band did not move")
    until(lambda: lab.number("draws") > 15, 120, "the run did not go on")


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
    lab.page.touchscreen.tap(*lab.place("prediction", 0.1, 0.25))
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
    lab.rest()
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
    lab.sampling().press("Pause")
    lab.focus("prediction")
    for key in ["ArrowLeft"] * 5 + ["ArrowDown"] * 15 + ["Shift+ArrowRight"] * 10 + ["Shift+ArrowUp"] * 30:
        press(key)
    press("Enter")
    until(lambda: lab.picked_lines() > 0, 20, "the box picked nothing")
    press("Escape")
    until(lambda: lab.picked_lines() == 0, 5, "the picks stayed")


def test_classes_are_drawn_on_a_map(draw: Callable[..., Drawing]) -> None:
    lab = draw(MOONS).sampling()
    lab.press("Spread")
    until(lambda: lab.figures().get("spread"), 20, "there is no spread")
    before = lab.figures()
    until(lambda: lab.figures()["spread"] != before["spread"], 10, "the spread stands still")
    lab.press("Prediction")
    count = len(lab.points())
    lab.press("add 1")
    until(lambda: lab.button("add 1").get_attribute("aria-pressed") == "true", 5, "the class stays")
    lab.page.wait_for_timeout(300)  # the server takes a widget's news up after a pause that a hand does not notice
    lab.click_at(-1.5, 2.0)
    until(lambda: len(lab.points()) == count + 1, 5, "no point came")
    assert lab.points()[-1][2] == 1
    until(lambda: lab.number("draws") > 5, 30, "the run did not go on")


# ---- picking ----------------------------------------------------------------------------------------------


def test_an_event_under_the_pointer_is_named(draw: Callable[..., Drawing]) -> None:
    lab = draw()
    lab.press("Weights")
    lab.sampling().press("Pause")
    lab.rest()
    x, y = lab.labelled("trajectory", "bounce")[-1]
    lab.page.mouse.move(*lab.place("trajectory", x, y))
    lab.page.get_by_text(re.compile(r"event [\d,]+")).first.wait_for(timeout=10_000)
    lab.press("Prediction")
    until(lambda: lab.picked_lines() == 1, 10, "no function came")


def test_boxes_link_functions_and_weights_both_ways(draw: Callable[..., Drawing]) -> None:
    lab = draw(BESIDE).sampling(60)
    lab.press("Pause")
    lab.rest()
    middle = lab.mean_at(0.05)
    lab.drag("prediction", (0.08, middle + 0.2), (0.02, middle - 0.2))
    until(lambda: lab.marked("trajectory") > 5, 10, "no draw was marked in the trajectory")
    assert lab.picked_lines() > 0
    points = len(lab.points())
    lab.click_at(-0.3, 0.25)
    until(lambda: lab.marked("trajectory") == 0, 10, "the picks stayed")
    assert len(lab.points()) == points  # the click that takes the box away adds no point
    draws = lab.labelled("trajectory", DRAW.label)
    xs, ys = zip(*draws, strict=True)
    lab.drag("trajectory", (min(xs), min(ys)), (max(xs), max(ys)))
    until(lambda: lab.picked_lines() > 0, 10, "a box in the trajectory picked no functions")

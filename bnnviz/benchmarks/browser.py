"""A real browser on the dashboard, and a probe in it that notes what is painted when."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bnnviz import optional
from bnnviz.benchmarks.processes import end
from bnnviz.errors import BnnvizError
from bnnviz.replays.chromium import BROWSER_FLAGS, REMEDY, find_chromium

VIEWPORT = {"width": 1400, "height": 900}
_TITLE_BAR = 87  # pixels of a window's height that are not the page's
PATIENCE_MS = 60_000
QUIET_S = 1.0  # a page that has painted nothing for so long has come to rest

# Every figure stands where it is to stand, can be seen there, and nothing lies over the first one. Bokeh has figures
# finished seconds before that: they are not in the page yet, or under its loader.
_FIGURES_SEEN = """() => {
  const at = (x, y) => {
    let found = document.elementFromPoint(x, y), inner = found
    while ((inner = found?.shadowRoot?.elementFromPoint(x, y)) && inner !== found) { found = inner }
    return found
  }
  const within = (node, outer) => {
    for (; node; node = node.parentNode ?? node.host) { if (node === outer) { return true } }
    return false
  }
  const models = [...(window.Bokeh?.documents[0]?._all_models.values() ?? [])]
  const views = models.filter((model) => model.type === "Figure").map((figure) => Bokeh.index.find_one(figure))
  if (views.length === 0 || !views.every((view) => view?.has_finished() && view.el.checkVisibility())) { return false }
  const {left, top, width, height} = views[0].el.getBoundingClientRect()
  return within(at(left + width / 2, top + height / 2), views[0].el)
}"""
# Then the controls come one by one; when the last is there Bokeh calls the document idle.
_PAINTED = f"() => ({_FIGURES_SEEN})() && Bokeh.documents[0].is_idle"
_FRAME_CAME = """() => [...Bokeh.documents[0]._all_models.values()].some(
  (model) => model.type === "ColumnDataSource" && model.data.number?.[0] > 0
)"""
# A frame is painted when the task after the animation frame with the figures in it begins: as the page's own
# heartbeat counts. A figure counts when it was repainted after its data had changed. All moments are on the
# clock of the machine, which the server shares.
_PROBE = """(delay) => {
  const models = [...Bokeh.documents[0]._all_models.values()]
  const probe = window.bnnvizProbe = {frames: [], paints: {}}
  const beats = (model) => model.type === "ColumnDataSource" && "number" in model.data
  const sent = models.find((model) => beats(model) && model.js_property_callbacks["change:data"])
  sent.properties.data.change.connect(() => {
    const at = 1000 * (sent.data.at?.[0] ?? NaN), came = Date.now()
    requestAnimationFrame(() => {
      for (const begin = performance.now(); performance.now() - begin < delay;) { }
      const after = new MessageChannel()
      after.port1.onmessage = () => { probe.frames.push([at, came, Date.now()]); after.port1.close() }
      after.port2.postMessage(null)
    })
  })
  for (const figure of models.filter((model) => model.type === "Figure")) {
    const paints = probe.paints[figure.name] = []
    let fresh = false
    const painted = () => { if (fresh) { paints.push(Date.now()); fresh = false } }
    const coloured = figure.tags.flatMap((ink) => ink.tags)
    const sources = new Set([...figure.renderers.map((r) => r.data_source), ...coloured.map((s) => s.source)])
    for (const source of [...sources].filter((source) => source?.properties?.data)) {
      source.properties.data.change.connect(() => { fresh = true })
    }
    Bokeh.index.get_one(figure).repainted.connect(painted)
    document.addEventListener("bnnviz:paint", (event) => { if (event.detail === figure.name) { painted() } })
  }
}"""
_HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden})
  document.dispatchEvent(new Event("visibilitychange"))
}"""
# Paint old data as often as new ones were painted: hot figures always, the others every fifth time.
_REPAINT = """([rate, hot]) => {
  clearInterval(window.bnnvizRepainting)
  if (rate === 0) { return }
  const figures = [...Bokeh.documents[0]._all_models.values()].filter((model) => model.type === "Figure")
  let turn = 0
  window.bnnvizRepainting = setInterval(() => {
    turn += 1
    figures.forEach((figure, place) => {
      if (!hot.includes(figure.name) && turn % 5 !== place % 5) { return }
      const sources = new Set(figure.tags.flatMap((ink) => ink.tags.map((glyph) => glyph.source)))
      for (const source of sources) { source?.properties?.data?.change.emit() }
    })
  }, 1000 / rate)
}"""
# Look after look, each of them for so long, from a moment on, whoever is connected.
_TURNS = f"""([looks, rate, hot, begin, each]) => {{
  const hide = {_HIDE}, repaint = {_REPAINT}
  const turn = (number) => {{
    const look = looks[number % looks.length]
    hide(look !== "looked_at")
    repaint([look === "only_painting" ? rate : 0, hot])
    setTimeout(turn, begin + (number + 1) * each - Date.now(), number + 1)
  }}
  setTimeout(turn, begin - Date.now(), 0)
}}"""
_READ = "() => JSON.stringify([Date.now(), window.bnnvizProbe])"
# Milliseconds from a click on this button to the paint of the first frame that was made after it.
_UNTIL_PAINTED = """async (button) => {
  const {frames} = bnnvizProbe, before = frames.length, begin = Date.now()
  button.click()
  while (true) {
    const first = frames.slice(before).find(([at]) => at >= begin)
    if (first) { return first[2] - begin }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}"""

# Milliseconds until the mean of the prediction at x has moved by so much from where it is now.
_UNTIL_MOVED = """async ([x, least]) => {
  const models = [...Bokeh.documents[0]._all_models.values()]
  const figure = models.find((model) => model.type === "Figure" && model.name === "prediction")
  const band = figure.tags[0].tags.map((glyph) => glyph.source).find((source) => source.tags[0].includes("lo95"))
  const mean = () => {
    const {packed} = band.data, names = band.tags[0], rows = packed.length / names.length
    const column = (name) => packed.slice(names.indexOf(name) * rows, (names.indexOf(name) + 1) * rows)
    return column("mean")[column("x").findIndex((value) => value >= x)]
  }
  const before = mean(), begin = performance.now()
  return new Promise((resolve, reject) => {
    band.properties.data.change.connect(() => {
      if (Math.abs(mean() - before) > least) { requestAnimationFrame(() => resolve(performance.now() - begin)) }
    })
    setTimeout(() => reject(new Error("the band did not move")), 30000)
  })
}"""
_PLACE = """([x, y]) => {
  const models = [...Bokeh.documents[0]._all_models.values()]
  const figure = models.find((model) => model.type === "Figure" && model.name === "prediction")
  const view = Bokeh.index.get_one(figure)
  const {left, top} = view.canvas_view.events_el.getBoundingClientRect()
  return [left + view.frame.x_scale.compute(x), top + view.frame.y_scale.compute(y)]
}"""


@dataclass(frozen=True)
class Seen:
    """What the probe has noted; all moments are in seconds since the epoch.

    Parameters
    ----------
    now : float
        When it was read.
    frames : list of tuple of float
        Of each frame: when the server sent it (NaN if it does not say), when it came, when it was painted.
    paints : dict
        For each figure by name, when it was painted with new data.
    """

    now: float
    frames: list[tuple[float, float, float]]
    paints: dict[str, list[float]]

    def since(self, begin: float) -> Seen:
        """Return what was painted from a moment on."""
        return self.between(begin, self.now)

    def between(self, begin: float, end: float) -> Seen:
        """Return what was painted from a moment on, as read at another one."""
        paints = {name: [at for at in moments if begin <= at <= end] for name, moments in self.paints.items()}
        return Seen(end, [frame for frame in self.frames if begin <= frame[2] <= end], paints)


class Lab:
    """The page in a tab.

    Parameters
    ----------
    page : playwright.sync_api.Page
        The tab.
    """

    def __init__(self, page: Any) -> None:
        self.page = page

    def open(self, url: str, query: str = "") -> None:
        """Open the dashboard on a link, or on what it opens on, and wait until everything is painted."""
        self.begin(url, query)
        self.wait_for_paint()

    def begin(self, url: str, query: str = "") -> None:
        """Open the dashboard, and wait until every figure is seen."""
        self.page.goto(f"{url}?tour=0{query}", timeout=PATIENCE_MS)
        self.page.wait_for_function(_FIGURES_SEEN, timeout=PATIENCE_MS)

    def wait_for_paint(self) -> None:
        """Wait until every figure and every control is painted."""
        self.page.wait_for_function(_PAINTED, timeout=PATIENCE_MS)

    def wait_for_first_frame(self) -> None:
        """Wait until the run, which is paused, has sent something."""
        self.page.wait_for_function(_FRAME_CAME, timeout=PATIENCE_MS)

    def play(self) -> None:
        """Press play."""
        self._play.click()

    def seconds_from_play(self) -> float:
        """Press play; return the seconds until a frame made after that is painted. Needs the probe."""
        self.wait_for_rest()
        return self._play.evaluate(_UNTIL_PAINTED, timeout=PATIENCE_MS) / 1000

    def seconds_from_drag(self, x: float, y: float, end: float, least: float) -> float:
        """Drag the data point at (x, y) to a height; return the seconds until the mean there has moved by so much."""
        moving = self.page.evaluate_handle(f"(at) => ({{done: ({_UNTIL_MOVED})(at)}})", [x, least])
        self.page.mouse.move(*self.page.evaluate(_PLACE, [x, y]))
        self.page.mouse.down()
        self.page.mouse.move(*self.page.evaluate(_PLACE, [x, end]), steps=5)
        self.page.mouse.up()
        return moving.evaluate("async (moving) => await moving.done") / 1000

    def take_turns(self, looks: Sequence[str], rate: float, hot: list[str], begin: float, each_s: float) -> None:
        """Have the tab looked at in turns from a moment on (seconds since the epoch), each of them for so long.

        Parameters
        ----------
        looks : sequence of {"looked_at", "background", "only_painting"}
            As it is; as if in the background, so that it asks for no views; or so, but painting the old ones.
        rate : float
            Old views painted a second.
        hot : list of str
            The figures that are painted each time.
        """
        self.page.evaluate(_TURNS, [list(looks), rate, hot, 1000 * begin, 1000 * each_s])

    def probe(self, delay_s: float = 0.0) -> None:
        """Begin to note what is painted, in a browser that takes so much longer a frame."""
        self.page.evaluate(_PROBE, 1000 * delay_s)

    def read(self) -> Seen:
        """Return what the probe has noted."""
        now, noted = self.page.evaluate(f"JSON.parse(({_READ})())")
        frames = [tuple(_seconds(ms) for ms in frame) for frame in noted["frames"]]
        return Seen(now / 1000, frames, {name: [ms / 1000 for ms in at] for name, at in noted["paints"].items()})

    def wait_for_rest(self) -> None:
        """Wait until nothing has been painted for a while. Needs the probe."""
        until = time.monotonic() + PATIENCE_MS / 1000
        begun = self.read().now
        while (seen := self.read()).now < begun + QUIET_S or seen.since(seen.now - QUIET_S).frames:
            if time.monotonic() > until:
                raise BnnvizError("The page did not come to rest before play; look whether it is on play already.")
            time.sleep(0.2)

    def shown_latency(self) -> float:
        """Return the milliseconds from server to paint that the status line shows; NaN if it shows none."""
        found = re.search(r"(\d+) ms", self.page.locator(".line .frames").inner_text())
        return float(found[1]) if found else float("nan")

    @property
    def _play(self) -> Any:
        return self.page.get_by_role("button", name="Play", exact=True)


class Chromium:
    """A running browser.

    Parameters
    ----------
    browser : playwright.sync_api.Browser
        The browser.
    driver : psutil.Process
        The process that has started it.
    """

    def __init__(self, browser: Any, driver: psutil.Process) -> None:
        self._browser = browser
        self._driver = driver

    def processes(self) -> list[psutil.Process]:
        """Return the browser's processes."""
        return self._driver.children(recursive=True)

    @contextmanager
    def tab(self) -> Iterator[Lab]:
        """Open an empty tab that shares nothing with others."""
        context = self._browser.new_context(viewport=VIEWPORT)
        try:
            yield Lab(context.new_page())
        finally:
            context.close()


class Window:
    """The only window of a Chromium that nobody else looks into while it is measured.

    Whoever drives a browser is told each message of a page's sockets. On two cores a sampler beside the page was
    interrupted 414 times a second by that and 80 times without, as it is when a person looks at the page.

    Parameters
    ----------
    playwright : playwright.sync_api.Playwright
        Connects to it.
    process : psutil.Process
        The browser.
    address : str
        Where it is driven from.

    Attributes
    ----------
    lab : Lab
        The page in it, as long as it is not left alone.
    """

    def __init__(self, playwright: Any, process: psutil.Process, address: str) -> None:
        self._playwright, self._process, self._address = playwright, process, address
        self._connect()

    def processes(self) -> list[psutil.Process]:
        """Return the browser's processes."""
        return [self._process, *self._process.children(recursive=True)]

    @contextmanager
    def left_alone(self) -> Iterator[None]:
        """Let go of the browser for a while; what is scheduled in the page goes on."""
        self._browser.close()  # of a browser that was connected to: the connection only
        yield
        self._connect()

    def _connect(self) -> None:
        self._browser = self._playwright.chromium.connect_over_cdp(self._address)
        self.lab = Lab(self._browser.contexts[0].pages[0])


@contextmanager
def window() -> Iterator[Window]:
    """Run a Chromium with one window, which can be left alone.

    Raises
    ------
    BnnvizError
        If there is none, or if the page does not do what is asked of it.
    """
    with _playwright() as (playwright, path, _), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        size = f"--window-size={VIEWPORT['width']},{VIEWPORT['height'] + _TITLE_BAR}"
        # For tests: no bar above the page that tells of the other flags.
        own = [size, "--test-type", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
        # A session of its own, as a person's browser has.
        child = subprocess.Popen(
            [path, *BROWSER_FLAGS, *own, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        process = psutil.Process(child.pid)
        try:
            yield Window(playwright, process, _address(Path(profile), child))
        finally:
            end([*process.children(recursive=True), process] if process.is_running() else [])
            child.wait()


def _address(profile: Path, child: subprocess.Popen) -> str:
    """Return where a Chromium that has been started is driven from, which it writes to its profile."""
    told, until = profile / "DevToolsActivePort", time.monotonic() + PATIENCE_MS / 1000
    while not (told.is_file() and told.read_text().count("\n")):
        if child.poll() is not None or time.monotonic() > until:
            raise BnnvizError("Chromium did not start; try it by hand: chromium --headless=new about:blank.")
        time.sleep(0.05)
    port, path = told.read_text().splitlines()[:2]
    return f"ws://127.0.0.1:{port}{path}"


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Run a Chromium without a screen; whatever it started ends with it.

    Raises
    ------
    BnnvizError
        If there is none, or if the page does not do what is asked of it.
    """
    with _playwright() as (playwright, path, driver):
        browser = playwright.chromium.launch(executable_path=path, args=BROWSER_FLAGS, handle_sigint=False)
        running = Chromium(browser, driver)
        started = running.processes()
        try:
            yield running
        finally:
            started += running.processes()
            browser.close()
            end(process for process in started if process.is_running())


@contextmanager
def _playwright() -> Iterator[tuple[Any, str, psutil.Process]]:
    """Give what drives a browser, the path of one, and the process that drives it, which is ended."""
    path = find_chromium()
    if path is None:
        raise BnnvizError(f"This benchmark needs Chromium: {REMEDY}.")
    optional.check("playwright", "This benchmark needs")
    from playwright.sync_api import Error, sync_playwright

    before = set(psutil.Process().children())
    drivers: list[psutil.Process] = []
    try:
        with sync_playwright() as playwright:
            drivers += [child for child in psutil.Process().children() if child not in before]
            yield playwright, path, drivers[0]
    except Error as error:
        raise BnnvizError(f"The page could not be measured ({error.message.splitlines()[0].rstrip('.')}).") from error
    finally:
        end(driver for driver in drivers if driver.is_running())


def _seconds(milliseconds: float | None) -> float:
    return float("nan") if milliseconds is None else milliseconds / 1000

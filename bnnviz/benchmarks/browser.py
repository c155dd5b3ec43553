"""Open a real browser on the dashboard, with a probe in it that notes what is painted when."""

from __future__ import annotations

import json
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

_CODE = Path(__file__).with_suffix(".js").read_text(encoding="utf-8").strip()


def script(name: str, given: str = "") -> str:
    """Return the function of ``browser.js`` of this name, as a page evaluates it, with the name of its argument."""
    return f"({given}) => ({_CODE}).{name}({given})"


@dataclass(frozen=True)
class PaintLog:
    """What the probe has recorded; all moments are in seconds since the epoch.

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

    def since(self, begin: float) -> PaintLog:
        """Return what was painted from a moment on."""
        return self.between(begin, self.now)

    def between(self, begin: float, end: float) -> PaintLog:
        """Return what was painted from a moment on, as read at another one."""
        paints = {name: [at for at in moments if begin <= at <= end] for name, moments in self.paints.items()}
        return PaintLog(end, [frame for frame in self.frames if begin <= frame[2] <= end], paints)


class LabTab:
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
        self.page.goto(f"{url}{'&' if '?' in url else '?'}tour=0{query}", timeout=PATIENCE_MS)
        self.page.wait_for_function(script("figuresSeen"), timeout=PATIENCE_MS)

    def wait_for_paint(self) -> None:
        """Wait until every figure and every control is painted."""
        self.page.wait_for_function(script("painted"), timeout=PATIENCE_MS)

    def wait_for_first_frame(self) -> None:
        """Wait until the run, which is paused, has sent something."""
        self.page.wait_for_function(script("frameCame"), timeout=PATIENCE_MS)

    def play(self) -> None:
        """Press play."""
        self._play.click()

    def seconds_from_play(self) -> float:
        """Press play; return the seconds until a frame made after that is painted. Needs the probe."""
        self.wait_for_rest()
        return self._play.evaluate(script("untilPainted", "button"), timeout=PATIENCE_MS) / 1000

    def seconds_from_drag(self, x: float, y: float, end: float, least: float) -> float:
        """Drag the data point at (x, y) to a height; return the seconds until the mean there has moved by so much."""
        moving = self.page.evaluate_handle(f"(at) => ({{done: ({script('untilMoved', 'at')})(at)}})", [x, least])
        self.page.mouse.move(*self.page.evaluate(script("place", "at"), [x, y]))
        self.page.mouse.down()
        self.page.mouse.move(*self.page.evaluate(script("place", "at"), [x, end]), steps=5)
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
        self.page.evaluate(script("turns", "given"), [list(looks), rate, hot, 1000 * begin, 1000 * each_s])

    def probe(self, delay_s: float = 0.0) -> None:
        """Begin to note what is painted, in a browser that takes so much longer a frame."""
        self.page.evaluate(script("probe", "delay"), 1000 * delay_s)

    def read(self) -> PaintLog:
        """Return what the probe has recorded."""
        now, recorded = json.loads(self.page.evaluate(script("read")))
        frames = [tuple(_seconds(ms) for ms in frame) for frame in recorded["frames"]]
        return PaintLog(now / 1000, frames, {name: [ms / 1000 for ms in at] for name, at in recorded["paints"].items()})

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
    def tab(self) -> Iterator[LabTab]:
        """Open an empty tab that shares nothing with others."""
        context = self._browser.new_context(viewport=VIEWPORT)
        try:
            yield LabTab(context.new_page())
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
    lab : LabTab
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
        self.lab = LabTab(self._browser.contexts[0].pages[0])


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
        flags = [size, "--test-type", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
        # A session of its own, as a person's browser has.
        child = subprocess.Popen(
            [path, *BROWSER_FLAGS, *flags, "about:blank"],
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
    port_file, until = profile / "DevToolsActivePort", time.monotonic() + PATIENCE_MS / 1000
    while not (port_file.is_file() and port_file.read_text().count("\n")):
        if child.poll() is not None or time.monotonic() > until:
            raise BnnvizError("Chromium did not start; try it by hand: chromium --headless=new about:blank.")
        time.sleep(0.05)
    port, path = port_file.read_text().splitlines()[:2]
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

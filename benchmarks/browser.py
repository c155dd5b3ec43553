"""Open a real browser on the dashboard, with a probe that records paint times."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.chromium import BROWSER_FLAGS, REMEDY, find_chromium
from benchmarks.dashboard import end
from bnnviz.errors import BnnvizError

_SIZE = (1400, 900)
_TITLE_BAR = 87  # pixels of a window's height that are not the page's
_LONGEST_MS = 60_000
_QUIET_S = 1.0  # time without painting after which a page counts as idle

_CODE = Path(__file__).with_suffix(".js").read_text(encoding="utf-8").strip()


def script(name: str, given: str = "") -> str:
    """Return a named function of ``browser.js`` in the form that a page evaluates, with its argument's name."""
    return f"({given}) => ({_CODE}).{name}({given})"


@dataclass(frozen=True)
class PaintLog:
    """Records of the probe; all times are in seconds since the epoch."""

    now: float
    frames: list[tuple[float, float, float]]
    paints: dict[str, list[float]]

    def between(self, begin: float, end: float) -> PaintLog:
        """Return the records between two times, as read at the second."""
        paints = {name: [at for at in moments if begin <= at <= end] for name, moments in self.paints.items()}
        return PaintLog(end, [frame for frame in self.frames if begin <= frame[2] <= end], paints)


class LabTab:
    """The page in a browser tab driven by Playwright."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def open(self, url: str, query: str = "") -> None:
        """Open the dashboard, and wait until every figure is visible."""
        self.page.goto(f"{url}{'&' if '?' in url else '?'}play=0{query}", timeout=_LONGEST_MS)
        self._wait("figuresSeen")

    def wait_for_paint(self) -> None:
        """Wait until every figure and every control is painted."""
        self._wait("painted")

    def wait_for_first_frame(self) -> None:
        """Wait until the paused run has sent a frame."""
        self._wait("frameCame")

    def _wait(self, condition: str) -> None:
        self.page.wait_for_function(script(condition), timeout=_LONGEST_MS)

    def play(self) -> None:
        """Press play."""
        self._play.click()

    def seconds_from_play(self) -> float:
        """Press play; return the seconds until a frame made after that is painted. Needs the probe."""
        until = time.monotonic() + _LONGEST_MS / 1000
        begun = self.read().now
        while (seen := self.read()).now < begun + _QUIET_S or seen.between(seen.now - _QUIET_S, seen.now).frames:
            if time.monotonic() > until:
                raise BnnvizError("The page did not become idle before play.")
            time.sleep(0.2)
        return self._play.evaluate(script("untilPainted", "button"), timeout=_LONGEST_MS) / 1000

    def seconds_from_drag(self, x: float, y: float, end: float, least: float) -> float:
        """Drag the data point at (x, y) to a height; return the seconds until the mean there has moved by ``least``."""
        moving = self.page.evaluate_handle(f"(at) => ({{done: ({script('untilMoved', 'at')})(at)}})", [x, least])
        self.page.mouse.move(*self.page.evaluate(script("place", "at"), [x, y]))
        self.page.mouse.down()
        self.page.mouse.move(*self.page.evaluate(script("place", "at"), [x, end]), steps=5)
        self.page.mouse.up()
        return moving.evaluate("async (moving) => await moving.done") / 1000

    def probe(self) -> None:
        """Start the probe."""
        self.page.evaluate(script("probe"))

    def read(self) -> PaintLog:
        """Return the records of the probe."""
        now, recorded = json.loads(self.page.evaluate(script("read")))
        frames = [tuple(float("nan") if ms is None else ms / 1000 for ms in frame) for frame in recorded["frames"]]
        return PaintLog(now / 1000, frames, {name: [ms / 1000 for ms in at] for name, at in recorded["paints"].items()})

    def shown_latency(self) -> float:
        """Return the milliseconds from server to paint that the status line shows; NaN if it shows none."""
        found = re.search(r"(\d+) ms", self.page.locator(".line .frames").inner_text())
        return float(found[1]) if found else float("nan")

    @property
    def _play(self) -> Any:
        return self.page.get_by_role("button", name="Play", exact=True)


class Window:
    """The only window of a Chromium, which can run undisturbed while it is measured.

    Playwright receives each message of a page's sockets. On two cores this interrupted a sampler 414 times a second,
    compared with 80 times without it, as when a person looks at the page.
    """

    def __init__(self, playwright: Any, process: psutil.Process, address: str) -> None:
        self._playwright, self._process, self._address = playwright, process, address
        self._connect()

    def processes(self) -> list[psutil.Process]:
        """Return the browser's processes."""
        return [self._process, *self._process.children(recursive=True)]

    @contextmanager
    def left_alone(self) -> Iterator[None]:
        """Disconnect from the browser for a while; scheduled functions of the page continue."""
        self._browser.close()  # closes the connection only
        yield
        self._connect()

    def _connect(self) -> None:
        self._browser = self._playwright.chromium.connect_over_cdp(self._address)
        self.lab = LabTab(self._browser.contexts[0].pages[0])


@contextmanager
def window() -> Iterator[Window]:
    """Run a Chromium with one window."""
    from playwright.sync_api import Error, sync_playwright

    path = find_chromium()
    if path is None:
        raise BnnvizError(f"This benchmark needs Chromium: {REMEDY}.")
    before = set(psutil.Process().children())
    drivers: list[psutil.Process] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        size = f"--window-size={_SIZE[0]},{_SIZE[1] + _TITLE_BAR}"
        # For tests: no bar above the page about the other flags.
        flags = [size, "--test-type", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
        # A separate session, as for a person's browser.
        child = subprocess.Popen(
            [path, *BROWSER_FLAGS, *flags, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        process = psutil.Process(child.pid)
        try:
            with sync_playwright() as playwright:
                drivers += set(psutil.Process().children()) - before - {process}
                yield Window(playwright, process, _address(Path(profile), child))
        except Error as error:
            reason = error.message.splitlines()[0].rstrip(".")
            raise BnnvizError(f"Measuring the page failed ({reason}).") from error
        finally:
            end([*process.children(recursive=True), process, *drivers] if process.is_running() else drivers)
            child.wait()


def _address(profile: Path, child: subprocess.Popen) -> str:
    """Return the remote control address of a Chromium, read from its profile."""
    port_file, until = profile / "DevToolsActivePort", time.monotonic() + _LONGEST_MS / 1000
    while not (port_file.is_file() and port_file.read_text().count("\n")):
        if child.poll() is not None or time.monotonic() > until:
            raise BnnvizError("Chromium did not start; try it by hand: chromium --headless=new about:blank.")
        time.sleep(0.05)
    port, path = port_file.read_text().splitlines()[:2]
    return f"ws://127.0.0.1:{port}{path}"

"""Measure the dashboard while a sampler runs: painting rate, latency, and CPU time per frame.

Everything is measured from outside: ``bnnviz serve`` in a separate process, and a real browser that plays a network,
the Lab's second example.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources

import numpy as np

from benchmarks.browser import LabTab, PaintLog, Window, window
from benchmarks.dashboard import Dashboard, Meter, cpu_seconds, dashboard
from benchmarks.rows import Case, Goal, Report, Row
from bnnviz.specs import url
from bnnviz.specs.run import Spec

HOT_RATE, RATE = Goal(">=", 15), Goal(">=", 3)
HOT = ("thinning", "trajectory")  # figures of every frame
LATE = Goal("<", 150)
FLAT = Goal("<=", 1.25)
FOLLOWS = Goal("<", 1)
#: A network on five points; the middle one is dragged up and down.
DRAGGED = (
    "&target=network&t.data=toy_c&t.hidden=10&t.prior_sd=2&sampler=boomerang&s.refresh_rate=2&warmup=10"
    "&t.points=-0.4,-0.5;-0.2,0.3;0,0;0.2,0.3;0.4,-0.5"
)
HIGH, MOVED, REST_S = 0.45, 0.1, 3.0
FIRST_FRAME, TO_PAGE, NO_TORCH = Goal("<", 1), Goal("<", 5), Goal("<=", 0)
SETTLE_S = 3.0  # between play and the measurement


def frames(seconds: float, report: Report) -> Iterator[Row]:
    """Measure painting rate and latency of each view, and the CPU time per frame."""
    with _playing(report) as stage:
        report(f"Watching the page for {seconds:g} s.")
        seen, used = stage.watch(seconds)
        shown = stage.lab.shown_latency()
    yield from _rates(seen, seconds)
    yield from _latencies(seen, seconds)
    yield Row("latency_shown", shown, "ms", more={"note": "the status line's own figure, a median"})
    yield from _costs(used, len(seen.frames), seconds)


def startup(seconds: float, report: Report) -> Iterator[Row]:
    """Measure the second start of the server, the first frame after play, and check that torch is not loaded."""
    with window() as browser:
        report("Starting the server once, so that its files are in memory.")
        with dashboard() as served:
            browser.lab.open(served.url)
            browser.lab.wait_for_paint()
        report("Starting the server again.")
        meter = Meter({"browser": browser.processes})
        with dashboard() as served:
            lab = browser.lab
            lab.open(served.url)
            yield Row("serve_to_figures", time.time() - served.begun, "s")
            lab.wait_for_paint()
            yield Row("serve_to_page", time.time() - served.begun, "s", TO_PAGE)
            yield from _opening_costs(served, meter.read())
            lab.wait_for_first_frame()
            yield Row("serve_to_first_segment", time.time() - served.begun, "s")
            lab.probe()
            yield Row("play_to_first_frame", lab.seconds_from_play(), "s", FIRST_FRAME)
            yield Row("torch_in_page_process", len(served.torch_libraries()), "libraries", NO_TORCH)


def drawing(seconds: float, report: Report) -> Iterator[Row]:
    """Measure how soon the band follows a dragged data point while the network is sampled."""
    with window() as browser, dashboard() as served:
        lab = browser.lab
        lab.open(served.url, DRAGGED)
        lab.wait_for_paint()
        lab.wait_for_first_frame()
        lab.play()
        time.sleep(SETTLE_S)
        report(f"Dragging a point up and down for {seconds:g} s.")
        height, took, begin = 0.0, [], time.monotonic()
        while not took or time.monotonic() - begin < seconds:
            end = HIGH if height <= 0 else -HIGH
            took.append(lab.seconds_from_drag(0.0, height, end, MOVED))
            height = end
            time.sleep(REST_S)  # until there are draws for the new data
    yield Row("drag_to_band", statistics.median(took), "s", FOLLOWS, {"drags": len(took), "slowest": max(took)})


# --- the page while it plays


@dataclass
class _PlayingPage:
    """A page that plays."""

    served: Dashboard
    browser: Window

    @property
    def lab(self) -> LabTab:
        """The page."""
        return self.browser.lab

    def watch(self, seconds: float) -> tuple[PaintLog, dict[str, float]]:
        """Return the paint log from now on, and the CPU seconds used."""
        meter = Meter(
            {"page": lambda: [self.served.process], "workers": self.served.workers, "browser": self.browser.processes}
        )
        begin = time.time()
        with self.browser.left_alone():
            time.sleep(seconds)
            used, until = meter.read(), time.time()
        return self.lab.read().between(begin, until), used


@contextmanager
def _playing(report: Report) -> Iterator[_PlayingPage]:
    report("Starting the server and the browser.")
    with window() as browser, dashboard() as served:
        browser.lab.open(served.url, f"&{url.query_text(_network().to_query())}")
        browser.lab.wait_for_paint()
        browser.lab.wait_for_first_frame()
        browser.lab.probe()
        browser.lab.play()
        time.sleep(SETTLE_S)
        yield _PlayingPage(served, browser)


def _rates(seen: PaintLog, seconds: float) -> Iterator[Row]:
    yield Row("rate_frames", len(seen.frames) / seconds, "1/s", HOT_RATE)
    for name, moments in seen.paints.items():
        yield Row(f"rate_{name}", len(moments) / seconds, "1/s", HOT_RATE if name in HOT else RATE)


def _latencies(seen: PaintLog, seconds: float) -> Iterator[Row]:
    """Yield the latencies; the 95% quantile has a goal and must not grow from the first to the last quarter."""
    painted = [frame[2] for frame in seen.frames]
    late = [1000 * (frame[2] - frame[0]) for frame in seen.frames]
    parts = quarters(painted, late, seen.now - seconds, seen.now)
    yield Row("latency_p50", quantile(late, 0.5), "ms")
    yield Row("latency_p95", quantile(late, 0.95), "ms", LATE)
    for number, part in enumerate(parts, start=1):
        yield Row(f"latency_p95_quarter_{number}", quantile(part, 0.95), "ms")
    growth = quantile(parts[-1], 0.95) / quantile(parts[0], 0.95)
    yield Row("latency_growth", growth, "", FLAT, {"note": "of the last quarter relative to the first"})
    came = [1000 * (frame[2] - frame[1]) for frame in seen.frames]
    yield Row("browser_p50", quantile(came, 0.5), "ms", more={"note": "from a frame's arrival to its painting"})


def quantile(values: Sequence[float], q: float) -> float:
    """Return a quantile; NaN without values."""
    return float(np.quantile(values, q)) if len(values) else float("nan")


def quarters(moments: Sequence[float], values: Sequence[float], begin: float, end: float) -> list[np.ndarray]:
    """Divide values by their times into four quarters of a time span."""
    at, held = np.asarray(moments, dtype=float), np.asarray(values, dtype=float)
    edges = np.linspace(begin, end, 5)
    return [held[(at >= low) & (at < high)] for low, high in zip(edges[:-1], edges[1:], strict=True)]


def _costs(used: dict[str, float], painted: int, seconds: float) -> Iterator[Row]:
    """Yield the CPU time per frame; that of the workers includes the sampler."""
    for name in ("page", "browser"):
        yield Row(f"cpu_{name}_per_frame", 1000 * used[name] / max(painted, 1), "ms")
    for name in ("page", "browser", "workers", "others"):
        yield Row(f"cpu_{name}", used[name] / seconds, "cores")


def _opening_costs(served: Dashboard, used: dict[str, float]) -> Iterator[Row]:
    """Yield the CPU time until the page was painted; with few cores the parts slow each other down."""
    page, workers = cpu_seconds(served.process), cpu_seconds(*served.workers())
    parts = {"page": page, "workers": workers, "browser": used["browser"], "others": used["others"] - page - workers}
    for name, seconds in parts.items():
        yield Row(f"cpu_{name}_to_page", seconds, "s")


def _network() -> Spec:
    """Return the network among the Lab's examples."""
    preset = resources.files("bnnviz_app").joinpath("presets", "lab.json")
    examples = {example["name"]: example for example in json.loads(preset.read_text(encoding="utf-8"))}
    return Spec.from_json(examples["network"]["spec"]).checked()


CASES: dict[str, Case] = {
    "frames": frames,
    "startup": startup,
    "drawing": drawing,
}

"""Drive a run from the bar at the bottom: play, step, speed, the timeline, and the status line that never moves."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Set
from typing import Any, ClassVar

import panel as pn
import panel_material_ui as pmui
import param

from bnnviz.figures.live.view import View
from bnnviz.figures.palette import DARK, LIGHT
from bnnviz.numerals import count
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import Text, WideColumn, WideRow, button, set_changed
from bnnviz_app.session import Session
from bnnviz_app.theme import FLAT, SHEETS, styles

SPEEDS = {"2 steps/s": 2.0, "10 steps/s": 10.0, "50 steps/s": 50.0, "500 steps/s": 500.0, "full speed": 0.0}
_BUTTON = {"variant": "outlined", "margin": (0, 4), "sizing_mode": "fixed", "height": 34}
# Pixels: the select of the speed without its words, a letter, a letter on a projector, and the smallest width.
_ARROW, _LETTER, _LARGE_LETTER, _NARROWEST = 44, 7.2, 9.0, 126
_STYLES = styles(__file__)

_COUNTS = ("step", "events_per_s", "gradients_per_s", "draws", "ess", "elapsed")
_PREPARING = {
    "device": "–",
    "kernel": "eager",
    "phase": "preparing",
    "playing": True,
    "shared": 1,
    "chains": "–",
    **dict.fromkeys(_COUNTS, math.nan),
}


_MARKS = "A click goes back to the event."
_LEGEND = (("green", "● bounce"), ("purple", "□ refreshment"), ("magenta", "▲ violation"))

Cell = tuple[int, str, str, str]


class Transport(PageComponent):
    """Show buttons for a session, its timeline and its status line."""

    needs = frozenset({"status"})
    steps_events: ClassVar[bool] = True  # whether it advances to events, or only by steps
    steps: ClassVar[dict[str, str]] = {"Next step": "proposal", "Next event": "event"}
    kernels: ClassVar[tuple[str, ...]] = ("compiling", "compiled")  # a note next to the device

    def __init__(self, session: Session, timeline: View | None = None, middle: Any = None) -> None:
        self._session = session
        look = _BUTTON | {"variant": "contained", "margin": (0, 4, 0, 0)}
        self._play = button("Play", self.play, icon="play_arrow", width=104, **look)
        self._speed = pmui.Select(
            label="Speed",
            options=SPEEDS,
            value=0.0,
            size="small",
            width=_NARROWEST,
            margin=(5, 4, 1, 4),
            height=30,
            sx=FLAT,
            stylesheets=[SHEETS["unlabelled"], _STYLES["speed"]],
            css_classes=["second"],
        )
        self._status = Text(height=22, margin=0, stylesheets=[_STYLES["status"]])
        self.enlarged = [self._status]
        self._speed.param.watch(lambda event: session.set_speed(event.new or None), "value")
        self._steps = pmui.MenuButton(label="Step", width=92, size="small", **_BUTTON)
        self._steps.on_click(lambda item: self.back() if item["kind"] == "back" else self.step(item["kind"]))
        row = [self._play, self._steps, self._speed]
        self._goes_back = timeline is not None
        self._legend = Text(width=88, sizing_mode="fixed", margin=(0, 4))
        self.theme(dark=False)
        if timeline is not None:
            # A click on the strip of events goes back.
            timeline.pointer.listen(lambda message: self._clicked(timeline, message))
            timeline.root.html_attributes = {**timeline.root.html_attributes, "title": _MARKS}
            sheets = [_STYLES["marks"], SHEETS["not_on_a_phone"]]
            self._legend.param.update(stylesheets=sheets)
            row.append(self._legend)
            look = {"sizing_mode": "stretch_width", "height": 38, "margin": (0, 4), "css_classes": ["wide"]}
            middle = pn.pane.Bokeh(timeline.root, **look)
        row.append(middle or pn.Spacer(sizing_mode="stretch_width", height=1))
        self._show_events(self.steps_events)
        buttons = WideRow(*row, height=42, margin=(3, 0, 0, 0), align="center", stylesheets=[_STYLES["buttons"]])
        self.root = WideColumn(
            *(self._status, buttons),  # the buttons stay in their place when the line opens
            styles={"padding": "0 16px 2px", "box-sizing": "border-box", "flex": "none"},
            css_classes=["area-transport"],
            stylesheets=[_STYLES["bar"]],
        )

    def play(self) -> None:
        """Play or pause."""
        self._session.play()
        self.show_playing()

    def step(self, kind: str, times: int = 1) -> None:
        """Pause and step."""
        self._session.step(kind, times)
        self.show_playing()

    def back(self, step: int | None = None) -> None:
        """Go back to a step, or to the previous event."""
        self._session.travel("back", step=step)
        self.show_playing()

    def _clicked(self, timeline: View, message: dict[str, Any]) -> None:
        step = timeline.figure.nearest(message["x"]) if message["do"] == "cell" else None
        if step is not None:
            self.back(step)

    def again(self) -> None:
        """Begin the same spec again, paused."""
        self._session.playing = False
        self._session.begin(self._session.spec)
        self.show_playing()

    def show_speed(self, text: str) -> None:
        """Take the speed of a link, in steps a second, if it is one that is offered."""
        if text.isdecimal() and float(text) in SPEEDS.values():
            self._speed.value = float(text)

    def show_later_speed(self, text: str) -> None:
        """Show a speed that the run does not have yet."""
        with param.discard_events(self._speed):
            self.show_speed(text)

    def take_speed(self) -> None:
        """Give the run the speed that is shown."""
        self._session.set_speed(self._speed.value or None)

    def perform(self, actions: Iterable[tuple[str, Any]], change: Callable[[dict[str, Any]], None]) -> None:
        """Apply the actions of a scene to the run."""
        for kind, value in actions:
            if kind in ("play", "pause"):
                if self._session.playing != (kind == "play"):
                    self.play()
            elif kind == "speed":
                self.show_speed(str(value))
            elif kind == "change":
                change(value)
            else:
                self.step(kind, value)

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        super().magnify(large)
        # As wide as the longest of its choices.
        width = _ARROW + max(map(len, SPEEDS)) * (_LARGE_LETTER if large else _LETTER)
        set_changed(self._speed, width=max(_NARROWEST, round(width)))

    def theme(self, dark: bool) -> None:
        """Show the legend of the timeline in its colours."""
        colours = DARK if dark else LIGHT
        lines = (f"<div style='color: {colours.of(role)}'>{text}</div>" for role, text in _LEGEND)
        set_changed(self._legend, object="".join(lines))

    def hide(self, names: Set[str]) -> None:
        """Hide the named parts: the whole bar is ``transport``, its line of figures ``status``."""
        self.root.visible = "transport" not in names
        self._status.visible = "status" not in names

    def show_playing(self) -> None:
        """Set the label of the play button."""
        label, icon = ("Pause", "pause") if self._session.playing else ("Play", "play_arrow")
        label = label if self._session.recorded is None else "Run live"
        set_changed(self._play, label=label, icon=icon)

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run: the old one's numbers go."""
        self.show_playing()
        self._show_events("events" in scene["emits"])
        self._status.object = self._line(_PREPARING)

    def _show_events(self, eventful: bool) -> None:
        """Offer the buttons of a sampler with events, or a plain step."""
        self._eventful = eventful
        set_changed(self._legend, visible=eventful)
        steps = self.steps if eventful else {"Next step": "proposal"}
        if self._goes_back:
            steps = {**steps, "Previous step": "back"}
        # The menu opens upwards: the pointer is at its last item, which a second click chooses.
        items = [{"label": label, "kind": kind} for label, kind in reversed(steps.items())]
        set_changed(self._steps, items=items)

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        self.show_playing()
        self._status.object = self._line(frame["status"])

    def _cells(self, status: dict[str, Any]) -> list[Cell]:
        """Return least width, name, figure and unit of each figure of the line."""
        kernel = status["kernel"] if status["kernel"] in self.kernels else ""
        frames, latency = self._session.heartbeat.rate(), self._session.heartbeat.latency()
        delay = "–" if latency is None else f"{1000 * latency:.0f}"
        return [
            (44, "device", html.escape(str(status["device"])), kernel),
            (104, "phase", html.escape(self._phase(status)), ""),
            *self._figures(status),
            (116, "frames", f"{frames:.0f}", f"frames per s, {delay} ms"),
            (84, "elapsed", clock(status["elapsed"]), "sampled"),
        ]

    def _phase(self, status: dict[str, Any]) -> str:
        """Show the position of a run, and whether it is paused."""
        return status["phase"] if status["playing"] else f"{status['phase']}, paused"

    def _figures(self, status: dict[str, Any]) -> list[Cell]:
        """Return the cells of this kind of run's counters."""
        return [
            (84, "step", count(status["step"]), "steps"),
            (92, "events", rate(status, "events_per_s"), "events/s" if self._eventful else "moves/s"),
            (118, "gradients", rate(status, "gradients_per_s"), "gradients/s"),
            (106, "draws", f"{count(status['draws'])} × {status['chains']}", "draws"),
            (66, "ess", count(status["ess"]), "<abbr title='effective sample size'>ESS</abbr>"),
        ]

    def _line(self, status: dict[str, Any]) -> str:
        line = "".join(
            f"<span class='{name}' style='min-width:{width}px'><b>{value}</b> {unit}</span>"
            for width, name, value, unit in self._cells(status)
        )
        others = status["shared"] - bool(status["playing"])
        if others > 0:
            shared = f"shared with {others} other run{'s' if others > 1 else ''}"
            return f"<div class='line crowded'>{line}<span class='shared'>{shared}</span></div>"
        return f"<div class='line'>{line}</div>"


class StepTransport(Transport):
    """Show buttons for a run without a timeline and usually without events; subclasses define the figures."""

    steps_events, kernels = False, ()

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        self.show_playing()
        self._status.object = ""

    def _phase(self, status: dict[str, Any]) -> str:
        return "done" if status["phase"] == "done" else super()._phase(status)


def rate(status: dict[str, Any], name: str) -> str:
    """Format a rate, which a paused run does not have."""
    return count(status[name] if status["playing"] else math.nan)


def clock(seconds: float) -> str:
    """Write seconds as minutes and hours; a few of them, as small runs take, with two digits."""
    if not math.isfinite(seconds):
        return "–"
    if 0 < seconds < 10:
        return f"{seconds:.2g} s"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"

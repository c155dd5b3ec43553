"""Drive the run of one browser tab, and send its frames to the page in a loop.

A session is independent of widgets: it passes frames to a *screen* with the document locked and changes combined into
one patch. Nothing here waits with the lock, so no session blocks another.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from bokeh.document import Document
from panel.io.document import hold
from panel.io.state import set_curdoc, state

from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz_app import kept_runs
from bnnviz_app.access import roles
from bnnviz_app.heartbeat import Heartbeat
from bnnviz_app.kept_runs import KeptRun
from bnnviz_app.page_thread import PAGE_TURN, in_page_thread

PERIOD = 0.062  # seconds between two ticks
IDLE_PERIOD = 0.2  # seconds between two polls of a waiting run; its answers to requests come immediately
REST_AFTER, REST_PERIOD = 3.0, 1.0  # seconds without a frame, after which it is polled less often: each poll costs 4 ms
STILL_PERIOD = 0.5  # seconds between two ticks with reduced motion
HIDDEN_PERIOD = 1.0  # seconds between two heartbeats of a hidden page
LINGER = 8.0  # seconds that a refusal stays on the page
RECORDED = "This is a recorded run. Press Run live to repeat it here."
GONE_AFTER = 2.0  # seconds without a connection after which the tab counts as closed

log = logging.getLogger(__name__)


class Session:
    """Hold a run, whose log owns the spec, and run the loop between the run and the page."""

    def __init__(self, spec: Spec, backend: Future, screen: Any, heartbeat: Heartbeat, doc: Document) -> None:
        self._asked: Any = spec  # the spec of a run that is to be started; None once it has started
        self._shown: Any = spec
        self.on_begin: Callable[[], None] = lambda: None  # called when another run is requested
        self._first: Callable[[], None] | None = None
        self.origin: str | None = None  # the recording to resume at the next start
        self.resumes: str | None = None  # the id of this browser's run to resume at the next start
        self.opened: set[str] = set()  # drawers of the page, and parts chosen by tabs
        self.again = False  # the page has lost its connection, and takes over the run of its earlier session
        self.browser, self.page = kept_runs.browser(), ""
        self._kept: KeptRun | None = None
        self.playing = False
        self.speed: float | None = None
        self.heartbeat = heartbeat
        self._backend, self._screen, self._doc = backend, screen, doc
        self._role = roles.present()
        self._handle: Any = None
        self._before: Any = None  # the previous run, until the new one is ready
        self.recorded: tuple[dict[str, Any], dict[str, Any]] | None = None  # scene and frame, shown until a run starts
        self.meanwhile: tuple[dict[str, Any], dict[str, Any]] | None = None  # the same, shown while the workers start
        self._jumps = 0  # number of the run's jumps that the page has followed
        self._starting = True  # a new spec waits to be started
        self._bringing = False  # a new run is being started
        self._notice = ("", False)  # the page's current message, and whether it reports a failure
        self._lingers = 0.0
        self._greeting: list[str] = []  # messages for the start of the next run
        self._refusing = False  # whether they report a failure
        self._asked_devices = False
        self._idle = False  # nothing is new
        self._drew = time.monotonic()  # when the last frame came
        self._last_seen = time.monotonic()
        self._wake = asyncio.Event()
        self._in_order = asyncio.Lock()
        self._commands = 0  # pending; a frame's state of playing may be older
        self._latest: dict[str, dict[str, Any]] = {}  # pending commands, of which only the newest arguments count
        self._tasks: set[asyncio.Task] = set()
        self._closed = False

    def open(self) -> None:
        """Begin the loop, which prepares the first run, when the browser has the page: earlier changes are lost."""
        state.onload(lambda: self._spawn(self._live()))

    # ---- requests of the page -----------------------------------------------------------------------------

    @property
    def spec(self) -> Any:
        """The spec of the current or the next run."""
        return self._handle.spec if self._asked is None else self._asked

    @property
    def run_id(self) -> str | None:
        """The id by which this browser finds the run again; None if nothing runs."""
        return None if self._kept is None else self._kept.run_id

    def greet(self, sentences: list[str], failed: bool = True) -> None:
        """Show these messages when the run starts, which removes earlier messages."""
        self._greeting, self._refusing = sentences, failed

    def record(self, name: str | None) -> None:
        """Keep the run on disk from now on, under this name; None ends that."""
        if self._role.keeps:
            self._send("record", recording=name)
        else:
            self._spawn(self._complain(BnnvizError(roles.KEPT)))

    def begin(self, spec: Spec, first: Callable[[], None] | None = None) -> None:
        """Run another spec instead, playing if this one plays; on failure, this run continues."""
        self._asked, self._first, self.recorded, self.resumes = spec, first, None, None
        self._starting = True
        self.on_begin()
        self._wake.set()

    def resume_last(self) -> KeptRun | None:
        """Show the run that this browser left last on this page, if no other page shows it; return that."""
        run = kept_runs.runs().last(self.browser)
        if run is None or run.page != self.page:
            return None
        self.begin(self.spec)
        self.resumes = run.run_id
        return run

    def change(self, settings: dict[str, Any]) -> None:
        """Change settings of the sampler while it runs."""
        if self._asked is not None:
            self._asked = self._asked.replace(settings={**self._asked.settings, **settings})
        self._send("change", settings=settings)

    def draw(self, points: list[list[float]]) -> None:
        """Replace the data points during the run."""
        if self._asked is not None:
            self._asked = self._asked.replace(target_settings={**self._asked.target_settings, "points": points})
        self._send_latest("change", settings={"target.points": points})

    def pick(self, choice: dict[str, Any] | None) -> None:
        """Pick draws or an event, or nothing."""
        self._send_latest("select", choice=choice)

    def play(self) -> None:
        """Play or pause."""
        self.playing = not self.playing
        if not (self._starting or self._bringing) and self._over():
            self.playing = True
            # A run whose worker stopped resumes from its checkpoint; a completed run begins again.
            resumed = self._handle is not None and not self._handle.held and self._kept is not None
            self.begin(self.spec)
            self.resumes = self._kept.run_id if resumed else None
        else:
            self._send("play" if self.playing else "pause")

    def step(self, kind: str, times: int = 1) -> None:
        """Pause, then take a number of steps: a ``proposal``, or up to the next ``event``."""
        self.playing = False
        self._send(kind, times=times)

    def travel(self, name: str, **args: Any) -> None:
        """Go ``back`` to a step, or ``return``; ``fork``, ``follow`` a branch or ``keep`` it (`obey`)."""
        self.playing = self.playing and name in ("fork", "follow", "keep")
        self._send(name, **args)

    def look(self) -> None:
        """Show every view again after a change of the page's choices."""
        if self._handle is not None:
            self._handle.look_again()
        self._wake.set()

    def rearrange(self, function: Callable[[], None]) -> None:
        """Make new parts of the page while the frames of other pages go out; at once while the page is built."""
        if self._server_session() is None:
            function()
        else:
            self._spawn(self._rearrange(function))

    def set_speed(self, value: float | None) -> None:
        """Limit the steps a second; None is full speed."""
        self.speed = value
        if self._kept is not None:
            self._kept.speed = value
        self._send("speed", value=value)

    def note_opened(self, name: str, is_open: bool) -> None:
        """Note whether a drawer is open or a tab chosen, for when the run is shown again."""
        (self.opened.add if is_open else self.opened.discard)(name)

    def watch(self, **what: Any) -> None:
        """Look at another chain or plane."""
        self._send("watch", **what)

    def close(self) -> None:
        """End the loop, because the page has gone; its run belongs to the browser, which finds it again."""
        if self._closed:
            return
        self._closed = True
        self._let_go_before()
        if self._handle is not None and self._kept is not None:
            for run in kept_runs.runs().leave(self._kept, self):
                self._spawn(kept_runs.runs().end(run))
        else:
            self._let_go()
        self._wake.set()

    # ---- the loop -----------------------------------------------------------------------------------------

    async def _live(self) -> None:
        while not self._closed:
            began = time.monotonic()
            try:
                await self._turn_once()
            except BnnvizError as error:
                await self._complain(error)
            except Exception:
                log.exception("a turn of the page's loop failed")
                self._let_go()
                await self._tell("An error occurred on this page; see the server's log. Try a reset.")
            await self._until(began + self._period())

    def _period(self) -> float:
        if self.heartbeat.hidden:
            return HIDDEN_PERIOD
        if self.heartbeat.still:
            return STILL_PERIOD
        if self.playing or not self._idle:
            return PERIOD
        return IDLE_PERIOD if time.monotonic() < self._drew + REST_AFTER else REST_PERIOD

    async def _turn_once(self) -> None:
        handle = self._handle
        if not self._connected():
            return
        if self.recorded is not None and self._starting:
            self._starting = False
            await self._show_recorded(*self.recorded)
            await self._tell(RECORDED)
        elif self._starting:
            await self._start()
        elif handle is not None and self.heartbeat.hidden:
            # A hidden page keeps its run, but does not draw.
            await handle.frame(["status"])
        elif handle is not None:
            await self.heartbeat.room()
            await self._tick(handle)

    async def _show_recorded(self, scene: dict[str, Any], frame: dict[str, Any]) -> None:
        await self._show(self._screen.show_scene, scene)
        await self._show(self._screen.show_frame, frame)

    async def _tick(self, handle: Any) -> None:
        frame = await handle.frame(sorted(self._screen.requested()))
        self._idle = frame is None
        await self._tell(handle.notice or "", failed=handle.state == "failed")
        if handle is not self._handle or self._starting:
            return
        if frame is not None:
            self._drew = time.monotonic()
            jumps = frame.get("status", {}).get("jumps", self._jumps)
            scene = None if jumps == self._jumps else await handle.scene()
            self._jumps = jumps
            await self._show(self._paint, frame, scene)
        elif not self._commands and (handle.playing != self.playing or handle.spec != self._shown):
            # Nothing new to draw would leave the controls as they are, whatever became of a command.
            await self._show(self._agree)

    def _paint(self, frame: dict[str, Any], scene: dict[str, Any] | None) -> None:
        """Show a frame; a scene comes with another state or future of the run, which is shown like one that begins."""
        if scene is not None:
            self._screen.show_scene(scene)
        if not self._commands:
            self._agree()
        if self._kept is not None and "status" in frame:
            self._kept.draws = kept_runs.drawn(frame["status"])
            self._kept.recorded = bool(frame["status"].get("record"))
        self._screen.show_frame(frame)
        self.heartbeat.beat()

    def _agree(self) -> None:
        """Show the spec of the run, and whether it plays, as its host reported them last."""
        self.playing = self._handle.playing
        self._screen.show_playing()
        if self._handle.spec != self._shown:
            self._shown = self._handle.spec
            self._screen.show_spec(self._shown)

    @property
    def connected(self) -> bool:
        """Whether a browser has the page."""
        session = self._server_session()
        return session is not None and session.connection_count > 0

    def _connected(self) -> bool:
        session, now = self._server_session(), time.monotonic()
        if self._kept is not None and self._kept.viewer is not self:  # it was loaded again
            self.close()
            return False
        if session is not None and session.connection_count:
            self._last_seen = now
            return True
        if now - self._last_seen > GONE_AFTER:
            self.close()
        return False

    # ---- starting -----------------------------------------------------------------------------------------

    async def _start(self) -> None:
        self._starting, self._bringing = False, True
        try:
            await self._bring_up()
        finally:
            self._bringing = False

    async def _bring_up(self) -> None:
        spec = self.spec
        try:
            self._role.check(spec, self.origin)
        except BnnvizError:
            self._asked = spec if self._handle is None else None
            raise
        if self._handle is not None:
            self._before, self._handle = self._handle, None
            await self._show(self._screen.show_waiting, True)
        if not self._backend.done():
            sentence = "The workers are starting."
            if self.meanwhile is not None and self._before is None:
                await self._show_recorded(*self.meanwhile)
                sentence = "The workers are starting; meanwhile you see a recorded run."
            await self._tell(sentence)
        backend = await asyncio.wrap_future(self._backend)
        if not self._asked_devices:
            self._asked_devices = True
            self._spawn(self._devices(backend))
        playing = self.playing
        origin, self.origin = self.origin, None
        resumes, self.resumes = self.resumes, None
        kept = kept_runs.runs().find(resumes, self.browser)
        if kept is not None and kept.viewer not in (None, self) and kept.viewer.connected and not self.again:
            kept = None  # another page shows it
        if kept is None:
            handle = backend.start(spec, play=playing, origin=origin)
        else:
            handle = kept_runs.runs().take(kept, backend, self, playing)
        try:
            scene = await self._scene(handle)
        except BnnvizError as error:
            self._spawn(self._stop(handle))
            if kept is not None:  # its checkpoint is gone: the run of the address takes its place
                kept_runs.runs().forget(kept)
                self.greet([error.message.text])
                self._starting = True
                return
            self._go_on()
            if self._handle is None:
                self.playing = False
                await self._show(self._screen.show_playing)
            raise
        if scene is None and kept is not None and self._closed:
            kept_runs.runs().leave(kept, self)
            return
        if scene is None:
            if kept is not None:
                kept_runs.runs().forget(kept)
            self._spawn(self._stop(handle))
            return
        if self._before is not None and self._before.run_id == handle.run_id:
            self._before = None
        self._let_go_before()
        self._handle, self._jumps = handle, 0
        # The run lacks changes that were made during its preparation.
        self._starting = self._starting or self._asked is not spec
        self._asked = self._asked if self._starting else None
        self._kept = kept_runs.runs().show(handle, self, self.browser, self.page, _title(handle.spec, scene))
        self._kept.speed, self._kept.opened = self.speed, self.opened
        self.on_begin()
        if kept is not None:
            self.playing = playing = handle.playing
        await self._show(self._screen.show_scene, scene)
        self._lingers = 0.0  # discard the messages of the previous run
        await self._tell("")
        await self._greet()
        if self.speed is not None or kept is not None:
            self._send("speed", value=self.speed)
        if self.playing != playing:
            self._send("play" if self.playing else "pause")
        elif not playing and kept is None:
            # A run that waits for play shows its first segment, not empty axes.
            await self._show(self._first or (lambda: self._send("event")))

    async def _scene(self, handle: Any) -> dict[str, Any] | None:
        """Wait for the scene of a new run, or return None if another spec replaces it."""
        task = asyncio.ensure_future(handle.scene())
        while not task.done():
            await asyncio.wait({task}, timeout=0.2)
            if self._starting or self._closed:
                task.cancel()
                return None
            if not task.done():
                await self._tell(handle.notice or "The run is being prepared.")
        return task.result()

    def _go_on(self) -> None:
        """Return to the previous run after the new one failed to start."""
        before, self._before = self._before, None
        if before is not None and before.alive and not self._starting:
            self._handle, self._asked = before, None
        elif before is not None:
            self._end(before)

    # ---- helpers ------------------------------------------------------------------------------------------

    def _over(self) -> bool:
        """Return whether there is no run to continue."""
        return self._handle is None or self._handle.state in ("ended", "failed")

    def _send(self, name: str, **args: Any) -> None:
        if self.recorded is not None and name not in ("speed", "play", "pause"):
            self.begin(self.spec)
        elif self._handle is not None and not self._starting:
            self._commands += 1
            self._spawn(self._command(self._handle, name, args))

    def _send_latest(self, name: str, **args: Any) -> None:
        """Send a command that overtakes its own kind: a pointer moves faster than a worker answers."""
        if self._handle is None or self._starting:
            return
        waiting = name in self._latest
        self._latest[name] = args
        if not waiting:
            self._commands += 1
            self._spawn(self._command_latest(self._handle, name))

    async def _command_latest(self, handle: Any, name: str) -> None:
        async with self._in_order:
            args = self._latest.pop(name)
        await self._command(handle, name, args)

    async def _command(self, handle: Any, name: str, args: dict[str, Any]) -> None:
        async with self._in_order:
            try:
                await handle.command(name, **args)
            except BnnvizError as error:
                await self._complain(error)
            finally:
                self._commands -= 1
        self._wake.set()

    def _let_go(self) -> None:
        """End the run, if there is one."""
        self._asked = self.spec
        handle, self._handle = self._handle, None
        if handle is not None:
            self._end(handle)

    def _let_go_before(self) -> None:
        """End the run before, if there is one."""
        before, self._before = self._before, None
        if before is not None:
            self._end(before)

    def _end(self, handle: Any) -> None:
        """End a run that the reader has replaced."""
        if self._kept is not None and self._kept.run_id == handle.run_id:
            kept_runs.runs().forget(self._kept)
            self._kept = None
        self._spawn(self._stop(handle))

    async def _stop(self, handle: Any) -> None:
        # A worker that does not answer ends the run when nothing pulls from it.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(handle.command("stop"), 10)

    async def _devices(self, backend: Any) -> None:
        await self._show(self._screen.show_devices, await asyncio.to_thread(backend.devices))

    async def _tell(self, sentence: str, failed: bool = False) -> None:
        lingers = not sentence and time.monotonic() < self._lingers
        if (sentence, failed) != self._notice and not lingers:
            self._notice = (sentence, failed)
            await self._show(self._screen.show_notice, sentence, failed)

    async def _complain(self, error: BnnvizError) -> None:
        self._notice, self._lingers = (error.message.text, True), time.monotonic() + LINGER
        await self._show(self._screen.show_error, error)

    async def _greet(self) -> None:
        sentences, self._greeting = self._greeting, []
        if sentences:
            await self._tell(" ".join(sentences), failed=self._refusing)
            self._lingers = time.monotonic() + LINGER * (1 + len(sentences)) / 2

    async def _show(self, function: Callable[..., None], *args: Any) -> None:
        def apply(doc: Document) -> None:
            # Every view of a new scene changes its models, which Bokeh collects anew once if frozen.
            with set_curdoc(doc), hold(doc, freeze=function == self._screen.show_scene):
                function(*args)

        session = self._server_session()
        if session is not None and not session.destroyed:
            await session.with_document_locked(apply, self._doc)

    async def _rearrange(self, function: Callable[[], None]) -> None:
        async def apply(doc: Document) -> None:
            doc.hold("combine")
            try:
                await in_page_thread(doc, function)
            finally:
                doc.unhold()

        session = self._server_session()
        if session is not None and not session.destroyed:
            async with PAGE_TURN:  # frames go out until it is this page's turn
                await session.with_document_locked(apply, self._doc)
            self.look()

    def _server_session(self) -> Any:
        """Return the server's session of this page; None before it is made and after its end."""
        context = self._doc.session_context
        return None if context is None else context.session

    async def _until(self, moment: float) -> None:
        left = moment - time.monotonic()
        if left > 0:
            try:
                await asyncio.wait_for(self._wake.wait(), left)
            except TimeoutError:
                return
        self._wake.clear()

    def _spawn(self, work: Coroutine) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _title(spec: Any, scene: dict[str, Any]) -> str:
    """Return the run's name in a list: its file, or sampler and target."""
    file = getattr(spec, "file", None)
    return scene["title"] if file is None else file["name"]

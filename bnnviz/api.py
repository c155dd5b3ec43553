"""`sample` and `start`: run a sampler on a target from Python."""

from __future__ import annotations

import atexit
import math
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bnnviz import samplers, targets
from bnnviz import settings as declared
from bnnviz.engine import run as engine
from bnnviz.errors import BnnvizError
from bnnviz.spec import Spec
from bnnviz.targets import BNN

if TYPE_CHECKING:
    from bnnviz.live import Live

__all__ = ["BNN", "Run", "sample", "start"]


_SLICE_S = 0.1
_WATCHED_SLICE_S = 0.02
_WATCHED_FOR_S = 1.0  # after a frame
_CALLBACK_S = 0.1
_LEAVE_S = 2.0

_RUNNING: weakref.WeakSet[Run] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """End what still runs: a thread inside torch while Python goes down would abort the process."""
    runs = list(_RUNNING)
    for run in runs:
        run._stop.set()
        run._wake.set()
    end = time.monotonic() + _LEAVE_S
    for run in runs:
        run._thread.join(max(end - time.monotonic(), 0.0))


class _Turns:
    """A lock that two threads take in turn: who works in a loop does not keep the other out."""

    def __init__(self) -> None:
        self._door, self._room = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        # Who leaves the room must wait at the door behind who waits in it already.
        with self._door:
            self._room.acquire()

    def __exit__(self, *_: object) -> None:
        self._room.release()


class Run:
    """A run that samples in the background of this process.

    Watching, pausing and stepping change no draw. What changes the run or reads it waits until the
    steps under way are done, a tenth of a second at most unless a single step takes longer.

    Attributes
    ----------
    spec : Spec
    """

    def __init__(self, run: engine.Run, callback: Callable[[Run], Any] | None = None, *, paused: bool = False) -> None:
        self._run, self._callback = run, callback
        self._playing, self._speed, self._due = not paused, None, 0.0
        self._called = self._seen = -math.inf
        self._failure: Exception | None = None
        self._listeners: list[Callable[[], Any]] = []
        self._stop, self._wake = threading.Event(), threading.Event()
        # numpy's and torch's own locks make reading draws while they are written safe enough only
        # between two slices of work.
        self._lock = _Turns()
        self._thread = threading.Thread(target=self._work, name="bnnviz-run", daemon=True)

    def _work(self) -> None:
        try:
            while not self._run.finished and not self._stop.is_set():
                with self._lock:
                    worked = self._advance()
                if worked:
                    self._call_back()
                    self._tell()
                else:
                    self._wake.wait(self._rest())
                    self._wake.clear()
        except Exception as failure:  # noqa: BLE001
            # Whatever the target raises is raised in the caller's thread by wait(); the draws stay readable.
            self._failure = failure
        finally:
            self._playing = False
            self._tell()

    def _advance(self) -> bool:
        """Work for a slice, or do what the speed asks for; return whether there was something to do."""
        run = self._run
        if run.phase == "start" or (self._playing and self._speed is None):
            watched = time.monotonic() - self._seen < _WATCHED_FOR_S
            run.advance(_WATCHED_SLICE_S if watched else _SLICE_S)
            return True
        now = time.monotonic()
        if not self._playing or now < self._due:
            return False
        end = now + _WATCHED_SLICE_S
        while self._due <= now < end and not run.finished:
            run.step_proposal()
            # A run that cannot keep up must not owe ever more steps.
            self._due = max(self._due + 1 / self._speed, now - _WATCHED_SLICE_S)
            now = time.monotonic()
        return True

    def _rest(self) -> float | None:
        """Return the seconds until there is something to do again; None if somebody must call first."""
        return max(self._due - time.monotonic(), 0.0) if self._playing and self._speed is not None else None

    def _call_back(self) -> None:
        now = time.monotonic()
        if self._callback is not None and (now - self._called >= _CALLBACK_S or self._run.finished):
            self._called = now
            self._callback(self)

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def _moved(self) -> Run:
        """Let everybody know that the run is not as it was."""
        self._wake.set()
        self._tell()
        return self

    @property
    def _ended(self) -> bool:
        return self._run.finished or self._stop.is_set() or self._failure is not None

    def _check_going(self) -> None:
        if self._ended:
            raise BnnvizError("This run has ended; start a new one.")

    @property
    def spec(self) -> Spec:
        """What is run."""
        return self._run.spec

    @property
    def running(self) -> bool:
        """Whether it has not ended; it may be paused."""
        return self._thread.is_alive()

    @property
    def playing(self) -> bool:
        """Whether it goes on by itself: neither paused nor at its end."""
        return self._playing

    @property
    def phase(self) -> str:
        """Where it is: start, tuning, warm-up, sampling, done or failed."""
        return self._run.phase

    @property
    def progress(self) -> float:
        """Share of the work done, 0 to 1."""
        return self._run.progress

    @property
    def speed(self) -> float | None:
        """Steps a second that it takes at most; None, which it is at first, is full speed. May be set."""
        return self._speed

    @speed.setter
    def speed(self, value: float | None) -> None:
        if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf):
            raise BnnvizError(f"speed = {value!r} must be a number of steps a second above 0, or None.", "speed")
        with self._lock:
            self._speed, self._due = value, time.monotonic()
        self._moved()

    def play(self) -> Run:
        """Go on; return the run.

        Raises
        ------
        BnnvizError
            If it has ended.
        """
        with self._lock:
            self._check_going()
            self._playing, self._due = True, time.monotonic()
        return self._moved()

    def pause(self) -> Run:
        """Rest until `play`; return the run."""
        with self._lock:
            self._playing = False
        return self._moved()

    def step(self) -> Run:
        """Pause, then take exactly one step: one evaluation for every chain; return the run.

        Raises
        ------
        BnnvizError
            If it has ended.
        """
        return self._step(self._run.step_proposal)

    def step_event(self) -> Run:
        """Pause, then step until the watched chain has had an event; return the run.

        Raises
        ------
        BnnvizError
            If it has ended.
        """
        return self._step(self._run.step_event)

    def _step(self, step: Callable[[], None]) -> Run:
        with self._lock:
            self._check_going()
            self._playing = False
            step()
        return self._moved()

    def change(self, **settings: Any) -> Run:
        """Change settings of the sampler between two steps; return the run.

        Estimates begin anew and earlier draws are dropped.

        Raises
        ------
        BnnvizError
            If a value does not fit, the setting cannot change while running, or the run has ended.
        """
        with self._lock:
            self._check_going()
            self._run.change(settings)
        return self._moved()

    def live(self, views: list[str] | None = None, height: int = 520, dark: bool | None = None) -> Live:
        """Return the run's figures, which move with it, for the last line of a notebook's cell.

        The run samples in its own thread and the figures are fed when the browser has painted the last
        ones, so the kernel stays free for other cells. In JupyterLab 4.4 or later with ipykernel 7 the
        figures also move while a cell computes; elsewhere they wait for its end, and the run goes on.
        Figures that nobody sees cost nothing. A run without an end pauses when the last of its figures
        is closed, as when its cell is run once more.

        Parameters
        ----------
        views : list of str, optional
            Names of the views to show, such as ``["trajectory", "trace"]``; all that the run can feed
            if left out.
        height : int
            Of the figures together, in pixels.
        dark : bool, optional
            Colours for a dark page; left out, they follow the notebook's theme.

        Returns
        -------
        Live
            A widget; it may be shown more than once.

        Raises
        ------
        BnnvizError
            If a library is missing, or there is no such view.
        """
        try:
            from bnnviz.live import Live
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("bnnviz"):
                raise
            raise BnnvizError(
                f"Live figures need {error.name}; install it with: pip install 'bnnviz[notebook]'."
            ) from error
        return Live(self, views, height, dark)

    def listen(self, listener: Callable[[], Any]) -> None:
        """Have a function called, in whatever thread, each time the run may have something new to show."""
        self._listeners.append(listener)

    def scene(self) -> dict[str, Any]:
        """Return what stays the same for views while the run goes on (see ARCHITECTURE, frame)."""
        with self._lock:
            return self._run.scene()

    def frame(self, want: list[str]) -> dict[str, Any]:
        """Return the wanted parts of what views show now (see ARCHITECTURE, frame)."""
        with self._lock:
            self._seen = time.monotonic()
            frame = self._run.frame(want)
        if "status" in frame:
            more = {"playing": self._playing, "speed": self._speed, "ended": self._ended}
            if self._failure is not None:
                more["message"] = str(self._failure)
            frame["status"] = frame["status"] | more
        return frame

    @property
    def moment(self) -> tuple:
        """Something that is different whenever a frame would be."""
        run = self._run
        return run.steps, run.phase, run.era, self._playing, self._speed, self._ended

    def wait(self, timeout: float | None = None) -> Run:
        """Wait until the run has ended, or ``timeout`` seconds have passed; return the run.

        Raises
        ------
        BnnvizError
            If every chain met values that are not finite, or the target or sampler failed. The draws
            made until then stay in ``draws``. Also if the run is paused and there is no timeout.
        """
        if timeout is None and not (self._playing or self._ended):
            raise BnnvizError("The run is paused and would be waited for in vain; play() it first.")
        self._thread.join(timeout)
        if self._failure is not None:
            raise self._failure
        if self._run.phase == "failed":
            raise BnnvizError(self._run.error or "The run failed.")
        return self

    def stop(self) -> Run:
        """End the run early and keep its draws."""
        self._stop.set()
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        return self

    @property
    def draws(self) -> np.ndarray:
        """Kept draws, (chains, draws, dim)."""
        with self._lock:
            return self._run.draws

    def event_weights(self) -> np.ndarray | None:
        """Return weights (chains, draws) of sum 1 that undo the bias of draws at events (``samples="events"``).

        Draws at events lie at x in proportion to pi(x) (refresh rate + mean rate at x); the weights are the reciprocal.
        They hold for a bound that is not violated. None for draws that need no weights.
        """
        with self._lock:
            return self._run.event_weights()

    @property
    def stats(self) -> dict[str, Any]:
        """Counts and ratios of the kernel."""
        with self._lock:
            return self._run.stats

    def summary(self) -> dict[str, Any]:
        """Return settings, costs, and estimates with their errors, as plain JSON."""
        with self._lock:
            return self._run.summary()

    def to_arviz(self) -> Any:
        """Return the draws as an ArviZ data tree (an ``xarray.DataTree``)."""
        with self._lock:
            return self._run.to_arviz()

    def save(self, path: Any) -> Any:
        """Write draws and header to a NetCDF file that ArviZ opens; return its path."""
        with self._lock:
            return self._run.save(path)

    def __repr__(self) -> str:
        shape = "x".join(str(n) for n in self.draws.shape)
        return f"<Run {self._run.sampler.title} on {self._run.target.describe_value()}: {self.phase}, draws {shape}>"


def start(
    target: Any,
    sampler: Any = "bps",
    *,
    dim: int | None = None,
    draws: int | None = 1000,
    warmup: int = 200,
    chains: int = 4,
    seed: int = 0,
    device: str = "auto",
    dtype: str = "float32",
    kernel: str = "eager",
    settings: dict[str, Any] | None = None,
    target_settings: dict[str, Any] | None = None,
    paused: bool = False,
    callback: Callable[[Run], Any] | None = None,
) -> Run:
    """Start sampling in the background and return at once.

    Parameters
    ----------
    target : str, Spec, Target or callable
        A registered name; a `Spec`, which says everything else too; a `BNN` of your network and data
        or another `Target`; or a function U of states (chains, dim) in torch that returns (chains,),
        minus the log density up to a constant.
    sampler : str or Sampler
        A registered name, or an instance with its settings.
    dim : int, optional
        Dimension of a state; needed for a function only.
    draws : int or None
        Draws to keep of each chain; None goes on until ``stop``.
    warmup : int
        Draws of each chain to throw away first.
    chains : int
        Chains in lock-step.
    seed : int
        Seed of the run's one generator.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    dtype : {"float32", "float64"}
    kernel : {"eager", "compiled"}
        ``compiled`` makes machine code of the whole step: up to seven times as fast, after half a minute the first
        time. A run with a number of draws waits for it, so that it always gives the same draws.
    settings, target_settings : dict, optional
        Settings of the sampler and of a named target, by name.
    paused : bool
        Find the starting points, then wait for ``play`` or ``step``.
    callback : callable, optional
        Called with the run about ten times a second, in the run's thread.

    Returns
    -------
    Run

    Raises
    ------
    BnnvizError
        If something given does not fit; the sentence says what and the remedy.
    """
    if isinstance(target, Spec):
        spec, own = target.checked(), None
    else:
        run = {"draws": draws, "warmup": warmup, "chains": chains, "seed": seed}
        run |= {"device": device, "dtype": dtype, "kernel": kernel}
        spec, own = _spec(target, sampler, dim, settings, target_settings, run)
    instance = sampler if isinstance(sampler, samplers.Sampler) else None
    run = Run(engine.Run(spec, target=own, sampler=instance), callback, paused=paused)
    _RUNNING.add(run)
    run._thread.start()
    return run


def sample(target: Any, sampler: Any = "bps", **options: Any) -> Run:
    """Sample and return the finished run; takes what `start` takes.

    Examples
    --------
    >>> run = sample("gaussian", "bps", draws=200, chains=8)
    >>> run.draws.shape
    (8, 200, 2)
    """
    run = start(target, sampler, **options)
    try:
        return run.wait()
    except (KeyboardInterrupt, BnnvizError):
        run.stop()
        raise


def _spec(
    target: Any,
    sampler: Any,
    dim: int | None,
    given: dict[str, Any] | None,
    target_settings: dict[str, Any] | None,
    run: dict[str, Any],
) -> tuple[Spec, targets.Target | None]:
    """Return a checked spec, and the target if it is an object of the caller's."""
    own = _own_target(target, dim)
    name, values = _sampler(sampler, given or {})
    spec = Spec(
        target=target if own is None else own.title,
        target_settings=dict(target_settings or {}),
        sampler=name,
        settings=values,
        **run,
    )
    return spec.checked(own_target=own is not None), own


def _own_target(target: Any, dim: int | None) -> targets.Target | None:
    if isinstance(target, str):
        return None
    if isinstance(target, targets.Target):
        return target
    if isinstance(target, torch.nn.Module):
        raise BnnvizError("A module alone is no target: give bnnviz.BNN(module, (inputs, observations)).", "target")
    if not callable(target):
        raise BnnvizError(f"target is a name, a Target, a BNN or a function, not {type(target).__name__}.", "target")
    if dim is None:
        raise BnnvizError("A function as a target needs dim=, the dimension of a state.", "dim")
    return targets.Callable(target, dim)


def _sampler(sampler: Any, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(sampler, str):
        return sampler, dict(given)
    if isinstance(sampler, samplers.Sampler) and sampler.registered:
        if given:
            raise BnnvizError("Give settings to the sampler instance itself, or name the sampler.", "settings")
        names = [setting["name"] for setting in declared.describe(type(sampler))]
        return sampler.registered, {name: getattr(sampler, name) for name in names}
    raise BnnvizError(f"sampler is a name or a registered Sampler, not {type(sampler).__name__}.", "sampler")

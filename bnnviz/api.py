"""`sample`, `start` and `race`: run samplers on a target from Python."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bnnviz import optional, samplers, targets
from bnnviz import settings as declared
from bnnviz.background import Background
from bnnviz.engine.demos.double_well import DoubleWellDemo
from bnnviz.engine.evaluation import attack as attacking
from bnnviz.engine.evaluation import metrics
from bnnviz.engine.evaluation import prior_search as searching
from bnnviz.engine.evaluation import uncertainty as unsure
from bnnviz.engine.evaluation.metrics import RESAMPLES
from bnnviz.engine.evaluation.prior_search import PriorSearch
from bnnviz.engine.race import race as racing
from bnnviz.engine.recording import export, reader, recorded_frames, warm_start
from bnnviz.engine.recording import replay_frames as filming
from bnnviz.engine.recording import resume as resuming
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.recording.writer import RecordingWriter
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.specs.double_well import WellsSpec
from bnnviz.specs.race import DEFAULT_BUDGET, RaceSpec
from bnnviz.specs.run import POINTS, Spec
from bnnviz.targets import BNN

__all__ = [
    "BNN",
    "Race",
    "Run",
    "attack",
    "measure",
    "race",
    "recording",
    "replay",
    "resume",
    "sample",
    "search_prior",
    "start",
    "uncertainty",
    "wells",
]

log = logging.getLogger(__name__)


class Run(Background):
    """A run that samples in the background of this process.

    Watching, pausing and stepping change no draw. What changes the run or reads it waits until the
    steps under way are done, a tenth of a second at most unless a single step takes longer.

    Attributes
    ----------
    spec : Spec
    recording : KeptRun or None
        Where it is kept on disk while it goes on.
    """

    _run: ViewedRun
    _recorder: RecordingWriter | None = None

    def _keep(self, folder: Path) -> Run:
        """Record the run from now on."""
        self._recorder = RecordingWriter(self._run, folder)
        return self

    @property
    def recording(self) -> KeptRun | None:
        """The recording of the run."""
        return None if self._recorder is None else KeptRun(self._recorder.folder)

    def _advance(self) -> bool:
        worked = super()._advance()
        if self._recorder is not None and worked:
            self._write(self._recorder.note)
        return worked

    def _work(self) -> None:
        super()._work()
        if self._recorder is not None:
            with self._lock:
                self._write(partial(self._recorder.close, asks=self._failure is None))

    def _write(self, write: Callable[[], Any]) -> None:
        """Write what is new; what is wrong with that is noted once, and the run goes on."""
        try:
            write()
        except BnnvizError as error:
            if error.sentence not in self._run.notes:
                self._run.notes.append(error.sentence)
                log.warning("%s", error.sentence)

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
    record: str | Path | None = None,
    start: str | Path | Run | dict[str, Any] | None = None,
    start_from: str = POINTS[0],
) -> Run:
    """Start sampling in the background and return at once.

    Parameters
    ----------
    target : str, Spec, PriorSearch, Target or callable
        A registered name; a `Spec`, which says everything else too, or what `search_prior` found; a `BNN` of your
        network and data or another `Target`; or a function U of states (chains, dim) in torch that returns (chains,),
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
    record : str or Path, optional
        Keep the run on disk while it goes on, under this name or in this folder (a path).
    start : str, Path, Run or dict, optional
        Let the chains set out from the draws of a recording (its name, or its folder) or of a run of this process, of
        any sampler on a target of as many dimensions; or what a spec says of that (`bnnviz.specs.run.Spec`).
    start_from : {"last", "draws"}
        Chain by chain from the last draw; with more or fewer chains these are dealt in turn. Or from draws that the
        seed chooses, without replacement where there are enough, by their weights where they have weights.

    Returns
    -------
    Run

    Raises
    ------
    BnnvizError
        If something given does not fit; the sentence says what and the remedy.
    """
    if record is not None:
        reader.check_zarr("record")
    folder = None if record is None else reader.new_place(str(record))
    search = target.record() if isinstance(target, PriorSearch) else None
    target = target.spec if isinstance(target, PriorSearch) else target
    if isinstance(target, Spec):
        spec, own = target.checked(), None
    else:
        run = {"draws": draws, "warmup": warmup, "chains": chains, "seed": seed}
        run |= {"device": device, "dtype": dtype, "kernel": kernel}
        spec, own = _spec(target, sampler, dim, settings, target_settings, run)
    if start is not None:
        spec = _from_there(spec, start, start_from)
    spec = warm_start.resolved(spec.checked(own_target=own is not None))
    instance = sampler if isinstance(sampler, samplers.Sampler) else None
    made = ViewedRun(spec, target=own, sampler=instance)
    made.search = search
    run = Run(made, callback, paused=paused)
    return (run if folder is None else run._keep(folder)).begin()


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


class KeptRun(Recording):
    """A recording, with what else a program asks of it."""

    def to_arviz(self) -> Any:
        """Return the draws that all living chains have as an ArviZ data tree (an ``xarray.DataTree``).

        Raises
        ------
        BnnvizError
            If there are none, or the recording is damaged.
        """
        return export.to_arviz(self)


def recording(word: str | Path) -> KeptRun:
    """Return a recording, by its name or its folder.

    Its ``header``, ``progress`` and ``summary`` say what it is; ``draws()``, ``log_weights()`` and ``steps()`` read its
    arrays, and ``to_arviz()`` makes an ArviZ data tree of the draws.

    Raises
    ------
    BnnvizError
        If there is none.
    """
    return KeptRun(reader.find(word))


def resume(
    word: str | Path, *, target: targets.Target | None = None, sampler: samplers.Sampler | None = None, **options: Any
) -> Run:
    """Go on with a recorded run in the background, with the draws that it would have made, and record these too.

    Parameters
    ----------
    word : str or Path
        The recording's name, or its folder.
    target, sampler : optional
        Objects of your own, where the run began with such.
    **options
        ``paused`` and ``callback``, as of `start`.

    Raises
    ------
    BnnvizError
        If there is none, or a part of it is damaged.
    """
    folder = reader.find(word)
    return Run(resuming.resume(folder, target=target, sampler=sampler), **options)._keep(folder).begin()


class Race(Background):
    """Samplers that race in the background of this process, each with the same budget of gradients.

    Attributes
    ----------
    spec : RaceSpec
    """

    _run: racing.Race

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row of figures for each lane, the best first; an unknown figure is nan, and has no rank."""
        with self._lock:
            return self._run.table()

    @property
    def curves(self) -> list[dict[str, Any]]:
        """For each lane its errors against the gradients it had spent, as arrays."""
        with self._lock:
            return self._run.curves()

    @property
    def said(self) -> str:
        """How the race stands, in a sentence or two."""
        caption = self.frame(["caption"])["caption"]
        return " ".join(part for part in (caption["text"], caption["warning"]) if part)

    def lane_draws(self, lane: int) -> np.ndarray:
        """Return the kept draws (chains, draws, dim) of a lane, by its place in the spec."""
        with self._lock:
            return self._run.lanes[lane].draws

    def figure(self, path: str | Path) -> Path:
        """Write curves, table and the sentence on them to an HTML page of its own; return its path.

        Raises
        ------
        BnnvizError
            If bokeh is missing.
        """
        text = _leaderboard().race_page(self.scene(), self.frame(["caption", "curves", "table"]))
        path = Path(path)
        path.write_text(text, encoding="utf-8")
        return path

    def _repr_html_(self) -> str | None:
        if not optional.has("bokeh"):
            return None  # a notebook shows the text then
        table = self.frame(["table"])["table"]
        return _leaderboard().table_html(table["rows"], table["scores"], self.spec.lanes[0].chains)

    def __repr__(self) -> str:
        return f"<Race {', '.join(self.spec.names())}: {self.said}>"


def measure(
    target_or_run: Any, draws: Any = None, log_weights: Any = None, resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Any]:
    """Measure how well draws of a network predict its test rows; see `bnnviz.engine.evaluation.metrics.measure`."""
    return _of(target_or_run, metrics.measure, draws, log_weights, resamples, seed)


def uncertainty(target_or_run: Any, draws: Any = None, log_weights: Any = None, **options: Any) -> dict[str, Any]:
    """Say how sure predictions of classes are, and how rightly so.

    See `bnnviz.engine.evaluation.uncertainty.uncertainty`.

    Examples
    --------
    >>> found = uncertainty(run, ood="notmnist")  # doctest: +SKIP
    >>> found["summary"]["detection"]["auroc"]  # doctest: +SKIP
    """
    return _of(target_or_run, unsure.uncertainty, draws, log_weights, **options)


def attack(target_or_run: Any, draws: Any = None, log_weights: Any = None, **options: Any) -> dict[str, Any]:
    """Attack test rows through one draw, and say how the others predict; see `bnnviz.engine.evaluation.attack`."""
    return _of(target_or_run, attacking.attack, draws, log_weights, **options)


def _of(target_or_run: Any, compute: Callable[..., dict[str, Any]], *given: Any, **options: Any) -> dict[str, Any]:
    """Compute something of a network, or of a run, which waits meanwhile."""
    if isinstance(target_or_run, Run):
        with target_or_run._lock:
            return compute(target_or_run._run, *given, **options)
    return compute(target_or_run, *given, **options)


def search_prior(
    target: Any,
    sampler: Any = "hmc",
    *,
    settings: dict[str, Any] | None = None,
    target_settings: dict[str, Any] | None = None,
    low: float = searching.LOW,
    high: float = searching.HIGH,
    tries: int = searching.TRIES,
    by: str = "nll",
    progress: Callable[[int, float], Any] | None = None,
    **options: Any,
) -> PriorSearch:
    """Search the standard deviation of a network's prior that does best on the validation rows.

    Parameters
    ----------
    target : str or Spec
        A registered name, or a `Spec`, which says everything else too.
    sampler, settings, target_settings
        As in `start`.
    low, high, tries, by, progress
        As in `bnnviz.engine.evaluation.prior_search.search_prior`.
    **options
        draws, warmup, chains, seed, device, dtype and kernel, as in `Spec`.

    Returns
    -------
    PriorSearch
        With ``prior_sd``, ``tries`` and ``spec``; give it to `sample`, and the run keeps the search in its summary and
        its file.

    Raises
    ------
    BnnvizError
        If something given does not fit, there are no validation rows, or every try failed.

    Examples
    --------
    >>> network = {"data": "pmcnet_wine", "hidden": "3"}
    >>> found = search_prior("network", target_settings=network, draws=20, tries=3)  # doctest: +SKIP
    >>> run = sample(found)  # doctest: +SKIP
    """
    spec = target
    if not isinstance(target, Spec):
        if not isinstance(target, str):
            raise BnnvizError("The prior is searched for a registered target or a Spec.", "target")
        spec, _ = _spec(target, sampler, None, settings, target_settings, options)
    return searching.search_prior(spec.checked(), low=low, high=high, tries=tries, by=by, progress=progress)


def wells(**settings: Any) -> DoubleWellDemo:
    """Sample the double well with FuncHMC and with HMC, 400 runs of each, and return what came out.

    Parameters
    ----------
    **settings
        As `bnnviz.specs.double_well.WellsSettings` declares them, such as ``reading="text"`` or ``moves=100``.

    Returns
    -------
    DoubleWellDemo
        Finished; `DoubleWellDemo.figures` has distances from the truth, coverage, crossings and costs.

    Raises
    ------
    BnnvizError
        If a value does not fit.

    Examples
    --------
    >>> figures = wells(moves=5).figures()
    >>> figures["func_hmc"]["gradients"] // figures["hmc"]["gradients"]
    20
    """
    made = DoubleWellDemo(WellsSpec(settings))
    while not made.finished:
        made.advance(1.0)
    return made


def race(
    target: Any,
    lanes: Sequence[Any] = (),
    *,
    budget: int = DEFAULT_BUDGET,
    chains: int = 8,
    seed: int = 0,
    warmup: int = 200,
    device: str = "auto",
    dtype: str = "float32",
    target_settings: dict[str, Any] | None = None,
    wait: bool = True,
    callback: Callable[[Race], Any] | None = None,
) -> Race:
    """Race two to six samplers on one target: the same start, seed and budget of per-example gradients for each.

    Parameters
    ----------
    target : str or RaceSpec
        A registered name, or a `RaceSpec`, which says everything else too.
    lanes : sequence of str or (str, dict)
        Registered names of samplers, each alone or with its settings.
    budget : int
        Per-example gradients that each lane may spend, all its chains together; rejected proposals, tuning and warm-up
        are charged.
    chains, seed, device, dtype, target_settings
        For all lanes, as in `start`.
    warmup : int
        Draws of each chain that are thrown away first.
    wait : bool
        Whether to return when the race has ended, or at once.
    callback : callable, optional
        Called with the race about ten times a second, in its thread.

    Returns
    -------
    Race

    Raises
    ------
    BnnvizError
        If something given does not fit, or every lane diverged.
    """
    spec = target
    if not isinstance(target, RaceSpec):
        shared = {"target": target, "target_settings": dict(target_settings or {}), "chains": chains, "seed": seed}
        shared |= {"warmup": warmup, "device": device, "dtype": dtype, "draws": None}
        named = [(lane, {}) if isinstance(lane, str) else lane for lane in lanes]
        spec = RaceSpec(tuple(Spec(sampler=name, settings=dict(given), **shared) for name, given in named), budget)
    found = Race(racing.Race(spec), callback).begin()
    if not wait:
        return found
    try:
        return found.wait()
    except (KeyboardInterrupt, BnnvizError):
        found.stop()
        raise


def replay(
    run: Any,
    out: str | Path,
    *,
    frames: int = filming.FRAMES,
    steps: int | None = None,
    recorded: bool | None = None,
    dark: bool | None = None,
    progress: Callable[[float, str], Any] | None = None,
) -> Path:
    """Write a run as one HTML page that plays it without a server and without a network.

    Parameters
    ----------
    run : Run, Spec, ReplayFrames, str or Path
        A run of this process, which is done again from its spec and change log and not touched; what to run; a film; or
        where one is: a recording's folder, a saved run (.nc), a spec (.json) or a film (.npz).
    out : str or Path
        The page; the ending ``.html`` is added where there is none.
    frames : int, default 300
        At most; the first third are single steps.
    steps : int, optional
        The last step; else where the run ended.
    recorded : bool, optional
        Whether the frames are shown that a recording has kept. Default: where the run cannot be done again, its device
        being another machine's.
    dark : bool, optional
        How the page begins; None follows the reader's browser.
    progress : callable, optional
        Called with the share that is done, 0 to 1, and the phase of the run.

    Returns
    -------
    Path

    Raises
    ------
    BnnvizError
        If the run cannot be done again, bokeh is missing, or the page cannot be written.

    Examples
    --------
    >>> replay(run, "run.html")  # doctest: +SKIP
    """
    with optional.needed("A replay needs"):
        from bnnviz.replays.player import write
    if isinstance(run, Run):
        with run._lock:
            run = filming.past_of_run(run._run)
    elif isinstance(run, str | Path):
        run = recorded_frames.frames_of(run, frames, steps=steps, recorded=recorded, progress=progress)
    elif not isinstance(run, Spec | filming.ReplayFrames):
        raise BnnvizError(f"Give a run, a Spec, a film or a path to replay, not {type(run).__name__}.", "run")
    if not isinstance(run, filming.ReplayFrames):
        run = filming.take_frames(run, frames, steps=steps, progress=progress)
    return write(run, out, dark)


def _leaderboard() -> Any:
    with optional.needed("A figure needs"):
        from bnnviz.views.comparison import leaderboard
    return leaderboard


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
    name, values = _sampler(sampler, _plain("settings", given))
    spec = Spec(
        target=target if own is None else own.title,
        target_settings=_plain("target_settings", target_settings),
        sampler=name,
        settings=values,
        **_plain("run", run),
    )
    return spec.checked(own_target=own is not None), own


def _plain(name: str, given: Any) -> dict[str, Any]:
    """Return a dict of values by name with Python's numbers in the place of NumPy's."""
    if given is not None and not isinstance(given, Mapping):
        raise BnnvizError(f"{name} is a dict of values by name, not {given!r:.60}.", name)
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in (given or {}).items()}


def _from_there(spec: Spec, start: Any, points: str) -> Spec:
    """Return a checked spec whose chains set out from a recording, from a run, or from what a spec says of one."""
    if isinstance(start, dict):
        return spec.replace(start=start, start_points=None)
    if not isinstance(start, Run):
        if not isinstance(start, str | Path):
            raise BnnvizError(f"start is a recording's name or folder, or a run, not {type(start).__name__}.", "start")
        return spec.replace(start={"recording": warm_start.named(start), "points": points}, start_points=None)
    spec = spec.replace(start={"recording": None, "points": points}).checked(own_target=True)
    with start._lock:
        taken = warm_start.of_run(start._run, points, spec.chains, spec.seed)
    return spec.replace(start_points=taken.pack())


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

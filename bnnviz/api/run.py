"""Sample a target in the background of this process, record it, and resume recordings."""

from __future__ import annotations

import html
import inspect
import logging
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never

import numpy as np
import torch

from bnnviz import optional, samplers, targets
from bnnviz import settings as declared
from bnnviz.api import automatic, given
from bnnviz.api.precision import plain, precision
from bnnviz.api.predict import WithPredictions, table_of
from bnnviz.api.recorded import PublicRecording
from bnnviz.api.seeds import Seed, number
from bnnviz.engine.automatic.tables import Limit
from bnnviz.engine.automatic.tables import automatic as choose
from bnnviz.engine.background import Background
from bnnviz.engine.recording import reader
from bnnviz.engine.recording import resume as resuming
from bnnviz.engine.run.start_points import packed
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError, SamplingWarning, Suggesting, suggests
from bnnviz.progress_bar import RunProgress
from bnnviz.specs.catalogue import OWN
from bnnviz.specs.run import Spec

if TYPE_CHECKING:
    import xarray

    from bnnviz.data import UserTable
    from bnnviz.notebook.widget import Live

log = logging.getLogger(__name__)

Kernel = Literal["eager", "compiled"]
Dtype = Literal["float32", "float64", "auto"]
_SHOWN = ("chains", "draws", "ess_min", "rhat_max", "seconds")  # of a summary, in the representation of a run
_IN_LINE = ("ess_min", "rhat_max")


class WithFigures(Background, Suggesting):
    """A background that a notebook can show."""

    def live(self, views: list[str] | None = None, height: int = 520, dark: bool | None = None) -> Live:
        """Return the run's live figures, for the last line of a notebook's cell.

        The run samples in its own thread, and the figures update when the browser is ready, so the kernel stays free
        for other cells. With JupyterLab 4.4 or later and ipykernel 7, the figures also update while a cell is executed.
        Otherwise they update when the cell has finished. Hidden figures cost nothing. A run without an end pauses when
        its last figure is closed, for example when its cell is run again.

        Parameters
        ----------
        views : list of str, optional
            Names of the views to show, such as ``["trajectory", "trace"]``. All available views by default.
        height : int
            Total height of the figures in pixels.
        dark : bool, optional
            Whether to use the dark theme. The default is the theme of the notebook.

        Returns
        -------
        Live
            A widget, which can be displayed several times.

        Raises
        ------
        BnnvizError
            If there is no such view.
        """
        optional.check(("anywidget", "bokeh"), "Live figures need", extra="notebook")
        from bnnviz.notebook.widget import Live

        return Live(self, views, height, dark)


class BackgroundRun(WithFigures, WithPredictions):
    """A run that samples in the background of the current process.

    Attributes
    ----------
    spec : Spec
    recording : PublicRecording or None
        The recording on disk, if any.

    Examples
    --------
    >>> import bnnviz
    >>> run = bnnviz.start("banana", "bps", draws=None, paused=True)
    >>> run = run.step()
    >>> run.playing
    False
    >>> run = run.stop()
    """

    _run: ViewedRun

    @property
    def spec(self) -> Spec:
        """The executed run."""
        return self._run.spec

    @property
    def recording(self) -> PublicRecording | None:
        """The recording of the run."""
        if self._folder is None:
            return None
        return PublicRecording(self._folder, self._run.target if self.spec.target in OWN else None)

    def change(self, **settings: Any) -> BackgroundRun:
        """Change settings of the sampler and return the run.

        The change takes effect between two steps. Earlier draws are discarded and estimates restart.

        Raises
        ------
        BnnvizError
            If a value is invalid, the setting cannot change while running, or the run has ended.
        """
        return self._command("change", settings=settings)

    @suggests
    def extend(self, draws: int, progress_bar: bool | None = None) -> BackgroundRun:
        """Add draws to each chain of a finished run, without a new warm-up, and return the run.

        Parameters
        ----------
        draws : int
            Number of draws per chain to add.
        progress_bar : bool, optional
            As in `bnnviz.sample`.

        Raises
        ------
        BnnvizError
            If the run has not finished or the number of draws is invalid.

        Examples
        --------
        >>> import bnnviz
        >>> run = bnnviz.sample("gaussian", "hmc", draws=20, warmup=50, chains=2)
        >>> run.extend(30).draws.shape
        (2, 50, 2)
        """
        with RunProgress(progress_bar) as shown:
            with self._lock:
                self._run.extend(given.count("draws", draws))
            self._begin_again()
            self.listen(lambda: shown.show(self._run))
            return self.run_to_end()

    @property
    def draws(self) -> np.ndarray:
        """Draws after warm-up, shape (chains, draws, dim)."""
        with self._lock:
            return self._run.draws

    def table(self) -> UserTable | None:
        """Return the table that the network was trained on, or None without a user file."""
        return table_of(self.spec.attachment, self._run.target)

    def to_arviz(self, predictions: bool | None = None) -> xarray.DataTree:
        """Return the draws as an ``xarray.DataTree`` for ArviZ.

        Groups are ``posterior`` and ``sample_stats``, and for a network ``log_likelihood``, ``posterior_predictive``,
        ``observed_data`` and ``constant_data``, for its training rows in the units of the data.

        Parameters
        ----------
        predictions : bool, optional
            Whether to include the last four groups. By default they are included if none of them has more than 20
            million numbers.
        """
        with self._lock:
            return self._run.to_arviz(predictions)

    def __reduce__(self) -> tuple:
        """Pickle the run in its current state. It is restored paused, with its draws, and can continue.

        The pickle includes the caller's own target or network, but not the recording.
        """
        with self._lock:
            return _unpickled, (self._run.checkpoint(), self._run.target if self._run.own_target else None)

    def __repr__(self) -> str:
        shape = "x".join(str(n) for n in self.draws.shape)
        title = f"{self._run.sampler.title} on {self._run.target.describe_value()}: {self.phase}, draws {shape}"
        return f"<Run {title}{''.join(f', {name} {value}' for name, value in self._figures() if name in _IN_LINE)}>"

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{value}</td></tr>" for name, value in self._figures())
        found = self.summary() if self.phase == "done" else {"warnings": []}
        verdict = [found["verdict"]] if "verdict" in found else []
        title = f"{self._run.sampler.title} on {self._run.target.describe_value()}: {self.phase}"
        lines = "".join(f"<p>{html.escape(str(line))}</p>" for line in (title, *verdict, *found["warnings"]))
        return f"{lines}<table>{cells}</table>"

    def _figures(self) -> list[tuple[str, str]]:
        """Return the metrics in the representation of a finished run."""
        found = self.summary() if self.phase == "done" else {}
        return [(name, f"{found[name]:.4g}") for name in _SHOWN if found.get(name) is not None]


@torch.inference_mode(False)
def _unpickled(checkpoint: bytes, target: targets.Target | None) -> BackgroundRun:
    """Restore a pickled run."""
    run = ViewedRun.restore(checkpoint, target=target)
    Limit.resume(run)
    return BackgroundRun(run, paused=True).begin()


@torch.inference_mode(False)
def start(
    target: Any,
    sampler: str | samplers.Sampler = "bps",
    *,
    dim: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    draws: int | None = 1000,
    warmup: int = 200,
    chains: int = 4,
    seed: Seed = 0,
    device: str | torch.device = "auto",
    dtype: Dtype | torch.dtype = "float32",
    kernel: Kernel = "eager",
    settings: dict[str, Any] | None = None,
    target_settings: dict[str, Any] | None = None,
    paused: bool = False,
    callback: Callable[[BackgroundRun], Any] | None = None,
    record: str | Path | None = None,
    start: Any = None,
    minutes: float | None = None,
    **unknown: Never,
) -> BackgroundRun:
    """Start sampling in the background and return immediately.

    Parameters
    ----------
    target : str, Spec, UserTable, Target or callable
        A registered name; a `Spec`, which replaces all other arguments; a table from `bnnviz.data.read_table`; a `BNN`
        or another `Target`; a distribution of ``torch.distributions``; or a function U of states (chains, dim) in torch
        that returns (chains,), minus the log density up to a constant.
    sampler : str or Sampler
        A registered name or an instance. With ``auto``, a pilot run selects a sampler for the available time,
        unspecified settings of a named network, and draws, warmup and chains if they are not given. The pilot requires
        a network on a table and blocks. For a density, ``auto`` is ``bps``.
    dim : int, optional
        Dimension of the state. Required for a function of states.
    parameters : mapping of str to shape or Parameter, optional
        Named parameters of a function. The function receives a dict of tensors ``(chains, *shape)`` instead of states.
        A shape is an integer or a tuple. `positive`, `above`, `below`, `interval`, `simplex` and `Parameter` define
        constraints, whose log-Jacobians are added to U. ``draws`` contains unconstrained coordinates. ``parameters()``
        returns the parameters.
    draws : int or None
        Number of draws per chain. None samples until ``stop`` is called.
    warmup : int
        Number of initial draws per chain to discard.
    chains : int
        Number of chains. All chains advance in lock-step.
    seed : int, numpy.random.Generator, torch.Generator or None
        Seed of the random number generator, or a generator from which to draw the seed. None selects a random seed. The
        spec contains the seed.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    dtype : {"float32", "float64", "auto"} or torch.dtype
        With ``auto``, functions and custom densities of at most 50 dimensions use float64 on a CPU if they support it,
        and all others use float32. This evaluates a function once before the run starts.
    kernel : {"eager", "compiled"}
        ``compiled`` compiles the whole step, which is many times faster but takes about half a minute on first use.
        Runs with a given number of draws wait for the compiler, so that they are reproducible. Compiled and eager draws
        differ by rounding errors.
    settings, target_settings : dict, optional
        Settings of the sampler and of a named target, by name.
    paused : bool
        Whether to wait for ``play`` or ``step`` after finding the starting points.
    callback : callable, optional
        Function that is called with the run about ten times per second, in the thread of the run.
    record : str or Path, optional
        Name of a recording, or its folder (a `Path` or a string with ``/``). The default is not to record the run.
    start : array_like, dict, list of dict or "module", optional
        Starting points of the chains, ``(points, dim)`` or ``(dim,)``, cyclically if there are more chains than points;
        for named parameters a dict of values, one or one per chain for each, or a list of dicts; for a custom network
        ``"module"`` (the weights of the module), a ``state_dict``, or a list with one ``state_dict`` per chain. Draws
        of another run, ``run.draws[:, -1]``, are such points.
    minutes : float, optional
        Limit of the computing time (CPU time of the run's thread, or time on the GPU), which the load of the machine
        does not change. The search for starting points takes at most 30% of it, and the warm-up ends after 70%. With
        ``auto`` it includes the pilot, and the default is 0.25.
    **unknown
        Unknown arguments raise an error with a suggestion.

    Returns
    -------
    Run

    Raises
    ------
    BnnvizError
        If an argument is invalid.

    Examples
    --------
    >>> import bnnviz
    >>> run = bnnviz.start("gaussian", "hmc", draws=20, warmup=10, chains=2)
    >>> run.wait().draws.shape
    (2, 20, 2)
    """
    given.refuse(unknown, _keywords(), sampler)
    if record is not None:
        reader.check_zarr()
    folder = None if record is None else reader.new_place(record)
    target, target_settings, attachment = automatic.of_table(target, target_settings)
    if minutes is not None and not minutes > 0:
        raise BnnvizError(f"minutes = {minutes:g} must be above 0.", "minutes")
    chooses = automatic.is_automatic(target, sampler, settings, start)
    sampler = Spec.sampler if isinstance(sampler, str) and sampler == automatic.AUTO else sampler
    if isinstance(target, Spec):
        spec, own = target.checked(), None
    else:
        own = given.own_target(target, dim, parameters)
        dtype = precision(own, device) if dtype == "auto" else dtype
        run = {"draws": draws, "warmup": warmup, "chains": chains, "seed": number(seed)}
        run |= {"device": device, "dtype": dtype, "kernel": kernel, "attachment": attachment}
        name, values = _sampler(sampler, _plain("settings", settings))
        spec = Spec(
            target=target if own is None else own.title,
            target_settings=_plain("target_settings", target_settings),
            sampler=name,
            settings=values,
            **_plain("run", run),
        ).checked(own_target=own is not None)
    chosen = None
    if chooses:
        named = {name for name in ("draws", "warmup", "chains") if run[name] != getattr(Spec, name)}
        chosen = choose(spec, named | set(target_settings or {}), minutes, own)
        spec = chosen.spec
    if start is not None:
        spec = spec.replace(start=None, start_points=packed(given.points(start, own)))
    instance = sampler if isinstance(sampler, samplers.Sampler) else None
    made = ViewedRun(spec, target=own, sampler=instance)
    if chosen is not None:
        chosen.attach(made)
    elif minutes is not None:
        Limit(made, 60 * minutes)
    return BackgroundRun(made, callback, paused=paused, folder=folder).begin()


def _keywords() -> list[str]:
    return list(inspect.signature(start).parameters)[:-1]


def sample(
    target: Any,
    sampler: str | samplers.Sampler = "auto",
    *,
    dim: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    draws: int | None = 1000,
    warmup: int = 200,
    chains: int = 4,
    seed: Seed = 0,
    device: str | torch.device = "auto",
    dtype: Dtype | torch.dtype = "float32",
    kernel: Kernel = "eager",
    settings: dict[str, Any] | None = None,
    target_settings: dict[str, Any] | None = None,
    callback: Callable[[BackgroundRun], Any] | None = None,
    record: str | Path | None = None,
    start: Any = None,
    minutes: float | None = None,
    progress_bar: bool | None = None,
    **unknown: Never,
) -> BackgroundRun:
    """Sample from a target and return the finished run.

    The other parameters are those of `start`.

    Parameters
    ----------
    target : str, Spec, UserTable, Target or callable
        As in `start`.
    sampler : str or Sampler
        As in `start`. With ``auto``, a pilot run selects a sampler for a network on a table. The default for a density
        is ``bps``.
    progress_bar : bool, optional
        Whether to show a progress bar on stderr. The default is true if stderr is a terminal and ``rich`` is installed.

    Warns
    -----
    SamplingWarning
        Once, if the diagnostics show unreliable estimates.

    Raises
    ------
    BnnvizError
        As in `start`, or if all chains encountered non-finite values. The attribute ``run`` contains the draws up to
        this point.

    Examples
    --------
    >>> import bnnviz
    >>> run = bnnviz.sample("gaussian", "hmc", draws=500, chains=8)
    >>> run.draws.shape
    (8, 500, 2)
    """
    given.refuse(unknown, [*_keywords(), "progress_bar"], sampler)
    with RunProgress(progress_bar) as shown:
        run = _start(
            target,
            sampler,
            dim=dim,
            parameters=parameters,
            draws=draws,
            warmup=warmup,
            chains=chains,
            seed=seed,
            device=device,
            dtype=dtype,
            kernel=kernel,
            settings=settings,
            target_settings=target_settings,
            callback=callback,
            record=record,
            start=start,
            minutes=minutes,
        )
        run.listen(lambda: shown.show(run._run))
        finished = run.run_to_end()
    if finished.phase == "done" and (found := finished.summary()["warnings"]):
        warnings.warn(" ".join(map(str, found)), SamplingWarning, stacklevel=2)
    return finished


_start = start  # in `sample` the name is a parameter's


@torch.inference_mode(False)
def resume(
    word: str | Path,
    *,
    draws: int | None = None,
    target: Any = None,
    sampler: samplers.Sampler | None = None,
    paused: bool = False,
    callback: Callable[[BackgroundRun], Any] | None = None,
    **unknown: Never,
) -> BackgroundRun:
    """Continue a recorded run in the background. The draws are those of an uninterrupted run.

    Parameters
    ----------
    word : str or Path
        Name or folder of the recording.
    draws : int, optional
        Number of draws per chain to add to a finished run.
    target, sampler : optional
        The custom target and sampler of the run, if any: those that were sampled, or for a function with
        ``parameters`` its `ParameterDensity`.
    paused : bool
        As in `start`.
    callback : callable, optional
        As in `start`.

    Warns
    -----
    UserWarning
        If the run is complete and no additional draws are requested.

    Raises
    ------
    BnnvizError
        If the recording does not exist or is damaged.

    Examples
    --------
    >>> import bnnviz
    >>> import tempfile
    >>> folder = f"{tempfile.mkdtemp()}/mine"
    >>> run = bnnviz.start("gaussian", "hmc", draws=20, warmup=10, chains=2, record=folder).stop()
    >>> bnnviz.resume(folder).wait().draws.shape
    (2, 20, 2)
    """
    for name in unknown:
        raise BnnvizError(
            f"A resumed run keeps its {name}."
            if name in _keywords()
            else f"There is no keyword {name}; choose from draws, target, sampler, paused, callback.",
            name,
        )
    folder = reader.find(word)
    own = given.recorded_target(target, reader.Recording(folder))
    found = resuming.resume(folder, target=own, sampler=sampler)
    if draws is not None:
        found.extend(given.count("draws", draws))
    elif found.finished:
        warnings.warn(f"The run {str(word)!r} is finished; resume(..., draws=1000) adds draws.", stacklevel=3)
    return BackgroundRun(found, callback, paused=paused, folder=folder).begin()


def _plain(name: str, given: Any) -> dict[str, Any]:
    """Return a dict of values by name with Python values instead of NumPy's and PyTorch's."""
    if given is not None and not isinstance(given, Mapping):
        raise BnnvizError(f"{name} is a dict of values by name, not {given!r:.60}.", name)
    return {key: plain(value) for key, value in (given or {}).items()}


def _sampler(sampler: Any, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(sampler, str):
        return sampler, dict(given)
    if isinstance(sampler, samplers.Sampler) and sampler.registered:
        if given:
            raise BnnvizError("Pass settings to the sampler instance, or specify the sampler by name.", "settings")
        names = [setting["name"] for setting in declared.describe(type(sampler))]
        return sampler.registered, {name: getattr(sampler, name) for name in names}
    raise BnnvizError(f"sampler is a name or a registered Sampler, not {type(sampler).__name__}.", "sampler")

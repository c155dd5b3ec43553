"""Analyse runs and networks: predictions, uncertainty, attacks, the prior, the double well, replays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from bnnviz import optional
from bnnviz.api.recorded import PublicRecording, recording
from bnnviz.api.run import BackgroundRun, spec_of
from bnnviz.engine.evaluation import attack as attacking
from bnnviz.engine.evaluation import iteration_search, metrics
from bnnviz.engine.evaluation import prior_search as searching
from bnnviz.engine.evaluation import uncertainty as unsure
from bnnviz.engine.evaluation.iteration_search import IterationSearch
from bnnviz.engine.evaluation.prior_search import PriorSearch
from bnnviz.engine.recording import recorded_frames
from bnnviz.engine.recording import replay_frames as filming
from bnnviz.engine.wells import Wells
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz.specs.wells import WellsSpec

P = ParamSpec("P")


def _of_a_run(compute: Callable[Concatenate[Any, P], dict[str, Any]]) -> Callable[Concatenate[Any, P], dict[str, Any]]:
    """Let a function of the engine accept a recording or a run of this process too, which is locked meanwhile."""

    @functools.wraps(compute)
    def of_a_run(target_or_run: Any, *given: P.args, **options: P.kwargs) -> dict[str, Any]:
        if isinstance(target_or_run, str | Path):
            target_or_run = recording(target_or_run)
        if isinstance(target_or_run, PublicRecording):
            return compute(target_or_run.restored(), *given, **options)
        if not isinstance(target_or_run, BackgroundRun):
            return compute(target_or_run, *given, **options)
        with target_or_run._lock:
            return compute(target_or_run._run, *given, **options)

    return of_a_run


measure = _of_a_run(metrics.measure)
uncertainty = _of_a_run(unsure.uncertainty)
attack = _of_a_run(attacking.attack)


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
    """Search the standard deviation of a network's prior with the best validation score.

    Parameters
    ----------
    target : str or Spec
        A registered name, or a `Spec`, which replaces all other arguments.
    sampler, settings, target_settings
        As in `start`.
    low, high : float
        Bounds of the standard deviation.
    tries : int
        Maximum number of runs, each with the same seed.
    by : {"nll", "accuracy", "mse"}
        The score on the validation rows.
    progress : callable, optional
        Called with the number of the run and its completed fraction.
    **options
        draws, warmup, chains, seed, device, dtype and kernel, as in `Spec`.

    Returns
    -------
    PriorSearch
        With ``prior_sd``, ``tries`` and ``spec``; pass it to `sample`, and the run keeps the search in its summary and
        its file.

    Raises
    ------
    BnnvizError
        If an argument is invalid, there are no validation rows, or every try failed.

    Examples
    --------
    >>> import bnnviz
    >>> network = {"data": "pmcnet_wine", "hidden": "2"}
    >>> found = bnnviz.search_prior("network", "map", target_settings=network, tries=2, settings={"steps": 50})
    >>> len(found.tries)
    2
    """
    spec = _spec_to_search(target, sampler, settings, target_settings, options)
    return searching.search_prior(spec, low=low, high=high, tries=tries, by=by, progress=progress)


def search_iterations(
    target: Any,
    sampler: Any = "pmcnet",
    *,
    settings: dict[str, Any] | None = None,
    target_settings: dict[str, Any] | None = None,
    most: int = iteration_search.MOST,
    by: str = "nll",
    progress: Callable[[float], Any] | None = None,
    **options: Any,
) -> IterationSearch:
    """Search the number of iterations at which a population has the best validation score: T of PMCnet.

    Parameters
    ----------
    target : str or Spec
        A registered name, or a `Spec`, which replaces all other arguments.
    sampler, settings, target_settings
        As in `start`.
    most : int
        Number of iterations of the only run.
    by : {"nll", "accuracy", "mse"}
        The score on the validation rows.
    progress : callable, optional
        Called with the completed fraction.
    **options
        chains (the proposals), seed, device, dtype and kernel, as in `Spec`.

    Returns
    -------
    IterationSearch
        With ``iterations``, ``values`` and ``spec``, whose run keeps the draws of the last iteration: pass it to
        `sample`.

    Raises
    ------
    BnnvizError
        If an argument is invalid, there are no validation rows, or the pilot failed.

    Examples
    --------
    >>> import bnnviz
    >>> network, few = {"data": "pmcnet_wine", "hidden": "2"}, {"draws_each": 10, "start": "random"}
    >>> found = bnnviz.search_iterations("network", settings=few, target_settings=network, most=3, chains=4)
    >>> len(found.values)
    3
    """
    spec = _spec_to_search(target, sampler, settings, target_settings, options)
    return iteration_search.search_iterations(spec, most=most, by=by, progress=progress)


def _spec_to_search(target: Any, sampler: Any, settings: Any, target_settings: Any, options: dict[str, Any]) -> Spec:
    """Return the checked spec of a registered target, or the given spec."""
    if isinstance(target, Spec):
        return target.checked()
    if not isinstance(target, str):
        raise BnnvizError("The search is for a registered target or a Spec.", "target")
    return spec_of(target, sampler, None, settings, target_settings, options)[0]


def wells(**settings: Any) -> Wells:
    """Sample the double well with FuncHMC and with HMC, 400 runs of each.

    Parameters
    ----------
    **settings
        Settings in `bnnviz.specs.wells.WellsSettings`, such as ``reading="text"`` or ``moves=100``.

    Returns
    -------
    Wells
        The finished comparison; `Wells.figures` has distances from the truth, coverage, crossings and costs.

    Raises
    ------
    BnnvizError
        If a value is invalid.

    Examples
    --------
    >>> import bnnviz
    >>> figures = bnnviz.wells(moves=5).figures()
    >>> figures["func_hmc"]["gradients"] // figures["hmc"]["gradients"]
    22
    """
    made = Wells(WellsSpec(settings))
    while not made.finished:
        made.advance(1.0)
    return made


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
    """Write a run as one HTML page that plays it without a server or network access.

    Parameters
    ----------
    run : Run, Spec, ReplayFrames, str or Path
        A run of this process, which is repeated from its spec and change log and not modified; a spec; replay frames;
        or the path of a recording's folder, a saved run (.nc), a spec (.json) or replay frames (.npz).
    out : str or Path
        The page; the suffix ``.html`` is added if missing.
    frames : int, default 300
        Maximum number of frames; the first third are single steps.
    steps : int, optional
        The last step; by default the run's last step.
    recorded : bool, optional
        Whether to show the recorded frames. By default they are shown if the run cannot be repeated on this
        machine's devices.
    dark : bool, optional
        Whether the page starts dark; None follows the reader's browser.
    progress : callable, optional
        Called with the completed fraction, 0 to 1, and the phase of the run.

    Returns
    -------
    Path

    Raises
    ------
    BnnvizError
        If the run cannot be repeated, bokeh is missing, or the page cannot be written.

    Examples
    --------
    >>> import bnnviz
    >>> import tempfile
    >>> spec = bnnviz.Spec(target="banana", chains=1, draws=20, warmup=0)
    >>> page = bnnviz.replay(spec, f"{tempfile.mkdtemp()}/banana.html", frames=10)
    >>> page.name
    'banana.html'
    """
    optional.check("bokeh", "A replay needs")
    from bnnviz.replays.player import write

    if isinstance(run, BackgroundRun):
        with run._lock:
            run = filming.past_of_run(run._run)
    elif isinstance(run, str | Path):
        run = recorded_frames.frames_of(run, frames, steps=steps, recorded=recorded, progress=progress)
    elif not isinstance(run, Spec | filming.ReplayFrames):
        raise BnnvizError(f"Give a run, a Spec, a film or a path to replay, not {type(run).__name__}.", "run")
    if not isinstance(run, filming.ReplayFrames):
        run = filming.take_frames(run, frames, steps=steps, progress=progress)
    return write(run, out, dark)

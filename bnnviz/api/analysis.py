"""Analyse runs and networks: predictions, uncertainty, attacks, the double well, replays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from bnnviz import optional
from bnnviz.api.draws import WithDraws
from bnnviz.api.recorded import PublicRecording, recording
from bnnviz.api.run import BackgroundRun
from bnnviz.engine.evaluation import attack as attacking
from bnnviz.engine.evaluation import metrics
from bnnviz.engine.evaluation import uncertainty as unsure
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
        if not isinstance(target_or_run, WithDraws):
            return compute(target_or_run, *given, **options)
        with target_or_run._lock:
            return compute(target_or_run._run, *given, **options)

    return of_a_run


measure = _of_a_run(metrics.measure)
uncertainty = _of_a_run(unsure.uncertainty)
attack = _of_a_run(attacking.attack)


def wells(**settings: Any) -> Wells:
    """Compare FuncHMC and HMC on the double well, with 400 runs of each.

    Parameters
    ----------
    **settings
        Settings in `bnnviz.specs.wells.WellsSettings`, such as ``reading="text"`` or ``moves=100``.

    Returns
    -------
    Wells
        The finished comparison. `Wells.figures` contains distances from the truth, coverage, crossings and costs.

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
    dark: bool | None = None,
    progress: Callable[[float, str], Any] | None = None,
) -> Path:
    """Write an interactive replay of a run to an HTML file that requires no server or network access.

    Parameters
    ----------
    run : Run, Spec, ReplayFrames, PublicRecording, str or Path
        The run to replay. It is repeated from its spec and change log and is not modified. Alternatively a spec, replay
        frames, or the path of a recording, a saved run (.nc), a spec (.json) or replay frames (.npz).
    out : str or Path
        Path of the HTML file. The suffix ``.html`` is added if missing.
    frames : int, default 300
        Maximum number of frames. The first third of the frames are consecutive steps.
    steps : int, optional
        The last step. The default is the last step of the run.
    dark : bool, optional
        Whether to use the dark theme. The default is the preference of the browser.
    progress : callable, optional
        Function that is called with the completed fraction (0 to 1) and the phase of the run.

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
    elif isinstance(run, PublicRecording):
        run = filming.read_past(run.folder, run.target)
    elif isinstance(run, str | Path):
        run = filming.frames_of(run, frames, steps=steps, progress=progress)
    elif not isinstance(run, Spec | filming.ReplayFrames):
        raise BnnvizError(f"Give a run, a Spec, a film or a path to replay, not {type(run).__name__}.", "run")
    if not isinstance(run, filming.ReplayFrames):
        run = filming.take_frames(run, frames, steps=steps, progress=progress)
    return write(run, out, dark)

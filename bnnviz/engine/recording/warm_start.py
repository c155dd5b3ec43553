"""Start chains from the last draws, or from random draws, of a recorded run.

The spec contains these points from then on (`bnnviz.specs.run.Spec.start_points`), so that a run, its checkpoints and
its own recording do not need the other recording any more.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine.protocol import AnyRun
from bnnviz.engine.recording import reader
from bnnviz.engine.recording.export import ExportedDraws, kept
from bnnviz.engine.recording.reader import Recording
from bnnviz.engine.run.start_points import ABOUT, DRAWS, LAST, NAMELESS, StartPoints, attached, held
from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec


def resolved(spec: Spec) -> Spec:
    """Return a checked spec with its starting points, read from the recording if needed."""
    points = held(spec)
    if spec.start is None or spec.start["recording"] is None or points is not None:
        return attached(spec, points)
    name, digest = spec.start["recording"], spec.start["sha256"]
    points = read(name, spec.start["points"], spec.chains, spec.seed)
    if digest not in (None, points.sha256):
        raise BnnvizError(
            f"The recording {name} has other draws than when this spec was made (it was continued or replaced):"
            " remove the start's sha256 to use its current draws.",
            "start",
        )
    return attached(spec, points)


def named(word: str | os.PathLike[str]) -> str:
    """Return the name of a recording in a spec, or otherwise the absolute path of its folder."""
    if reader.is_recording_name(word):
        return str(word)
    try:
        return str(reader.find(word).absolute())
    except BnnvizError as error:
        raise BnnvizError(error.sentence, "start") from None


def read(word: str, points: str, chains: int, seed: int) -> StartPoints:
    """Read starting points from a recording."""
    from bnnviz.engine.run.checkpoint import saved_state  # with torch, which the page does not load

    try:
        recording = Recording(reader.place(word) if reader.is_recording_name(word) else reader.find(word))
        recording.progress, recording.header  # noqa: B018
        if not any(recording.progress["alive"]):
            raise BnnvizError(f"All chains of the recording {word} failed: there is nothing to start from.")
        found, state = kept(recording), saved_state(recording.checkpoint())
        spec = recording.progress["spec"]
        logs = _log_weights(recording, found, spec) if points == DRAWS else found.log_weights
    except BnnvizError as error:
        raise BnnvizError(error.sentence, "start") from error
    taken = _taken(found.draws, logs, {**spec, "recording": word}, points, chains, seed)
    return replace(taken, learned=_learned(spec["sampler"], state))


def of_run(run: AnyRun, points: str, chains: int, seed: int) -> StartPoints:
    """Take starting points from a run of this process, like `read`."""
    if not run.draws.shape[1] or not run.alive.any():
        raise BnnvizError("The run to start from has no draws yet. Continue it first.", "start")
    logs = run.correcting_log_weights if points == DRAWS else run.log_weights
    from bnnviz.samplers.tree import as_dicts

    taken = _taken(run.draws, logs, {**run.spec.to_json(), "recording": None}, points, chains, seed)
    return replace(taken, learned=_learned(run.spec.sampler, as_dicts(run.state)))


def _learned(sampler: str, state: dict[str, Any] | None) -> dict[str, np.ndarray]:
    """Return what the warm-up of a run learned, from its state as dicts."""
    from bnnviz import samplers

    adaptation = (state or {}).get("adaptation")
    return {} if adaptation is None else samplers.REGISTRY.get(sampler).learned(adaptation)


def _log_weights(recording: Recording, found: ExportedDraws, spec: dict[str, Any]) -> np.ndarray | None:
    """Return the log weights of draws, or those that correct the bias of their positions."""
    if found.log_weights is not None:
        return found.log_weights
    from bnnviz import samplers, targets
    from bnnviz.engine.recording.resume import resume

    if samplers.REGISTRY.get(spec["sampler"]).weighs is samplers.Sampler.weighs:
        return None
    if spec["target"] not in (cls.registered for cls in targets.REGISTRY):
        raise BnnvizError(
            f"Weights of draws of {spec['sampler']} require a registered target, and that of {recording.name} is not"
            f" registered: start from {LAST}."
        )
    logs = resume(recording.folder).correcting_log_weights
    return None if logs is None else logs[:, : found.draws.shape[1]]


def _taken(
    draws: np.ndarray, logs: np.ndarray | None, spec: dict[str, Any], points: str, chains: int, seed: int
) -> StartPoints:
    """Choose among draws (chains, draws, dim) with log weights (chains, draws)."""
    about = {name: spec.get(name) for name in ABOUT}
    if points == LAST:
        if logs is not None:
            raise BnnvizError(
                f"The draws of {about['recording'] or NAMELESS} have weights, so that its last ones are no sample:"
                f" start from {DRAWS} instead of {LAST}, which chooses by weight.",
                "start",
            )
        x = draws[:, -1]
        return StartPoints(x=_finite(x), sha256=_digest(x), about=about)
    pool = draws.reshape(-1, draws.shape[2])
    shares = None
    if logs is not None:
        shares = diagnostics.normalised(logs.ravel())
        if not shares.sum() > 0:
            raise BnnvizError("All importance weights of that run are zero, so it cannot be used as a start.", "start")
        shares = shares / shares.sum()
    # A separate generator: the run's generator makes the same numbers for any start.
    rng = np.random.default_rng(seed)
    number = rng.choice(len(pool), size=chains, replace=shares is not None or chains > len(pool), p=shares)
    return StartPoints(x=_finite(pool[number]), sha256=_digest(pool), about=about, chosen=(chains, seed))


def _finite(x: np.ndarray) -> np.ndarray:
    if not np.isfinite(x).all():
        raise BnnvizError("That run has non-finite draws, so it cannot be used as a start.", "start")
    return np.ascontiguousarray(x)


def _digest(draws: np.ndarray) -> str:
    digest = hashlib.sha256(f"{draws.dtype} {draws.shape}".encode())
    digest.update(np.ascontiguousarray(draws))
    return digest.hexdigest()[:12]

"""Warm starts: chains that set out from the last draws, or from draws at random, of a run that was recorded.

What is taken from a recording travels with the spec from then on (`bnnviz.spec.Spec.start_points`), so that a run, its
checkpoints and its own recording need the other one no more.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.engine import shelf
from bnnviz.engine.export import Kept, kept
from bnnviz.engine.shelf import Recording
from bnnviz.errors import BnnvizError
from bnnviz.spec import POINTS, Spec

if TYPE_CHECKING:
    from bnnviz.engine.run import Run

LAST, DRAWS = POINTS
_OF_TARGET = ("target", "target_settings", "file")
_ABOUT = ("recording", *_OF_TARGET, "sampler", "seed")
_NAMELESS = "a run that was not recorded"


@dataclass(frozen=True, eq=False, kw_only=True)
class Points:
    """Points that chains set out from.

    Parameters
    ----------
    x : ndarray, shape (points, dim)
        The last draw of each chain that did not fail, or the draws that were chosen, one for each chain.
    sha256 : str
        The first 12 digits of the checksum of what they were taken from: all of these last draws, or all draws.
    about : dict
        Of the run that they are from: ``recording``, ``target``, ``target_settings``, ``file``, ``sampler``, ``seed``.
    chosen : tuple of int, or None
        Number of chains and seed that draws were chosen for; None for last draws, which do for any.
    """

    x: np.ndarray
    sha256: str
    about: dict[str, Any]
    chosen: tuple[int, int] | None = None

    def fit(self, spec: Spec) -> bool:
        """Return whether they are the points that a spec's start speaks of, as far as it says."""
        wanted = (spec.chains, spec.seed) if spec.start["points"] == DRAWS else None
        named = self.about["recording"] == spec.start["recording"]
        return named and self.chosen == wanted and spec.start["sha256"] in (None, self.sha256)

    def check(self, dim: int) -> None:
        """Refuse points of another dimension.

        Raises
        ------
        BnnvizError
        """
        source = self._source()
        if self.x.shape[1] != dim:
            raise BnnvizError(
                f"{source[0].upper()}{source[1:]} has {self.x.shape[1]} dimensions and this target {dim}: start from a"
                " recording of a target with as many.",
                "start",
            )

    def dealt(self, chains: int) -> np.ndarray:
        """Return a point for each chain, (chains, dim): in turn, so that with more chains some share one."""
        return self.x[np.arange(chains) % len(self.x)]

    def remarks(self, spec: Spec) -> list[str]:
        """Return where a run's chains set out from, and what is to be known of that, in a sentence each."""
        about = self.about
        subject = about["target_settings"].get("data") or about["target"]
        what = "the last draws" if self.chosen is None else "draws, chosen at random,"
        said = [f"The chains set out from {what} of {self._source()} ({about['sampler']} on {subject})."]
        if any(about[name] != getattr(spec, name) for name in _OF_TARGET):
            said.append("That target is another one, or has other settings: these are no draws of this run's target.")
        if about["seed"] == spec.seed:
            said.append(
                f"That run had the seed {spec.seed} too, so its random numbers come again; another seed has its own."
            )
        return said

    def _source(self) -> str:
        name = self.about["recording"]
        return _NAMELESS if name is None else f"the recording {Path(name).name}"

    def pack(self) -> bytes:
        """Return them as the bytes of a NumPy archive without pickles."""
        words = {"sha256": self.sha256, "about": self.about, "chosen": self.chosen}
        buffer = io.BytesIO()
        np.savez(buffer, x=self.x, words=np.array(json.dumps(words)))
        return buffer.getvalue()

    @classmethod
    def unpack(cls, content: bytes) -> Points:
        """Return the points of a spec.

        Raises
        ------
        BnnvizError
            If the bytes are no such points.
        """
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                x, words = archive["x"], json.loads(str(archive["words"]))
            chosen = None if words["chosen"] is None else tuple(words["chosen"])
            made = cls(x=x, sha256=words["sha256"], about=dict(words["about"]), chosen=chosen)
            whole = x.ndim == 2 and x.size and x.dtype.kind == "f" and bool(np.isfinite(x).all())
            whole = whole and set(_ABOUT) <= set(made.about) and isinstance(made.about["target_settings"], dict)
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, zipfile.BadZipFile) as error:
            raise BnnvizError(_UNREADABLE, "start") from error
        if not whole:
            raise BnnvizError(_UNREADABLE, "start")
        return made


_UNREADABLE = "The points that chains are to set out from cannot be read; start from the recording again."


def resolved(spec: Spec) -> Spec:
    """Return a checked spec with the points of its start, taken from the recording unless it has them.

    Raises
    ------
    BnnvizError
        If there is no such recording, it is damaged or has no draws, or it is not as it was when the spec was made.
    """
    if spec.start is None:
        return spec if spec.start_points is None else spec.replace(start_points=None)
    if spec.start_points is not None:
        held = Points.unpack(spec.start_points)
        if held.fit(spec):
            return _with(spec, held)
    name, digest = spec.start["recording"], spec.start["sha256"]
    if name is None:
        raise BnnvizError(
            "This spec starts from a run that was not recorded, and its points are not here: give the run again, or"
            " record it.",
            "start",
        )
    points = read(name, spec.start["points"], spec.chains, spec.seed)
    if digest not in (None, points.sha256):
        raise BnnvizError(
            f"The recording {name} has other draws than when this spec was made (it went on, or is another one):"
            " leave out the start's sha256 to take what it holds now.",
            "start",
        )
    return _with(spec, points)


def _with(spec: Spec, points: Points) -> Spec:
    return spec.replace(start=spec.start | {"sha256": points.sha256}, start_points=points.pack())


def named(word: str | os.PathLike) -> str:
    """Return what a spec says for a recording: its name on the shelf, or else the whole path of its folder.

    Raises
    ------
    BnnvizError
        If there is none.
    """
    if shelf.on_shelf(word):
        return str(word)
    try:
        return str(shelf.find(word).absolute())
    except BnnvizError as error:
        raise BnnvizError(error.sentence, "start") from None


def read(word: str, points: str, chains: int, seed: int) -> Points:
    """Take points from a recording.

    Parameters
    ----------
    word : str
        Its name on the shelf, or its folder.
    points : {"last", "draws"}
        The last draw that all chains have, of each chain; or draws of all of them, chosen at random without
        replacement where there are enough, and by their weights where they have weights.
    chains, seed : int
        Of the run that is to set out from them; last draws do for any.

    Raises
    ------
    BnnvizError
        If there is none, it is damaged or without draws, or its draws have weights and the last ones are asked for.
    """
    try:
        recording = Recording(shelf.place(word) if shelf.on_shelf(word) else shelf.find(word))
        recording.progress, recording.header  # noqa: B018
        if not any(recording.progress["alive"]):
            raise BnnvizError(f"All chains of the recording {word} failed: there is nothing to start from.")
        found = kept(recording)
        said = recording.progress.get("spec") or recording.header["spec"]
        logs = _log_weights(recording, found, said) if points == DRAWS else found.log_weights
    except BnnvizError as error:
        raise BnnvizError(error.sentence, "start") from error
    return _taken(found.draws, logs, {**said, "recording": word}, points, chains, seed)


def of_run(run: Run, points: str, chains: int, seed: int) -> Points:
    """Take points from a run of this process, as `read` does.

    Raises
    ------
    BnnvizError
        If it has no draws, or its draws have weights and the last ones are asked for.
    """
    if not run.draws.shape[1] or not run.alive.any():
        raise BnnvizError("The run to start from has no draws yet; let it go on first.", "start")
    logs = run.log_weights if run.sampler.weighted else _logs(run.event_weights()) if points == DRAWS else None
    return _taken(run.draws, logs, {**run.spec.to_json(), "recording": None}, points, chains, seed)


def _log_weights(recording: Recording, found: Kept, said: dict[str, Any]) -> np.ndarray | None:
    """Return the logarithms of the weights that draws came with, or that undo the bias of where they were taken."""
    if found.log_weights is not None:
        return found.log_weights
    from bnnviz import samplers, targets
    from bnnviz.engine.recorder import resume

    if samplers.REGISTRY.get(said["sampler"]).weighs is samplers.Sampler.weighs:
        return None
    if said["target"] not in (cls.registered for cls in targets.REGISTRY):
        raise BnnvizError(
            f"Draws of {said['sampler']} may need weights, which only its target gives, and that of {recording.name} is"
            f" no registered one: start from {LAST}."
        )
    weights = _logs(resume(recording.folder).event_weights())
    return None if weights is None else weights[:, : found.draws.shape[1]]


def _logs(weights: np.ndarray | None) -> np.ndarray | None:
    if weights is None:
        return None
    with np.errstate(divide="ignore"):
        return np.log(weights)


def _taken(
    draws: np.ndarray, logs: np.ndarray | None, said: dict[str, Any], points: str, chains: int, seed: int
) -> Points:
    """Choose among draws (chains, draws, dim) with log weights (chains, draws)."""
    about = {name: said.get(name) for name in _ABOUT}
    if points == LAST:
        if logs is not None:
            raise BnnvizError(
                f"The draws of {about['recording'] or _NAMELESS} have weights, so that its last ones are no sample:"
                f" start from {DRAWS} instead of {LAST}, which chooses by weight.",
                "start",
            )
        x = draws[:, -1]
        return Points(x=_finite(x), sha256=_digest(x), about=about)
    pool = draws.reshape(-1, draws.shape[2])
    shares = None
    if logs is not None:
        shares = diagnostics.normalised(logs.ravel())
        if not shares.sum() > 0:
            raise BnnvizError("No draw of that run has a weight: there is nothing to start from.", "start")
        shares = shares / shares.sum()
    # A generator of its own: the run's makes the same numbers wherever its chains set out.
    rng = np.random.default_rng(seed)
    number = rng.choice(len(pool), size=chains, replace=shares is not None or chains > len(pool), p=shares)
    return Points(x=_finite(pool[number]), sha256=_digest(pool), about=about, chosen=(chains, seed))


def _finite(x: np.ndarray) -> np.ndarray:
    if not np.isfinite(x).all():
        raise BnnvizError("That run has draws that are not finite: there is nothing to start from.", "start")
    return np.ascontiguousarray(x)


def _digest(draws: np.ndarray) -> str:
    digest = hashlib.sha256(f"{draws.dtype} {draws.shape}".encode())
    digest.update(np.ascontiguousarray(draws))
    return digest.hexdigest()[:12]

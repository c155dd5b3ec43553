"""Starting points of chains, which the spec contains (`bnnviz.specs.run.Spec.start_points`).

`bnnviz.engine.recording.warm_start` takes them from a recording or from a run.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.files import plain_json
from bnnviz.messages import Message, Remedy
from bnnviz.specs.run import POINTS, Spec

LAST, DRAWS = POINTS
OF_TARGET = ("target", "target_settings", "file")
ABOUT = ("recording", *OF_TARGET, "sampler", "settings", "seed")
_LEARNED = "learned_"  # before the names of arrays in a file
NAMELESS = "a run that was not recorded"


@dataclass(frozen=True, eq=False, kw_only=True)
class StartPoints:
    """Starting points x (points, dim): last or chosen draws of a run, and what its warm-up learned."""

    x: np.ndarray
    sha256: str
    about: dict[str, Any]
    chosen: tuple[int, int] | None = None
    learned: dict[str, np.ndarray] = field(default_factory=dict)

    def fit(self, spec: Spec) -> bool:
        """Return whether these are the points of a spec's ``start``."""
        expected = (spec.chains, spec.seed) if spec.start["points"] == DRAWS else None
        named = self.about["recording"] == spec.start["recording"]
        return named and self.chosen == expected and spec.start["sha256"] in (None, self.sha256)

    def check(self, dim: int) -> None:
        """Raise for points of another dimension."""
        source = self._source()
        if self.x.shape[1] != dim:
            remedy = "give points" if self.about["sampler"] is None else "start from a recording of a target"
            raise BnnvizError(
                f"{source[0].upper()}{source[1:]} has {self.x.shape[1]} dimensions, but this target has {dim}: {remedy}"
                " with the same number of dimensions.",
                "start",
            )

    def warmed_up(self, spec: Spec) -> bool:
        """Return whether their run had the sampler, settings and target of a spec, and a warm-up that learned."""
        same = all(self.about[name] == getattr(spec, name) for name in (*OF_TARGET, "sampler", "settings"))
        return same and bool(self.learned)

    def dealt(self, chains: int) -> np.ndarray:
        """Return one point per chain, (chains, dim), in turn: with more chains some share a point."""
        return self.x[np.arange(chains) % len(self.x)]

    def remarks(self, spec: Spec) -> list[Message]:
        """Return messages on the starting points of a run."""
        about = self.about
        if about["sampler"] is None:
            return [Message("given_start")]
        subject = about["target_settings"].get("data") or about["target"]
        what = "the last draws" if self.chosen is None else "randomly chosen draws"
        found = [Message("warm_start", what=what, source=self._source(), sampler=about["sampler"], subject=subject)]
        if any(about[name] != getattr(spec, name) for name in OF_TARGET):
            found.append(Message("other_target_start"))
        if about["seed"] == spec.seed:
            found.append(Message("same_seed", Remedy("use another seed", {"seed": spec.seed + 1}), seed=spec.seed))
        return found

    def _source(self) -> str:
        name = self.about["recording"]
        if self.about["sampler"] is None:
            return "the given start"
        return NAMELESS if name is None else f"the recording {Path(name).name}"

    def pack(self) -> bytes:
        """Return the bytes of a NumPy archive without pickles."""
        words = {"sha256": self.sha256, "about": self.about, "chosen": self.chosen}
        buffer = io.BytesIO()
        learned = {_LEARNED + name: values for name, values in self.learned.items()}
        np.savez(buffer, x=self.x, words=np.array(json.dumps(words)), **learned)
        return buffer.getvalue()

    @classmethod
    def unpack(cls, content: bytes) -> StartPoints:
        """Return the points in a spec."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                x, words = archive["x"], plain_json(str(archive["words"]))
                names = [name for name in archive.files if name.startswith(_LEARNED)]
                learned = {name.removeprefix(_LEARNED): archive[name] for name in names}
            chosen = None if words["chosen"] is None else tuple(words["chosen"])
            made = cls(x=x, sha256=words["sha256"], about=dict(words["about"]), chosen=chosen, learned=learned)
            whole = x.ndim == 2 and x.size and x.dtype.kind == "f" and bool(np.isfinite(x).all())
            whole = whole and all(each.dtype.kind == "f" and bool(np.isfinite(each).all()) for each in learned.values())
            whole = whole and set(ABOUT) <= set(made.about) and isinstance(made.about["target_settings"], dict)
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, zipfile.BadZipFile) as error:
            raise BnnvizError(_UNREADABLE, "start") from error
        if not whole:
            raise BnnvizError(_UNREADABLE, "start")
        return made


_UNREADABLE = "The starting points of the chains cannot be read; start from the recording again."


def held(spec: Spec) -> StartPoints | None:
    """Return the points in a spec; None without points, or if they do not fit its ``start``."""
    if spec.start is None or spec.start_points is None:
        return None
    points = StartPoints.unpack(spec.start_points)
    return points if points.fit(spec) else None


def attached(spec: Spec, points: StartPoints | None) -> Spec:
    """Return a spec with these points and their checksum, or without a start."""
    if spec.start is None:
        return spec if spec.start_points is None else spec.replace(start_points=None)
    if points is not None:
        return spec.replace(start=spec.start | {"sha256": points.sha256}, start_points=points.pack())
    name = spec.start["recording"]
    if name is None:
        raise BnnvizError(
            "This spec starts from a run that was not recorded, and its points are not here: give the run again, or"
            " record it.",
            "start",
        )
    raise BnnvizError(
        f"This spec starts from the recording {name}, whose points it does not carry: take them by"
        " bnnviz.engine.recording.warm_start.resolved(spec).",
        "start",
    )

"""Write a run to a checkpoint, and restore it with the same draws on the same target."""

from __future__ import annotations

import hashlib
import io
import pickle
import zipfile
from typing import Any, Self, get_type_hints

import torch
from torch import Tensor

from bnnviz import samplers, targets
from bnnviz.engine.run.draw_store import STORES, BlockStore, KeptDraws
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message
from bnnviz.samplers.tree import as_dicts, flat, restored
from bnnviz.specs.forms import (
    Check,
    is_amount,
    is_change,
    is_count,
    is_message,
    is_object,
    is_phase,
    is_spec,
    list_of,
    or_none,
    record,
    unfit,
)
from bnnviz.specs.run import Spec
from bnnviz.targets import Target
from bnnviz.targets.base import RejectedPoints

_ZIP = b"PK\3\4"
_MOST_SHRINK, _FREE = 4, 1 << 26  # a checkpoint may expand by this factor, plus this number of bytes
#: Errors of inconsistent checkpoints.
UNFIT = (AttributeError, LookupError, TypeError, ValueError, RuntimeError, OverflowError, MemoryError)
_UNREADABLE = (
    *UNFIT,
    *(EOFError, OSError, pickle.UnpicklingError, zipfile.BadZipFile, NotImplementedError),
)


def pack(saved: dict[str, Any]) -> bytes:
    """Return tensors and plain values, with their ``version``, as bytes."""
    buffer = io.BytesIO()
    torch.save(saved, buffer)
    return buffer.getvalue()


def unpack(data: bytes, version: int, remedy: str) -> dict[str, Any]:
    """Unpack a checkpoint, reading only tensors and plain values."""
    place = None if torch.cuda.is_available() else "cpu"  # it may be from a GPU
    try:
        _believe(data)
        saved = torch.load(io.BytesIO(data), map_location=place, weights_only=True)
    except _UNREADABLE as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BnnvizError(f"The checkpoint cannot be read ({first}); {remedy}.") from error
    if not isinstance(saved, dict) or _bytes_of(saved) > _most(data):
        raise BnnvizError(f"The checkpoint cannot be read (it holds something else); {remedy}.")
    if (found := saved.get("version")) != version:
        raise BnnvizError(f"The checkpoint has version {found!r:.20}; this bnnviz reads version {version}: {remedy}.")
    return saved


def _believe(data: bytes) -> None:
    """Raise for an archive that would become far larger: torch does not compress."""
    if data.startswith(_ZIP):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _most(data):
                raise ValueError("it would become far larger than it is")


def _bytes_of(value: Any) -> int:
    """Return the expanded bytes of all tensors: one may repeat a number endlessly."""
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return sum(map(_bytes_of, parts))


def _most(data: bytes) -> int:
    return _FREE + _MOST_SHRINK * len(data)


def check(saved: dict[str, Any]) -> None:
    """Raise for a forged checkpoint with wrong types or sizes, before anything is allocated."""
    if wrong := unfit(saved, _CONTENTS, {}):
        raise damaged(wrong)
    spec = saved["spec"]
    alive, counts = saved["alive"], saved["store"]["counts"]
    if not spec["chains"] == saved["begun"]["chains"] == len(alive) == len(counts):
        raise damaged("chains")
    if spec["draws"] is not None and int(counts.max()) > spec["draws"]:
        raise damaged("counts")


def damaged(part: str) -> BnnvizError:
    """Return the error for a damaged part of a checkpoint."""
    return BnnvizError(f"The checkpoint is damaged ({part}); start the run again.", "run")


def _is_vector(dtype: torch.dtype) -> Check:
    return lambda value: isinstance(value, Tensor) and value.ndim == 1 and value.dtype == dtype


def _is_store(value: Any) -> bool:
    counts = isinstance(value, dict) and all(map(_is_vector(torch.int64), (value.get("counts"), value.get("made"))))
    if not (counts and len(value["counts"]) == len(value["made"]) > 0 and "buffer" in value):
        return False
    steps = isinstance(value.get("every"), int) and value["every"] > 0
    steps = steps and all(is_count(value.get(name)) for name in ("skip", "offset"))
    kept = value["buffer"]
    fits = isinstance(kept, list) or (isinstance(kept, Tensor) and kept.ndim == 3 and len(kept) == len(value["counts"]))
    return steps and fits and bool((value["counts"] >= 0).all() and (value["made"] >= value["counts"]).all())


_FINGERPRINT = {
    "dim": is_count,
    "x": lambda value: isinstance(value, Tensor) and value.is_floating_point() and value.shape[:-1] == (1,),
    "potential": lambda value: isinstance(value, float),
}
#: Checks of the parts of a checkpoint.
_CONTENTS: dict[str, Check] = {
    **dict.fromkeys(("spec", "begun"), is_spec),
    **dict.fromkeys(("attachment", "start_points"), lambda value: value is None or isinstance(value, bytes)),
    **dict.fromkeys(("emitter", "kernel"), or_none(is_object)),
    **dict.fromkeys(("steps", "generation"), is_count),
    **dict.fromkeys(("gradients", "seconds", "cpu_seconds", "device_seconds"), is_amount),
    **dict.fromkeys(("store", "logs", "path", "draw_stats"), _is_store),
    **dict.fromkeys(("mode", "origin", "events"), or_none(lambda value: isinstance(value, Tensor) and value.ndim <= 2)),
    "given": or_none(record(_FINGERPRINT, {"generation": is_count})),
    "phase": is_phase,
    "notes": list_of(is_message),
    "changes": list_of(is_change),
    "alive": _is_vector(torch.bool),
    "rng": _is_vector(torch.uint8),
    "tally": is_object,
    "compiled_since": or_none(is_count),
    **dict.fromkeys(("minutes", "ends_at"), or_none(is_amount)),
    "chosen": lambda value: isinstance(value, bool),
    "rejected": lambda value: isinstance(value, dict) and value.keys() <= {"count", "first"},
}


_SEED_BYTES = 7  # of a digest: a seed has eight, including a sign
_VERSION = 1
#: Types of plain values in a checkpoint.
_PLAIN = ("phase", "steps", "gradients", "generation", "seconds", "cpu_seconds", "device_seconds")
_REQUESTED = ("chosen", "minutes", "ends_at")  # known before the run begins
_SAME_POTENTIAL = 1e-3  # relative difference of U between machines


class TargetFingerprint:
    """Identify a target that may differ when the run is restored by its dimension and U at the first chain."""

    def __init__(self, target: Target, may_differ: bool) -> None:
        self._target, self._may_differ = target, may_differ
        self.taken: dict[str, Any] | None = None

    def take(self, state: Any, generation: int) -> dict[str, Any] | None:
        """Return the fingerprint at the chains, computed once per ``generation``; None before the start."""
        x = getattr(state, "x", None)
        known = self.taken is not None and self.taken.get("generation", generation) == generation
        if not known and self._may_differ and x is not None and x.shape[-1] == self._target.dim:
            potential = float(self._target.potential(x[:1]))
            self.taken = {"dim": self._target.dim, "x": x[:1], "potential": potential, "generation": generation}
        return self.taken

    def check(self, taken: dict[str, Any] | None) -> None:
        """Restore the fingerprint of a checkpoint."""
        self.taken = taken
        if taken is None:
            return
        dim, known = taken["dim"], taken["potential"]
        if dim != self._target.dim:
            raise BnnvizError(
                f"The target has {self._target.dim} dimensions, and the one that this run began with {dim}; give that"
                " one again.",
                "target",
            )
        now = float(self._target.potential(taken["x"].to(self._target.device, self._target.dtype)))
        if abs(now - known) > _SAME_POTENTIAL * (1 + abs(known)):
            raise BnnvizError(
                f"The target is not the one that this run began with: where a chain was, U is {now:.6g} and was"
                f" {known:.6g}; give the same network, data, prior and noise again.",
                "target",
            )


class Restorable(KeptDraws):
    """Write a run to a checkpoint and restore it; its attributes are those of `Run`."""

    def checkpoint(self, draws: bool = True, block_store: BlockStore | None = None) -> bytes:
        """Return the state, from which the run continues with the same draws."""
        saved = {
            "version": _VERSION,
            "spec": self.spec.to_json(),
            "begun": self.begun.to_json(),
            "attachment": self.spec.target_attachment,
            "start_points": self.spec.start_points,
            **{name: getattr(self, name) for name in (*_PLAIN, *_REQUESTED)},
            "notes": [note.to_json() for note in self.notes],
            "changes": self.changes,
            "alive": torch.as_tensor(self.alive),
            "mode": self.mode,
            "origin": self.origin,
            "rng": self.rng.get_state(),
            **{name: getattr(self, name).save(draws or name == "path", block_store) for name in STORES},
            "tally": self.sampler_stats.save(),
            "events": self.events,
            "given": self._target_fingerprint.take(self.state, self.generation),
            "emitter": self.draw_collector.save() if self.draw_collector is not None else None,
            "kernel": None if self.state is None else as_dicts(self.state),
            "compiled_since": self.compiled_since,
            "rejected": vars(self.target.rejected).copy(),
        }
        return pack(saved)

    @classmethod
    def restore(
        cls,
        data: bytes,
        *,
        target: targets.Target | None = None,
        sampler: samplers.Sampler | None = None,
        block_store: BlockStore | None = None,
    ) -> Self:
        """Restore a run from a checkpoint."""
        saved = unpack(data, _VERSION, "start the run again")
        check(saved)
        current, begun = ({k: v for k, v in saved[name].items() if k != "version"} for name in ("spec", "begun"))
        held = {"attachment": saved["attachment"], "start_points": saved["start_points"]}
        run = cls(Spec(**current, **held), target=target, sampler=sampler)
        run.begun = Spec(**begun, **held).checked(target is not None)
        run.changes = [tuple(change) for change in saved["changes"]]
        run.notes = [Message.from_json(note) for note in saved["notes"]]
        for name in _REQUESTED:
            setattr(run, name, saved[name])
        if saved["kernel"] is not None:
            run._target_fingerprint.check(saved["given"])
            try:
                run._load(saved, block_store)
            except BnnvizError:
                raise
            except UNFIT as error:
                raise damaged(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
        return run

    def _load(self, saved: dict[str, Any], block_store: BlockStore | None) -> None:
        for name in _PLAIN:
            setattr(self, name, saved[name])
        self._switch.compiled_since = saved["compiled_since"]
        self.alive = saved["alive"].numpy().copy()
        self.mode = None if saved["mode"] is None else saved["mode"].to(self.device)
        self.origin = None if saved["origin"] is None else saved["origin"].to(self.device)
        self.sampler.prepare(self.target, self.mode)
        kind = get_type_hints(type(self.sampler).init)["return"]
        self.state = restored(kind, saved["kernel"], self.sampler.target.device)
        x, chains = getattr(self.state, "x", None), self.spec.chains
        if x is not None and (x.shape != (chains, self.target.dim) or x.dtype != self.dtype):
            raise damaged("x")
        for name, part in zip(self.state._fields, self.state, strict=True):
            if name != "adaptation" and any(tensor.ndim and len(tensor) != chains for tensor in flat(part)):
                raise damaged(name)
        self.target.rejected = RejectedPoints(**saved["rejected"])
        if len(saved["rng"]) == len(self.rng.get_state()):
            self.rng.set_state(saved["rng"])
        else:  # of another kind of device, whose generator's state is a seed here
            digest = hashlib.sha256(saved["rng"].numpy().tobytes()).digest()
            self.rng.manual_seed(int.from_bytes(digest[:_SEED_BYTES], "big"))
            self.notes.append(Message("other_device", device=self.device.type))
        if saved["emitter"] is not None:
            self.draw_collector = self.sampler.draw_collector(self.numbers, self.state)
            self.draw_collector.load(saved["emitter"])
        for name in STORES:
            getattr(self, name).pass_over(saved["store"]["skip"])
            getattr(self, name).load(saved[name], block_store)
        self.sampler_stats.load(saved["tally"])
        self.events = None if saved["events"] is None else saved["events"].to(self.device)
        for listener in self.on_move:
            listener()

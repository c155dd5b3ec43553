"""Restore runs from a checkpoint, with the same draws, on the same target."""

from __future__ import annotations

import hashlib
from typing import Any, Self

import torch

from bnnviz import samplers, targets
from bnnviz.engine.run import checkpoint
from bnnviz.engine.run.draw_store import STORES, BlockStore, KeptDraws
from bnnviz.errors import BnnvizError
from bnnviz.messages import Message
from bnnviz.samplers.tree import as_dicts
from bnnviz.specs.run import Spec
from bnnviz.targets import Target
from bnnviz.targets.base import RejectedPoints

_SEED_BYTES = 7  # of a digest: a seed has eight, including a sign
_VERSION = 1
#: Types of plain values in a checkpoint.
_PLAIN = ("phase", "steps", "gradients", "generation", "seconds", "cpu_seconds", "device_seconds")
_SAME_POTENTIAL = 1e-3  # relative difference of U between machines


class TargetFingerprint:
    """Identify a target by its dimension and U at the first chain.

    A caller's target, or the rows of a named data set, may differ when the run is restored. A density that the spec
    defines completely has no fingerprint.
    """

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


def saved_state(data: bytes) -> dict[str, Any] | None:
    """Return the sampler's state in a checkpoint, as dicts; None before the first step."""
    return checkpoint.unpack(data, _VERSION, "start the run again").get("kernel")


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
            **{name: getattr(self, name) for name in _PLAIN},
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
        return checkpoint.pack(saved)

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
        saved = checkpoint.unpack(data, _VERSION, "start the run again")
        checkpoint.check(saved)
        current, begun = ({k: v for k, v in saved[name].items() if k != "version"} for name in ("spec", "begun"))
        held = {"attachment": saved["attachment"], "start_points": saved["start_points"]}
        run = cls(Spec(**current, **held), target=target, sampler=sampler)
        run.begun = Spec(**begun, **held).checked(target is not None)
        run.changes = [tuple(change) for change in saved["changes"]]
        if saved["kernel"] is not None:
            run._target_fingerprint.check(saved["given"])
            try:
                run._load(saved, block_store)
            except BnnvizError:
                raise
            except checkpoint.UNFIT as error:
                raise checkpoint.damaged(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
        return run

    def _load(self, saved: dict[str, Any], block_store: BlockStore | None) -> None:
        self.notes = [Message.from_json(note) for note in saved["notes"]]
        for name in _PLAIN:
            setattr(self, name, saved[name])
        self._switch.compiled_since = saved["compiled_since"]
        self.alive = saved["alive"].numpy().copy()
        self.mode = None if saved["mode"] is None else saved["mode"].to(self.device)
        self.origin = None if saved["origin"] is None else saved["origin"].to(self.device)
        self.sampler.prepare(self.target, self.mode)
        self.state = checkpoint.restored_state(self.sampler, saved["kernel"], self.spec.chains, self.dtype)
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

"""Base of comparisons of samplers: races and the double well."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from bnnviz.engine.run import checkpoint
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError

_CHECKPOINT_VERSION = 1


class SamplerComparison:
    """Base of comparisons of samplers, which are driven like a `Run`, without recordings, history or changes."""

    has_history: ClassVar[bool] = False
    is_fork: ClassVar[bool] = False
    spec_class: ClassVar[type[Any]]
    #: The error message for a change of settings.
    fixed: ClassVar[str]

    def __init__(self, spec: Any, **checks: bool) -> None:
        self.spec = spec.checked(**checks)
        self.phase, self.generation = "start", 0
        self.changes: list[tuple[int, dict[str, Any]]] = []
        self.runs: list[ViewedRun] = []

    def step_proposal(self) -> None:
        """Let every sampler take one step."""
        raise NotImplementedError

    def take(self, most: int, seconds: float = 0.02) -> int:
        """Let every sampler take one step; return the steps of all."""
        before = self.steps
        self.step_proposal()
        return self.steps - before

    def step_event(self) -> None:
        """Step as in `step_proposal`: there are no common events."""
        self.step_proposal()

    def change(self, settings: dict[str, Any]) -> None:
        """Raise the error for a change of settings."""
        raise BnnvizError(self.fixed, next(iter(settings), None))

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.phase == "done"

    def watch(self, **what: Any) -> None:
        """Choose what frames show of all samplers, as in `ViewedRun.watch`."""
        for run in self.runs:
            run.watch(**what)

    def select(self, choice: dict[str, Any] | None) -> None:
        """Select nothing: the samplers have no common draws."""

    def checkpoint(self) -> bytes:
        """Return the spec alone: a comparison is started again, and makes the same draws."""
        return checkpoint.pack(
            {"version": _CHECKPOINT_VERSION, "spec": self.spec.to_json(), "attachment": self.spec.attachment}
        )

    @classmethod
    def restore(cls, data: bytes) -> Self:
        """Start a comparison again from a checkpoint."""
        saved = checkpoint.unpack(data, _CHECKPOINT_VERSION, "start again")
        attached = () if saved["attachment"] is None else (saved["attachment"],)
        return cls(cls.spec_class.from_json(saved["spec"], *attached))

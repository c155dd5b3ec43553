"""Frame parts of a run on the user's own table: the verdict, and the prediction of an entered row."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bnnviz.engine.frames.typed_row import TypedRow
from bnnviz.engine.monitor.live_verdict import LiveVerdict
from bnnviz.engine.monitor.mixing import LiveMixing
from bnnviz.engine.protocol import SingleRun
from bnnviz.errors import BnnvizError


class OwnTable:
    """Build the parts ``verdict`` and ``row`` for a network on the user's own table."""

    _PARTS: ClassVar[tuple[str, ...]] = ("verdict", "row")

    def __init__(self, run: SingleRun, mixing: LiveMixing, predicts: bool) -> None:
        self.emits = self._PARTS if predicts and run.spec.file is not None else ()
        self._mixing, self._weighted = mixing, run.sampler.traits.weighted
        self._typed, self._judged = TypedRow(run), LiveVerdict(run)

    def forget(self) -> None:
        """Drop results of earlier draws."""
        self._typed.forget()
        self._judged.forget()

    def look_like(self, other: OwnTable) -> None:
        """Predict the row of another run of the same target."""
        self._typed.look_like(other._typed)

    def choose(self, row: list[float]) -> None:
        """Set the row to predict."""
        if not self.emits:
            raise BnnvizError("Only a run on your own table can predict an entered row.", "row")
        self._typed.choose(row)

    def part(self, name: str, component: np.ndarray) -> dict[str, Any]:
        """Return a part; ``component`` (chains, draws) is the first component of the draws."""
        if name == "row":
            return self._typed.part()
        if component.size and not self._weighted:
            self._mixing.take(component)
        return self._judged.part(self._mixing.found.rhat)

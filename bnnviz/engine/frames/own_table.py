"""Make what frames have of a run on a table of the user's own: the verdict, and the prediction of a typed row."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bnnviz.engine.frames.typed_row import TypedRow
from bnnviz.engine.monitor.live_verdict import LiveVerdict
from bnnviz.engine.monitor.mixing import LiveMixing
from bnnviz.engine.protocol import SingleRun
from bnnviz.errors import BnnvizError


class OwnTable:
    """Make the parts ``verdict`` and ``row``, where a run is of a network on a table of the user's own."""

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
        """Take a row to predict."""
        if not self.emits:
            raise BnnvizError("Only a run on your own table can predict an entered row.", "row")
        self._typed.choose(row)

    def part(self, name: str, component: np.ndarray) -> dict[str, Any]:
        """Return a part; ``component`` (chains, draws) is the first one of the draws."""
        if name == "row":
            return self._typed.part()
        if component.size and not self._weighted:
            self._mixing.take(component)
        return self._judged.part(self._mixing.found.rhat)

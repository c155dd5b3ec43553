"""Draw the scores of each sampler's predictions against its seconds."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SERIES, Axis, Drawing, curve, extent, padded
from bnnviz.figures.palette import DOT
from bnnviz.numerals import general

LEAST_ROOM = 0.02  # above and below: small differences of the first scores are not magnified
#: The scores, and their names at the axis.
MEASURES = {"accuracy": "accuracy", "nll": "NLL", "ece": "ECE"}


class Course(Figure):
    """Plot accuracy, negative log predictive density or calibration error of the test rows over time."""

    name = "course"
    title = "Over time"
    needs = ("course",)

    x, y = Axis("seconds of each sampler", (0.0, 10.0), "exact"), Axis()
    measure = next(iter(MEASURES))

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw each sampler's measures against its ``seconds``."""
        entries = part["entries"][:SERIES]
        values = [np.asarray(sampler[self.measure], dtype=float) for sampler in entries]
        pairs = list(zip(entries, values, strict=True))
        marks = [
            mark
            for place, (sampler, y) in enumerate(pairs)
            for mark in curve(sampler["seconds"], y, place, sampler["name"], DOT, 6)
        ]
        across = extent(*(sampler["seconds"] for sampler in entries))
        x = Axis("seconds of each sampler", None if across is None else (0.0, max(across[1], 1e-3)), key="running")
        y = Axis(MEASURES[self.measure], padded(extent(*values), 0.06, LEAST_ROOM), key=self.measure)
        note = "; ".join(f"{sampler['name']} {general(y[-1])}" for sampler, y in pairs if len(y))
        return Drawing(marks, x=x, y=y, note=note)

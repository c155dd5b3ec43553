"""Draw the terms of the energy of the watched run, move by move, for both samplers of the double well."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Drawing, Line, Mark, Points, extent, padded
from bnnviz.figures.palette import DOT, Kind

LINES = (
    ("func_potential", "FuncHMC: mean of U", "blue", ()),
    ("func_entropy", "FuncHMC: − entropy", "green", ()),
    ("func_kinetic", "FuncHMC: kinetic", "orange", ()),
    ("point_potential", "HMC: U", "purple", ()),
    ("point_kinetic", "HMC: kinetic", "purple", (5, 4)),
)
REJECTED = Kind("rejected", "x", "ink", False)


class Energy(Figure):
    """Draw potential, entropy and kinetic energy; a cross where a move was rejected."""

    name = "ledger"
    title = "Energy"
    needs = ("ledger",)

    def blank(self) -> Drawing:
        """Return empty axes."""
        return Drawing(x=Axis("move", (0.0, self._last), follow="exact"), y=Axis("energy (nats)"))

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw each term at ``move``."""
        move = np.asarray(part["move"])
        if not len(move):
            return self.blank()
        data = {name: np.asarray(part[name], dtype=float) for name, *_ in LINES}
        data["func_entropy"] = -data["func_entropy"]
        marks: list[Mark] = []
        for name, label, colour, dash in LINES:
            look = {"colour": colour, "label": label}
            # The first move alone makes no line.
            marks += [Line(move, data[name], 2.2, dash, **look), Points(move, data[name], DOT, 6, colour=colour)]
        for sampler in ("func", "point"):
            lost = ~np.asarray(part[f"{sampler}_accepted"], dtype=bool)
            at = move[lost], data[f"{sampler}_potential"][lost]
            marks.append(Points(*at, REJECTED, 9, 2.2, label=REJECTED.label))
        ends = (max(float(move[0]) - 1, 0.0), max(self._last, float(move[-1]) + 0.5)) if move[0] <= 1 else None
        x = Axis("move", ends or (float(move[0]) - 1, float(move[-1]) + 0.5), follow="exact", whole=True)
        return Drawing(marks, x=x, y=Axis("energy (nats)", padded(extent(*data.values()))))

    @property
    def _last(self) -> float:
        return float(min(self.scene.get("moves", 10), 200)) + 0.5

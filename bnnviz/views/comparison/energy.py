"""Draw what the energy of the watched run is made of, move by move, for both samplers of the double well."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns, extent
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import Kind, legend, line_html, mark_html

LINES = (
    ("func_potential", "FuncHMC: mean of U", "blue", ()),
    ("func_entropy", "− entropy", "green", ()),
    ("func_kinetic", "kinetic", "orange", ()),
    ("point_potential", "HMC: U", "purple", ()),
    ("point_kinetic", "kinetic", "purple", (5, 4)),
)
REJECTED = Kind("rejected", "x", "ink", False)
ROOM = 0.06


class EnergyView(View):
    """Draw potential, entropy and kinetic energy; a cross where a move was rejected."""

    name = "ledger"
    title = "Energy"
    needs = ("ledger",)

    def _build(self) -> None:
        fig = self._figure("move", "energy (nats)", (0.0, 10.0), (-3.0, 3.0))
        self._y = self._window(fig.y_range)
        self._moves = 10
        self.source = PackedColumns(("move", *(name for name, *_ in LINES)))
        self.lost = PackedColumns(("move", "func", "point"))
        for name, _, role, dash in LINES:
            self._coloured(self.canvas.line(self.source, "move", name, width=2.2, dash=dash), role=role)
            dot = Kind(name, "dot", role, True)
            # The first move alone makes no line.
            self._coloured(self.canvas.marks(self.source, "move", name, dot, 6), dot)
        for name in ("func", "point"):
            self._coloured(self.canvas.marks(self.lost, "move", name, REJECTED, 9, width=2.2), REJECTED)

    def reset(self, scene: dict) -> None:
        """Begin again."""
        self._moves = scene["moves"]
        self.root.x_range.update(start=0.0, end=float(min(self._moves, 200)) + 0.5)
        self._y.restart()
        self._empty(self.source, self.lost)

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        lines = [line_html(label, getattr(p, role), p, dash=" ".join(map(str, dash))) for _, label, role, dash in LINES]
        return legend(*lines, mark_html(REJECTED, p))

    def _show(self, part: dict) -> bool:
        move = part["move"]
        if not len(move):
            return False
        data = {name: part[name] for name, *_ in LINES} | {"func_entropy": -part["func_entropy"]}
        start = float(move[0]) - 1
        if start > self.root.x_range.start:
            self.root.x_range.update(start=start, end=float(move[-1]) + 0.5)
        reach = extent(*data.values())
        room = ROOM * (reach[1] - reach[0] + 1e-9)
        self._y.cover((reach[0] - room, reach[1] + room))
        lost = {
            name: np.where(part[f"{name}_accepted"], np.nan, data[f"{name}_potential"]) for name in ("func", "point")
        }
        moved = self._push(self.lost, columns(move=move, **lost))
        return self._push(self.source, columns(move=move, **data)) or moved

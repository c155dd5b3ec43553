"""Draw how the draws of what is followed are spread."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns, extent
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.futures import FutureLines
from bnnviz.views.palette import DARK, LIGHT


class MarginalView(View):
    """Draw the density of a weight or of a principal component, estimated from all draws."""

    name = "marginal"
    title = "Density"
    needs = ("marginal",)

    def _build(self) -> None:
        fig = self._figure("PC 1", "density", (-3.0, 3.0), (0.0, 0.5))
        fig.yaxis[0].ticker.desired_num_ticks = 3
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self._followed: tuple | None = None
        self.source = PackedColumns(("x", "y", "zero"))
        self._coloured(self.canvas.band(self.source, "x", "zero", "y", opacity=0.25), role="blue")
        self._coloured(self.canvas.line(self.source, "x", "y", width=2.4), role="blue")
        self.futures = FutureLines(self.canvas, ("x", "y"), (2.4,))

    def reset(self, scene: dict) -> None:
        """Forget the last run's draws."""
        self.note, self._followed = "", None
        self._x.start_at(-3.0, 3.0)
        self._y.start_at(0.0, 0.5)
        self._empty(self.source, self.futures.packed)

    def theme(self, dark: bool) -> None:
        """Change every colour in place, those of the futures too."""
        self.futures.theme(DARK if dark else LIGHT)
        super().theme(dark)

    def _show(self, part: dict) -> bool:
        followed = (part["label"], part["basis"])
        if followed != self._followed:
            self._followed = followed
            self.x_label = part["label"]
            self._x.restart()
            self._y.restart()
        self.note = f"{part['draws']:,} draws"
        others = part.get("futures", ())
        self._x.cover(extent(part["x"], *(other["x"] for other in others)))
        self._y.cover(extent(part["y"], [0.0], *(other["y"] for other in others)))
        moved = self._push(self.futures.packed, self.futures.columns(part))
        return moved | self._push(self.source, columns(x=part["x"], y=part["y"], zero=np.zeros(len(part["x"]))))

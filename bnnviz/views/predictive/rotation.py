"""Draw how unsure each sampler is of an image that is turned round."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import columns, extent
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import Kind
from bnnviz.views.series import DASHES, MOST, SeriesView

DOT = Kind("angle", "dot", "ink", True)


class RotationView(SeriesView):
    """Draw the predictive entropy of one image against the angle by which it is turned; a line is at the present one.

    The part ``turned``: ``angles`` in degrees, ``angle``, the present one, and ``lanes``, each with ``name`` and
    ``entropy`` at each angle, in nats.
    """

    name = "turned"
    title = "Turned round"
    needs = ("turned",)

    def _build(self) -> None:
        fig = self._figure("degrees", "entropy (nats)", (-180.0, 180.0), (0.0, 2.3))
        self._y = self._window(fig.y_range)
        self._now = PackedColumns(("x", "y"))
        self._mark = self.canvas.line(self._now, "x", "y", width=1.5, dash=(4, 4))
        for packed, dash in zip(self._make_packed_columns(("x", "y")), DASHES, strict=True):
            self._glyphs.append(self._dotted(packed, "x", "y", dash, DOT, 5))

    def reset(self, scene: dict) -> None:
        """Forget the lines."""
        super().reset(scene)
        self._y.start_at(0.0, float(np.log(max(len(scene.get("classes", ())), 2))))
        self._empty(self._now)

    def theme(self, dark: bool) -> None:
        """Change every colour in place."""
        super().theme(dark)
        self._mark.update(colour=self.palette.muted)

    def _show(self, part: dict) -> bool:
        lanes = part["lanes"][:MOST]
        changed = self._name([lane["name"] for lane in lanes])
        values = [np.asarray(lane["entropy"], dtype=float) for lane in lanes]
        self._y.cover(extent(*values) if lanes else None)
        top = float(self.root.y_range.end)
        changed |= self._push(self._now, columns(x=[part["angle"]] * 2, y=[0.0, top]))
        return self._push_each([columns(x=part["angles"], y=y) for y in values]) or changed

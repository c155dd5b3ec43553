"""Draw each sampler's predictive entropy of an image that is rotated."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SERIES, Axis, Drawing, Mark, Rule, curve, extent
from bnnviz.figures.palette import DOT


class Rotation(Figure):
    """Draw the predictive entropy of one image against the angle by which it is rotated, and the present angle."""

    name = "turned"
    title = "Rotated"
    needs = ("turned",)
    x = Axis("degrees", (-180.0, 180.0), "exact")

    def blank(self) -> Drawing:
        """Return empty axes."""
        most = float(np.log(max(len(self.scene.get("classes", ())), 2)))
        return self.drawing(y=Axis("entropy (nats)", (0.0, most)))

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw each sampler's ``entropy`` in nats at each of the ``angles`` in degrees."""
        entries = part["entries"][:SERIES]
        marks: list[Mark] = [Rule([part["angle"]], "x", 1.5, (4, 4), colour="muted", label="this angle")]
        for place, sampler in enumerate(entries):
            marks += curve(part["angles"], sampler["entropy"], place, sampler["name"], DOT, 5)
        up = extent(self.blank().y.ends, *(sampler["entropy"] for sampler in entries))
        return self.drawing(marks, y=Axis("entropy (nats)", up))

"""Draw what becomes of accuracy and of entropy as rows are changed the more."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bnnviz.views.base import SHARES, columns, extent
from bnnviz.views.series import DASHES, MOST, SeriesView

SHADE = 0.16
ROOM = 0.05


class _AgainstSteps(SeriesView):
    """Draw one figure of `bnnviz.attack` against the size of the step."""

    figure: ClassVar[str]

    def _build(self) -> None:
        fig = self._figure("size of the step", self.figure, (0.0, 0.3), SHARES)
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        packed_columns = self._make_packed_columns(("x", "y", "low", "high"))
        bands = [self.canvas.band(packed, "x", "low", "high", opacity=SHADE) for packed in packed_columns]
        for place, (packed, band, dash) in enumerate(zip(packed_columns, bands, DASHES, strict=True)):
            line = self.canvas.line(packed, "x", "y", width=2.2, dash=dash)
            self._glyphs.append((band, line, self._marked(packed, "x", "y", place)))

    def reset(self, scene: dict) -> None:
        """Forget the lanes."""
        super().reset(scene)
        self._x.start_at(0.0, 0.3)
        self._y.start_at(*SHARES)

    def _show(self, part: dict) -> bool:
        lanes = part["lanes"][:MOST]
        changed = self._name([lane["name"] for lane in lanes])
        self.x_label = part["label"]
        self._label(part)
        across = extent(*(lane["eps"] for lane in lanes)) if lanes else None
        if across is not None:
            self._cover(lanes, across)
        return self._push_each([self._columns(lane) for lane in lanes]) or changed

    def _label(self, part: dict) -> None:
        """Say what the figure is in."""

    def _cover(self, lanes: list[dict], across: tuple[float, float]) -> None:
        ends = across[0] - ROOM / 3 * (across[1] - across[0]), across[1] + ROOM / 3 * (across[1] - across[0])
        if (self.root.x_range.start, self.root.x_range.end) != ends and ends[0] < ends[1]:
            self._x.start_at(*ends)
        last = max(lanes, key=lambda lane: max(lane["eps"]))["eps"][-1]
        ends = [(lane["name"], lane[self.figure][-1]) for lane in lanes if lane["eps"][-1] == last]
        texts = (f"{name} {value:.3f}" for name, value in ends if np.isfinite(value))
        told = "; ".join(texts)
        self.note = told and f"at {last:g}: {told}"

    def _columns(self, lane: dict) -> dict[str, np.ndarray]:
        ends = {end: lane[f"{self.figure}_{end}"] for end in ("low", "high")}
        return columns(x=lane["eps"], y=lane[self.figure], **ends)


class AttackView(_AgainstSteps):
    """Draw the accuracy of attacked rows with its interval over the rows.

    Its part of a frame: ``label`` of the axis of the steps; ``unit`` of the entropies; ``top``, the largest entropy
    there can be; ``lanes``, a list of dicts with ``name`` and what `bnnviz.attack` gives: ``eps``, ``accuracy``,
    ``accuracy_low``, ``accuracy_high``, ``entropy``, ``entropy_low`` and ``entropy_high``, (sizes,) each.
    """

    name = "attack"
    title = "Attacked: accuracy"
    needs = ("attack",)
    figure = "accuracy"


class AttackEntropyView(_AgainstSteps):
    """Draw the mean predictive entropy of attacked rows with its interval; its part is that of `AttackView`."""

    name = "attack_entropy"
    title = "Attacked: entropy"
    needs = ("attack_entropy",)
    figure = "entropy"

    def _label(self, part: dict) -> None:
        self.y_label = f"entropy ({part['unit']})"
        if self.root.y_range.end != part["top"]:
            self._y.start_at(0.0, float(part["top"]))

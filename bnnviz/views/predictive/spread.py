"""Draw how far the draws of a network disagree, on a map of two inputs."""

from __future__ import annotations

from bnnviz.views.base import View, columns
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import band_html, legend
from bnnviz.views.predictive.prediction import MAP, place_map

MOST = 0.5  # the standard deviation of a probability cannot be larger


class SpreadView(View):
    """Draw the standard deviation of the probability of class 1 over the draws."""

    name = "spread"
    title = "Its sd over the draws"
    needs = ("spread",)

    def _build(self) -> None:
        fig = self._figure("x1", "x2", (-1.0, 1.0), (-1.0, 1.0))
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self.source = PackedColumns(("sd",))
        self._map = self.canvas.map(self.source, "sd")
        self._map.high = MOST

    def reset(self, scene: dict) -> None:
        """Take the new run's inputs for axes."""
        self.forget()
        data = scene["data"]
        if data is None or data["kind"] != MAP:
            return
        self.x_label, self.y_label = data["x_label"], data["y_label"]
        self._x.start_at(*data["x_range"])
        self._y.start_at(*data["y_range"])
        place_map(self._map, data)
        self.canvas.publish()

    def forget(self) -> None:
        """Empty the map."""
        self.note = ""
        self._empty(self.source)

    def theme(self, dark: bool) -> None:
        """Change every colour in place, the map's too."""
        super().theme(dark)
        self._map.ramp = [self.palette.surface, self.palette.purple]
        self.canvas.publish()

    def legend_html(self) -> str:
        """Give the legend: pale where the draws agree."""
        return legend(band_html(f"0 to {MOST:g}", self.palette.purple, self.palette, (0.35, 0.5)))

    def _show(self, part: dict) -> bool:
        self.note = f"largest {part['sd'].max():.2f}"
        return self._push(self.source, columns(sd=part["sd"]))

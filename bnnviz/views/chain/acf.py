"""Draw the autocorrelation of the trace, with the band that white noise would stay in."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import View, columns, extent
from bnnviz.views.canvas import PackedColumns

LAGS = (25, 50, 100, 200)  # the axis ends at one of these
EDGE = 0.4  # half of a bar


class AcfView(View):
    """Draw bars of autocorrelation of what the trace follows; its effective sample size stands in the heading."""

    name = "acf"
    title = "ACF"
    needs = ("acf",)

    def _build(self) -> None:
        fig = self._figure("lag (draws)", "ACF", (-EDGE, LAGS[0] + EDGE), (-0.2, 1.0))
        fig.yaxis[0].ticker.desired_num_ticks = 3
        self._x, self._y = self._window(fig.x_range), self._window(fig.y_range)
        self.source = PackedColumns(("lag", "acf", "low", "high"))
        self._coloured(self.canvas.band(self.source, "lag", "low", "high", opacity=0.25), role="grey")
        self._coloured(self.canvas.bars(self.source, "lag", "acf", width=2 * EDGE), role="blue")

    def reset(self, scene: dict) -> None:
        """Forget the last run's draws."""
        self.note = ""
        self._x.start_at(-EDGE, LAGS[0] + EDGE)
        self._y.start_at(-0.2, 1.0)
        self._empty(self.source)

    def _show(self, part: dict) -> bool:
        ess, self.y_label = part["ess"], f"ACF ({part['label']})"
        self.note = f"ESS {ess:,.0f}" if np.isfinite(ess) else ""
        data = _columns(part)
        self._show_lags(_telling(data["acf"], data["high"]))
        # A bar just outside would show as a sliver: the frame clips a pixel late.
        data["acf"] = np.where(data["lag"] <= self._x.range.end, data["acf"], np.float32(np.nan))
        self._y.cover(extent(data["acf"], [-0.2, 1.0]))
        return self._push(self.source, data)

    def _show_lags(self, lags: int) -> None:
        if self.follow and lags + EDGE > self._x.range.end:
            self._x.start_at(-EDGE, lags + EDGE)


def _telling(acf: np.ndarray, noise: np.ndarray) -> int:
    """Give the lag up to which to look: three times the first one within the noise."""
    within = np.flatnonzero(acf <= noise)
    wanted = 3 * within[0] if within.size else LAGS[-1]
    return next((lags for lags in LAGS if lags >= wanted), LAGS[-1])


def _columns(part: dict) -> dict:
    lag = np.asarray(part["lag"])[: LAGS[-1] + 1]
    half = np.full(lag.size, 1.96 / np.sqrt(max(part["draws"], 1)))
    return columns(lag=lag, acf=np.asarray(part["acf"])[: LAGS[-1] + 1], low=-half, high=half)

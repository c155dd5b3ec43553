"""Draw the proposals of an adaptive importance sampler, their draws by weight, and where they go from there."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import columns, separated
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import Kind, legend, line_html, mark_html
from bnnviz.views.plane import PlaneView

DRAW = Kind("draw", "circle", "blue", True)
MEAN = Kind("mean", "x", "ink", False)
SURVIVOR = Kind("survivor", "diamond", "orange", True)
TRIED = Kind("end of a step that was too long", "dot", "magenta", True)
REFUSED = Kind("no step short enough", "square", "magenta", False)
RADIUS = 2.0  # standard deviations of an ellipse
CORNERS = 40
SMALLEST, UNWEIGHED = 0.22, 0.3  # of the largest mark
FAINTEST = 0.28
MOST_TRIED = 8  # halvings that are drawn, of each step
_WEIGH, _RESAMPLE, _MOVE = 1, 2, 4
_EMPTY = np.empty((0, 2))


class PopulationView(PlaneView):
    """Draw ellipses of two standard deviations, draws sized by weight, lines to survivors, arrows along gradients."""

    name = "population"
    title = "Population"
    needs = ("population",)

    def _build(self) -> None:
        self._build_plane()
        self._counts = ""
        two = ("x", "y")
        self.draws = PackedColumns((*two, "alpha", "scale"))
        self.ellipses, self.means, self.lines, self.survivors = (PackedColumns(two) for _ in range(4))
        self.steps = PackedColumns((*two, "dx", "dy"))
        self.tried, self.refused = PackedColumns(two), PackedColumns(two)
        canvas = self.canvas
        self._coloured(canvas.marks(self.draws, "x", "y", DRAW, 17, width=0.6, alpha="alpha", scale="scale"), DRAW)
        self._coloured(canvas.line(self.ellipses, "x", "y", width=1.5, opacity=0.8), role="purple")
        self._coloured(canvas.line(self.lines, "x", "y", width=1.4, opacity=0.8), role="orange")
        self._coloured(canvas.marks(self.means, "x", "y", MEAN, 7, width=1.6), MEAN)
        self._coloured(canvas.marks(self.tried, "x", "y", TRIED, 9, width=1), TRIED)
        self._coloured(canvas.marks(self.refused, "x", "y", REFUSED, 13, width=2), REFUSED)
        self._coloured(canvas.marks(self.survivors, "x", "y", SURVIVOR, 9, width=1), SURVIVOR)
        self._coloured(canvas.arrow(self.steps, "x", "y", "dx", "dy", size=0, width=2.2), role="green")

    def reset(self, scene: dict) -> None:
        """Show the new run's plane, with its contours if it has any."""
        self._reset_plane(scene)
        self.note = self._counts = ""
        self._empty(self.draws, self.steps, self.ellipses, self.means, self.lines)
        self._empty(self.survivors, self.tried, self.refused)

    def legend_html(self) -> str:
        """Give the legend."""
        p = self.palette
        return legend(
            mark_html(DRAW, p, "draw, by weight"),
            line_html("proposal, 2 sd", p.purple, p),
            mark_html(SURVIVOR, p),
            line_html("gradient step", p.green, p),
        )

    def _show(self, part: dict) -> bool:
        self._enter_plane(part)
        phase, draws, ends = part["phase"], part["draw_xy"], part["end_xy"]
        outlines = ellipses(part["mean_xy"], part["root"])
        self._fit(
            x=(draws[:, 0], outlines[..., 0], ends[:, 0]),
            y=(draws[:, 1], outlines[..., 1], ends[:, 1]),
        )
        self.note = f"iteration {part['iteration']:,}"
        self._counts = f"{len(part['mean_xy'])} proposals and {len(draws)} of their draws, {self.note}"
        survives = part["survives"] & (phase >= _RESAMPLE)
        landed = part["landed_xy"]
        moved = [
            self._push(self.draws, _draw_columns(draws, part["draw_size"])),
            self._push(self.ellipses, _line(outlines)),
            self._push(self.means, _points(part["mean_xy"])),
            self._push(self.lines, _between(part["mean_xy"][part["parent"]][survives], landed[survives])),
            self._push(self.survivors, _points(landed[survives])),
            *self._steps(part, landed),
        ]
        return any(moved)

    def _steps(self, part: dict, landed: np.ndarray) -> list[bool]:
        """Draw the gradient steps, with the ends that were too far, and where none was short enough."""
        taken = (part["halvings"] >= 0) & (part["phase"] == _MOVE)
        apart = (part["end_xy"] - landed)[taken]
        tried = [
            landed[taken][i] + apart[i] * 2.0 ** np.arange(1, min(h, MOST_TRIED) + 1)[:, None]
            for i, h in enumerate(part["halvings"][taken])
        ]
        refused = landed[~taken] if part["phase"] == _MOVE and part["climbs"] else _EMPTY
        return [
            self._push(self.steps, columns(x=landed[taken, 0], y=landed[taken, 1], dx=apart[:, 0], dy=apart[:, 1])),
            self._push(self.tried, _points(np.concatenate([_EMPTY, *tried]))),
            self._push(self.refused, _points(refused)),
        ]

    def _words(self) -> str:
        return self._counts


def ellipses(means: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Return the corners (proposals, corners, 2) of ellipses around means, from roots (proposals, 2, 2)."""
    angle = np.linspace(0, 2 * np.pi, CORNERS)
    circle = RADIUS * np.stack([np.cos(angle), np.sin(angle)])
    return means[:, None] + (roots @ circle).swapaxes(1, 2)


def _draw_columns(xy: np.ndarray, size: np.ndarray) -> dict:
    size = size[: len(xy)]
    weighed = size >= 0
    share = np.sqrt(np.maximum(size, 0))
    return columns(
        x=xy[:, 0],
        y=xy[:, 1],
        alpha=np.where(weighed, FAINTEST + (1 - FAINTEST) * share, 0.6),
        scale=np.where(weighed, SMALLEST + (1 - SMALLEST) * share, UNWEIGHED),
    )


def _points(xy: np.ndarray) -> dict:
    return columns(x=xy[:, 0], y=xy[:, 1])


def _line(corners: np.ndarray) -> dict:
    """Return columns of one line of many glyphs, (glyphs, points, 2)."""
    gap = np.full((len(corners), 1, 2), np.nan)
    return _points(np.concatenate([corners, gap], axis=1).reshape(-1, 2))


def _between(begin: np.ndarray, end: np.ndarray) -> dict:
    return columns(x=separated(begin[:, 0], end[:, 0]), y=separated(begin[:, 1], end[:, 1]))

"""Draw the proposals of an adaptive importance sampler, their weighted draws, and the steps of the proposals."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.figures import parts
from bnnviz.figures.marks import SQUARE, Arrows, Drawing, Line, Mark, Points, Segments
from bnnviz.figures.palette import Kind
from bnnviz.figures.plane import PlaneFigure
from bnnviz.figures.ranges import joined

DRAW = Kind("draw, by weight", "circle", "blue", True)
MEAN = Kind("mean", "x", "ink", False)
SURVIVOR = Kind("survivor", "diamond", "orange", True)
TRIED = Kind("end of a step that was too long", "dot", "magenta", True)
REFUSED = Kind("no step short enough", "square", "magenta", False)
RADIUS = 2.0  # standard deviations of an ellipse
CORNERS = 40
SMALLEST, UNWEIGHED = 0.22, 0.3  # of the largest mark
FAINTEST = 0.28
MOST_TRIED = 8  # halvings that are drawn, of each step
_RESAMPLE, _MOVE = 2, 4  # phases of an iteration


class Population(PlaneFigure):
    """Draw ellipses of two standard deviations, draws sized by weight, lines to survivors, arrows along gradients."""

    name, title = "population", "Population"
    needs = ("population",)
    place = 12
    alike = False  # nothing moves at an angle, and a narrow density has more room

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw one phase of an iteration."""
        phase, draws, ends, means = part["phase"], part["draw_xy"], part["end_xy"], part["mean_xy"]
        angle, landed = np.linspace(0, 2 * np.pi, CORNERS), part["landed_xy"]
        circle = RADIUS * np.stack([np.cos(angle), np.sin(angle)])
        outlines = np.asarray(means)[:, None] + (np.asarray(part["root"]) @ circle).swapaxes(1, 2)
        seen = {axis: (draws[:, i], outlines[..., i], ends[:, i]) for i, axis in enumerate("xy")}
        plane = self.plane(part, **seen)
        survives = np.asarray(part["survives"], dtype=bool) & (phase >= _RESAMPLE)
        parents = means[part["parent"]][survives] if "parent" in part else landed[survives]
        apart = landed[survives] - parents
        lines = joined(outlines)
        # The gradient steps, the step lengths that were too long, and the draws without an accepted step.
        halvings = np.asarray(part["halvings"])
        taken = (halvings >= 0) & (phase == _MOVE)
        rise = (ends - landed)[taken]
        tried = [
            start + step * 2.0 ** np.arange(1, min(h, MOST_TRIED) + 1)[:, None]
            for start, step, h in zip(landed[taken], rise, halvings[taken], strict=True)
        ]
        refused = landed[~taken] if phase == _MOVE and part.get("climbs", True) else np.empty((0, 2))
        # The area of the mark of a draw with a weight is in proportion to it.
        size = np.asarray(part["draw_size"], dtype=float)[: len(draws)]
        weighed, share = size >= 0, np.sqrt(np.maximum(size, 0))
        alpha = np.where(weighed, FAINTEST + (1 - FAINTEST) * share, 0.6)
        scale = np.where(weighed, SMALLEST + (1 - SMALLEST) * share, UNWEIGHED)
        marks: list[Mark] = [
            *plane.pop("marks"),
            Points(*draws.T, DRAW, 17, 0.6, alpha=alpha, scale=scale, label=DRAW.label),
            Line(*lines.T, 1.5, colour="purple", opacity=0.8, label="proposal, 2 sd"),
            Segments(*parents.T, *apart.T, 1.4, colour="orange", opacity=0.8, label="from its proposal"),
            Points(*means.T, MEAN, 7, label=MEAN.label),
            Points(*np.concatenate([np.empty((0, 2)), *tried]).T, TRIED, 9, 1.0, label=TRIED.label),
            Points(*refused.T, REFUSED, 13, 2.0, label=REFUSED.label),
            Arrows(*landed[taken].T, *rise.T, colour="green", label="gradient step"),
            Points(*landed[survives].T, SURVIVOR, 9, 1.0, label=SURVIVOR.label),
        ]
        note = f"iteration {int(part['iteration']):,}"
        words = f"{len(means)} proposals and {len(draws)} of their draws, {note}"
        return Drawing(marks, note=note, words=words, size=SQUARE, **plane)


def population(source: Any) -> Drawing:
    """Plot proposals as ellipses of two standard deviations, with draws sized by weight and resampled draws.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A run or recording of a population-based sampler, or the part ``population`` of a frame.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> run = bnnviz.sample("banana", "pmcnet", draws=40)
    >>> plots.population(run)
    :Overlay...
    """
    return parts.drawn(Population(), source, "a population")

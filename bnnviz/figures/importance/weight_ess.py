"""Draw the effective sample size of weights as a share of the draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts, sources
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Drawing, Line, Mark, Points, Rule
from bnnviz.figures.palette import Kind

ALARM = 5.0  # percent
LEAST = 0.01  # percent; smaller values are on the axis
LOWEST, HIGHEST = -0.15, 2.15  # powers of ten, as long as no share is smaller
LOW = Kind("collapsed", "triangle", "magenta", True)
FINE = Kind("fine", "circle", "green", True)
_TICKS = {-2.0: "≤ 0.01", -1.0: "0.1", 0.0: "1", 1.0: "10", 2.0: "100"}


class WeightEss(Figure):
    """Draw the effective share of the draws in percent, on a log scale, with the line under which it is an alarm."""

    name, title = "gauge", "Weight ESS"
    needs = ("gauge",)
    place = 13
    x = Axis("iteration", (0.0, 20.0), "scroll")
    y = Axis("weight ESS (% of draws)", (LOWEST, HIGHEST), "exact", ticks=_TICKS)
    always = (Rule([np.log10(ALARM)], width=2.0, dash=(7, 5), colour="magenta", label="alarm"),)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``share`` (iterations,) at ``iteration``. ``along`` is another name of iterations."""
        at, percent = np.asarray(part["iteration"]), 100 * np.asarray(part["share"], dtype=float)
        if not len(at):
            return self.blank()
        height, low = np.log10(np.maximum(percent, LEAST)), percent < ALARM
        marks: list[Mark] = [Line(at, height, 1.6, colour="muted", label="weight ESS")]
        for own, kind, label in ((~low, FINE, f"{ALARM:g}% or more"), (low, LOW, f"under {ALARM:g}%")):
            marks.append(Points(at[own], height[own], kind, 8, label=label))
        first, last = float(at[0]), float(at[-1])
        ends = (first - 1, last + 1) if first > 1 else (0.0, max(last + 1, 20.0))
        note = f"{part['ess']:,.1f} of {part['draws']:,} draws, {percent[-1]:.3g}%" if "ess" in part else ""
        lowest = float(height.min())
        y = replace(self.y, ends=(LOWEST if lowest >= LOWEST else float(np.floor(lowest)) + LOWEST, HIGHEST))
        return self.drawing(marks, x=Axis(part.get("along", "iteration"), ends, "scroll"), y=y, note=note)


def weight_ess(source: Any) -> Drawing:
    r"""Plot the effective sample size of weights, :math:`1 / \sum_i \bar w_i^2`, relative to the number of draws.

    Below the dashed line at 5%, few draws dominate the estimates.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array or dict
        A run of a sampler with a population, by its iterations; other draws with weights, by the draws so far; or
        logarithms of weights as an array (iterations, draws).

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> spread = np.linspace(4, 0.5, 20)[:, None]  # of the logarithms, by iteration
    >>> plots.weight_ess(spread * rng.normal(size=(20, 100)))
    :Overlay...
    """
    if (isinstance(source, Mapping) and "share" in source) or hasattr(source, "frame"):
        return parts.drawn(WeightEss(), source, "weights of draws")
    if sources.is_array(source):
        logs = np.asarray(source, dtype=float)
        if logs.ndim != 2 or not logs.size:
            raise BnnvizError(f"Give log weights as (iterations, draws), not of the shape {logs.shape}.", "source")
        counts, along, until = np.arange(1, len(logs) + 1), "iteration", list(logs)
    else:
        draws = sources.one(source)
        logs = draws.log_weights
        if logs is None:
            raise BnnvizError(f"The draws of {draws.name} have no weights; draw their mixing instead.", "source")
        counts = np.unique(np.linspace(1, draws.shape[1], min(50, draws.shape[1])).astype(int))
        along, until = "draws of each chain", [logs[:, :n] for n in counts]
    shares = [diagnostics.weight_ess(each) / each.size for each in until]
    return WeightEss().draw({"along": along, "iteration": counts, "share": shares})

"""Draw the rate along the present segment, the envelope, and the proposals under it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Band, Drawing, Line, Mark, Points, Rule, Segments, whiskers
from bnnviz.figures.palette import ACCEPTED, BOUNCE, KINDS, REJECTED, UNIFORM, VIOLATION
from bnnviz.figures.ranges import extent

MARKS = {REJECTED: KINDS[REJECTED], BOUNCE: ACCEPTED, VIOLATION: KINDS[VIOLATION]}
DOTTED, DASHED = (2, 4), (6, 4)
BELOW = 0.3  # of the height is shown under zero, where the signed rate may go far
AHEAD = 0.4  # minimum share of the remaining segment to show
MEMORY = 12  # segments
LEAST = 0.1  # expected events over the shown time at a rate of the full height: lower rates look flat
LATEST = 12  # proposals are shown with their uniform mark
#: What marks mean, by their label.
HINTS = {
    "U decreases": "the density rises along the path: the rate is 0, and it cannot turn",
    "rate": "how likely the path is to turn now, per unit of time",
    "envelope": "an upper bound of the rate: times to turn are proposed from it",
    "rejected": "a proposed time at which the path goes on",
    "accepted": "a proposed time at which the path turns",
    "violation": "the rate was above the envelope, so the path turned too late",
    UNIFORM.label: "a random height under the envelope: below the rate, the proposal is accepted",
}


class Thinning(Figure):
    """Draw the rate along the segment, signed and clipped, the envelope and its proposals."""

    name, title = "thinning", "Why it turns"
    needs = ("envelope",)
    place = 1
    x = Axis("time since the last event (path time)", (0.0, 1.0), "exact")
    y = Axis("rate (1/time)", (-0.5, 2.0), "exact")
    always = (Rule([0.0], colour="axis"),)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw a segment: ``rate`` at ``rate_t``, pieces of the envelope, proposals and the refresh clock."""
        rate, refresh = np.asarray(part["rate"]), part["refresh_t"]
        clock = [] if refresh is None else [refresh]  # NaN in a frame, None in a record
        t0, t1, h0, h1 = (np.append(part[f"past_{end}"], part[f"now_{end}"]) for end in ("t0", "t1", "h0", "h1"))
        t, height = (np.stack(ends, axis=1).ravel() for ends in ((t0, t1), (h0, h1)))  # of the envelope
        below = np.where(rate < 0, rate, np.nan)
        marks: list[Mark] = [
            *_stems(part),
            Line(part["rate_t"], below, 1.6, DASHED, colour="pale", label="U decreases", hint=HINTS["U decreases"]),
            Line(part["rate_t"], np.maximum(rate, 0), 2.4, colour="blue", label="rate", hint=HINTS["rate"]),
            Band(t, 0 * height, height, colour="grey", opacity=0.15),
            _pieces(part, "past", 2.2),
            _pieces(part, "now", 3.0),
            Rule(clock, "x", 1.8, DASHED, "refresh clock", colour="purple"),
            *_proposals(part),
        ]
        key = part.get("segment")
        x = Axis(self.x.label, (0.0, float(part["t_max"])), "segment", key, memory=MEMORY)
        y = Axis(f"rate ({part['unit']})", _heights(part), "segment", key, memory=MEMORY)
        note = f"violations {100 * part['violation_share']:.2g}%" if part.get("violation_share") else ""
        words = f"{100 * part['acceptance']:.0f}% of proposals accepted" if part.get("proposals") else ""
        return self.drawing(marks, x=x, y=y, note=note, words=" · ".join(filter(None, (words, note))))


def _pieces(part: dict[str, Any], name: str, width: float) -> Segments:
    t0, t1, h0, h1 = (np.asarray(part[f"{name}_{end}"], dtype=float) for end in ("t0", "t1", "h0", "h1"))
    return Segments(t0, h0, t1 - t0, h1 - h0, width, colour="ink", label="envelope", hint=HINTS["envelope"])


def _stems(part: dict[str, Any]) -> list[Mark]:
    """Return a line from zero to each of the latest proposals."""
    t, rate, kind, height = (np.asarray(part[f"proposal_{name}"])[-LATEST:] for name in ("t", "rate", "kind", "height"))
    tops, taken = np.fmax(height, np.maximum(rate, 0)), np.isin(kind, (BOUNCE, VIOLATION))
    return [
        whiskers(t[own], 0 * tops[own], tops[own], width, dash=DOTTED, colour=colour, label="proposal")
        for own, colour, width in ((~taken, "grey", 1.2), (taken, "green", 1.8))
    ]


def _proposals(part: dict[str, Any]) -> list[Mark]:
    """Mark each proposal at its rate, and the uniform draw that decides on it."""
    t, rate, kind, u, height = (np.asarray(part[f"proposal_{name}"]) for name in ("t", "rate", "kind", "u", "height"))
    found = []
    for code, of in MARKS.items():
        at = t[kind == code], np.maximum(rate, 0)[kind == code]
        found.append(Points(*at, of, 11, width=2.2, label=of.label, hint=HINTS[of.label]))
    at, label = (t[-LATEST:], (u * height)[-LATEST:]), UNIFORM.label
    return [*found, Points(*at, UNIFORM, 8, fill="surface", label=label, hint=HINTS[label])]


def _heights(part: dict[str, Any]) -> tuple[float, float] | None:
    """Return the rates to show: far ahead of the proposals, and far under zero, the curve may leave the figure."""
    t = np.asarray(part["rate_t"])
    reached = max((x for name in ("now_t1", "proposal_t") for x in part[name]), default=part["t_max"])
    near = np.where(t <= 1.1 * reached, part["rate"], 0.0)
    names = ("past_h0", "past_h1", "now_h0", "now_h1", "proposal_height", "proposal_rate")
    seen = extent(near, [AHEAD * part["y_max"]], *(part[name] for name in names))
    lowest = extent(part["rate"], [0.0])
    if seen is None:
        return None
    top = max(1.08 * seen[1], LEAST / max(float(part["t_max"]), 1.0))
    return max(lowest[0], -BELOW * top), top


def thinning(source: Any) -> Drawing:
    """Plot the rate, the envelope and the proposals along a segment of a path.

    A proposal is accepted if its uniform draw times the envelope is below the rate. If the rate exceeds the envelope,
    the bound is violated.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A run or recording of an event-based sampler, or the part ``envelope`` of a frame.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> paper = {"bound": "interpolated", "alpha": 2.0, "refresh_rate": 0.1, "metric": "unit"}
    >>> run = bnnviz.sample("gaussian", "bps", draws=10, warmup=0, chains=1, seed=10, settings=paper)
    >>> plots.thinning(run)
    :Overlay...
    """
    return parts.drawn(Thinning(), source, "proposals under an envelope")

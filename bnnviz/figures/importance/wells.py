"""Draw the two samplers of the double well: FuncHMC's functionals, HMC's points, and how they agree with the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Bars, Drawing, Line, Mark, Points, Rule
from bnnviz.figures.palette import DOT, Kind
from bnnviz.figures.ranges import extent, gapped, padded

BELOW = 0.1  # of the height: the position of points below the axis
POINT = Kind("HMC's points", "circle", "purple", True)
NEWEST = Kind("its newest", "circle", "purple", False)
REJECTED = Kind("rejected", "x", "ink", False)
OLDEST = 0.3
HIGHEST = 4.0  # of a ratio
_SAMPLERS = (("func", "FuncHMC", "green"), ("point", "HMC", "purple"))
ENERGIES = (
    ("func_potential", "FuncHMC: mean of U", "blue", ()),
    ("func_entropy", "FuncHMC: − entropy", "green", ()),
    ("func_kinetic", "FuncHMC: kinetic", "orange", ()),
    ("point_potential", "HMC: U", "purple", ()),
    ("point_kinetic", "HMC: kinetic", "purple", (5, 4)),
)


class OverTruth(Figure):
    """Draw over the true density, which is known before the first move."""

    def blank(self) -> Drawing:
        """Return the true density."""
        return self.draw({}) if "truth" in self.scene else super().blank()


class Functionals(OverTruth):
    """Plot the accepted functionals as curves and the draws of the other sampler below the axis."""

    name, title = "functionals", "FuncHMC's functionals and HMC's points"
    needs = ("wells",)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw functionals ``y``, those ``accepted``, and the ``points`` of HMC."""
        x, truth, first = (np.asarray(self.scene[name]) for name in ("x", "truth", "first"))
        top = 1.15 * max(float(truth.max()), float(first.max()))
        marks: list[Mark] = [
            Rule([0.0], colour="axis"),
            Line(x, truth, 3.0, label="the target"),
            Line(x, first, 2.0, (7, 5), colour="green", label="first functional"),
        ]
        highest, note = 0.0, ""
        curves, points = (np.asarray(part.get(name, ()), dtype=float) for name in ("y", "points"))
        if len(curves):
            highest, note = float(curves.max()), "1 move" if part.get("moves") == 1 else f"{part['moves']} moves"
            accepted = gapped(x, curves[np.asarray(part["accepted"], dtype=bool)])
            marks.insert(1, Line(*accepted, 1.4, colour="green", opacity=0.5, label="functionals"))
            place, alpha = np.full(len(points), -0.5 * BELOW * top), np.linspace(OLDEST, 1.0, len(points))
            marks += [
                Line(x, curves[-1], 3.0, colour="orange", label="the newest"),
                Points(points, place, POINT, 9, alpha=alpha, label=POINT.label),
                Points(points[-1:], place[-1:], NEWEST, 17, 2.6, label=NEWEST.label),
            ]
        if highest > 4 * top:
            note = f"{note}, highest peak {highest:.2g}"  # beyond the axis
        y = Axis("density", (-BELOW * top, max(top, min(1.15 * highest, 4 * top))))
        return Drawing(marks, x=Axis("t", extent(x), follow="exact"), y=y, note=note)


class Pooled(OverTruth):
    """Draw histograms of the watched run's draws, and the density that they should have."""

    name, title = "pooled", "Draws of this run"
    needs = ("pooled",)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw the heights ``func`` and ``point`` of bars of ``width`` at ``x``."""
        x, truth = self.scene["x"], self.scene["truth"]
        top, highest, note = float(truth.max()), 0.0, ""
        marks: list[Mark] = []
        if part.get("func_draws"):
            half, highest = part["width"] / 2, float(max(part["func"].max(), part["point"].max()))
            steps = np.column_stack([part["x"] - half, part["x"] + half]).ravel()
            marks = [
                Bars(part["x"], part["func"], float(part["width"]), colour="green", opacity=0.45, label="FuncHMC"),
                Line(steps, np.repeat(part["point"], 2), 1.8, colour="purple", label="HMC"),
            ]
            note = f"distance to the target: FuncHMC {part['func_distance']:.2f}, HMC {part['point_distance']:.2f}"
        marks.append(Line(x, truth, 2.4, label="the target", still=True))
        y = Axis("density", (0.0, max(1.2 * top, min(highest, 2.2 * top))))
        return Drawing(marks, x=Axis("t", extent(x), follow="exact"), y=y, note=note)


class DensityRatio(Figure):
    """Plot the ratio of the target density to the density of the draws."""

    name, title = "density_ratio", "Truth / draws (KLIEP)"
    needs = ("ratio",)
    y = Axis("ratio", (0.0, HIGHEST), "exact")
    always = (Rule([1.0], width=2.0, label="1"),)

    def blank(self) -> Drawing:
        """Return the line at one."""
        return self.draw({"x": self.scene.get("x", (-2.0, 2.0))})

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw the ratios ``func`` and ``point`` at ``x``."""
        known = [(np.asarray(part[name], dtype=float), *look) for name, *look in _SAMPLERS if name in part]
        marks = [
            Line(part["x"], np.where(values > HIGHEST, np.nan, values), 2.4, colour=colour, label=label)
            for values, label, colour in known
        ]
        words = "the true density over that of the draws, one where they agree"
        return self.drawing(marks, x=Axis("t", extent(part["x"]), "exact"), words=words)


class Energy(Figure):
    """Draw potential, entropy and kinetic energy; a cross where a move was rejected."""

    name, title = "ledger", "Energy"
    needs = ("ledger",)

    def blank(self) -> Drawing:
        """Return empty axes."""
        return Drawing(x=Axis("move", (0.0, self._last), follow="exact"), y=Axis("energy (nats)"))

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw each term at ``move``."""
        move = np.asarray(part["move"])
        if not len(move):
            return self.blank()
        data = {name: np.asarray(part[name], dtype=float) for name, *_ in ENERGIES}
        data["func_entropy"] = -data["func_entropy"]
        marks: list[Mark] = []
        for name, label, colour, dash in ENERGIES:
            look = {"colour": colour, "label": label}
            # The first move alone makes no line.
            marks += [Line(move, data[name], 2.2, dash, **look), Points(move, data[name], DOT, 6, colour=colour)]
        for sampler in ("func", "point"):
            lost = ~np.asarray(part[f"{sampler}_accepted"], dtype=bool)
            at = move[lost], data[f"{sampler}_potential"][lost]
            marks.append(Points(*at, REJECTED, 9, 2.2, label=REJECTED.label))
        ends = (max(float(move[0]) - 1, 0.0), max(self._last, float(move[-1]) + 0.5)) if move[0] <= 1 else None
        x = Axis("move", ends or (float(move[0]) - 1, float(move[-1]) + 0.5), follow="exact", whole=True)
        return Drawing(marks, x=x, y=Axis("energy (nats)", padded(extent(*data.values()))))

    @property
    def _last(self) -> float:
        return float(min(self.scene.get("moves", 10), 200)) + 0.5


def functionals(source: Any) -> Drawing:
    """Plot the accepted functionals as densities, with the target density and the draws of HMC.

    Parameters
    ----------
    source : Wells or dict
        The result of `bnnviz.wells`, or the part ``wells`` of a frame, with its scene under ``scene``.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> plots.functionals(bnnviz.wells(moves=5))
    :Overlay...
    """
    scene, part = parts.part(source, "wells", "functionals")
    if any(name not in scene for name in ("x", "truth", "first")) or not len(part.get("y", ())):
        raise BnnvizError("There are no functionals yet. Start the comparison first.", "source")
    return parts.drawn(Functionals(), source, "functionals")


def density_ratio(source: Any) -> Drawing:
    """Plot the ratio of the known density to the density of the draws of each sampler, estimated by KLIEP.

    Parameters
    ----------
    source : Wells or dict
        The result of `bnnviz.wells`, or the part ``ratio`` of a frame.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> plots.density_ratio(bnnviz.wells(moves=5))
    :Overlay...
    """
    _, part = parts.part(source, "ratio", "density ratio")
    if any(name not in part for name in ("x", "func", "point")):
        raise BnnvizError("There is no density ratio yet. Start the comparison first.", "source")
    return DensityRatio().draw(part)

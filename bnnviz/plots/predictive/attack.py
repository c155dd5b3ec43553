"""Draw what becomes of accuracy and of entropy as rows are changed the more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import holoviews as hv
import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.views.palette import Palette

_SHADE = 0.16


def attack(
    source: Any,
    *,
    figure: Literal["accuracy", "entropy", "both"] = "both",
    dark: bool = False,
) -> hv.Overlay | hv.Layout:
    """Draw accuracy and mean predictive entropy of attacked rows against the size of the step, with 95 % intervals.

    Parameters
    ----------
    source : Run, dict or list
        A run of a network with classes, whose draw 0 is attacked and judged by the others; what `bnnviz.attack`
        returned; a list, or a dict by names, of these; or the part ``attack`` of a frame.
    figure : {"accuracy", "entropy", "both"}
        What is drawn.
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout of both

    Raises
    ------
    BnnvizError
        If the source is no classifier and no result of an attack.

    Examples
    --------
    >>> from bnnviz import plots
    >>> sizes = [0.0, 0.1, 0.2, 0.3]
    >>> ends = {"accuracy_low": [0.85, 0.6, 0.2, 0.1], "accuracy_high": [0.95, 0.8, 0.4, 0.2]}
    >>> plots.attack({"eps": sizes, "accuracy": [0.9, 0.7, 0.3, 0.15], **ends}, figure="accuracy")
    :Overlay...
    """
    if figure not in ("accuracy", "entropy", "both"):
        raise BnnvizError(f"There is no figure {figure!r}; choose accuracy, entropy or both.", "figure")
    lanes = parts.lanes(source)
    label, unit = "size of the step", "nats"
    if lanes is None:
        lanes = [_result(each) | {"name": name} for name, each in _named(source)]
        units = {str(lane.get("unit", "")) for lane in lanes}
        label = {"pixels": "change of each pixel (of 1)", "scaled": "change of each input (sd)"}.get(units.pop(), label)
        unit = "bits" if all(lane.get("base") == 2 for lane in lanes) else unit
    else:
        label, unit = source.get("label", label), source.get("unit", unit)
    palette = style.palette_of(dark)
    shown = ("accuracy", "entropy") if figure == "both" else (figure,)
    return style.layout([_one(lanes, each, label, unit, palette) for each in shown], across=2)


def _named(source: Any) -> list[tuple[str, Any]]:
    if isinstance(source, Mapping) and "eps" not in source:
        return [(str(name), each) for name, each in source.items()]
    if isinstance(source, list | tuple):
        return [(f"attack {place + 1}", each) for place, each in enumerate(source)]
    return [("", source)]


def _result(source: Any) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return dict(source)
    from bnnviz.engine.evaluation.attack import attack as attacked

    given = parts.network_draws(source)
    shape = (given.chains, -1, given.theta.shape[-1])
    return attacked(given.target, given.theta.reshape(shape), given.log_weights, examples=0)


def _one(lanes: list[dict[str, Any]], figure: str, label: str, unit: str, palette: Palette) -> hv.Overlay:
    x = hv.Dimension(("eps", label))
    y = hv.Dimension((figure, figure if figure == "accuracy" else f"entropy ({unit})"))
    drawn = []
    for place, lane in enumerate(lanes):
        missing = [name for name in ("eps", figure, f"{figure}_low", f"{figure}_high") if name not in lane]
        if missing:
            raise BnnvizError(
                f"A result of an attack has no {missing[0]!r}; give what bnnviz.attack returned.", "source"
            )
        colour, dash, marker = style.series(palette, place)
        eps, mean, low, high = (
            np.asarray(lane[name], dtype=float) for name in ("eps", figure, f"{figure}_low", f"{figure}_high")
        )
        named = lane["name"] or figure
        drawn.append(style.band(hv.Area((eps, low, high), x, [y, "high"]), palette, colour, _SHADE))
        drawn.append(style.line(hv.Curve((eps, mean), x, y, label=named), palette, colour, 2.2, dash))
        drawn.append(style.marks(hv.Scatter((eps, mean), x, y, label=named), palette, colour, marker))
    several = len(lanes) > 1
    ends = {"ylim": (0.0, 1.02)} if figure == "accuracy" else {}
    return style.finish(hv.Overlay(drawn), palette, legend="right" if several else None, **ends)

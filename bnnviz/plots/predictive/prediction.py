"""Draw what a network predicts: a band, a map of two classes, predicted against observed, or test rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.plots.parts import FramePart
from bnnviz.plots.plane import level_lines
from bnnviz.views.palette import Kind, Palette
from bnnviz.views.predictive.prediction import (
    CLASSES,
    DATA,
    INSIDE,
    NARROW,
    OUTSIDE,
    RIGHT,
    ROOM,
    WIDE,
    WRONG,
)

_FUNCTIONS = ("95 % of functions", "50 % of functions")
_OBSERVED = (0.025, 0.975)  # quantiles of observations
_DRAWS = 400  # that a prediction is made of, evenly spread over the chains


def prediction(source: Any, *, observations: bool = False, dark: bool = False) -> hv.Overlay:
    """Draw what up to 400 draws of a network, evenly spread, predict.

    Of one input a band: the mean of the functions and where the middle 50 and 95 % of them lie; where 95 % of the
    *observations* are expected, noise included, is drawn on demand. Of two inputs and two classes a map of the
    probability of the second one, with the line where it is one half. Otherwise the test rows: predicted against
    observed with 95 % intervals of an observation, or the probability of each row's own class.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A network on data; or the part ``prediction`` of a frame, with its scene under ``scene``.
    observations : bool, default False
        Whether a band also has dashed lines between which 95 % of the observations are expected.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If it is no network on data, there are no draws, or observations are asked of what is no band.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> network = {"data": "toy_c", "hidden": "5", "prior_sd": 2.0}
    >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=40, warmup=20, chains=2)
    >>> plots.prediction(run, observations=True)
    :Overlay...
    """
    scene, part = _part(source)
    kind = str(part.get("kind"))
    data = scene.get("data")
    if kind not in _KINDS or data is None:
        raise BnnvizError("The prediction has no scene with data; give a run, or both parts of a frame.", "source")
    if observations:
        part = {**part, **_observations(source, kind, part)}
    return _KINDS[kind](data, part, style.palette_of(dark))


def _observations(source: Any, kind: str, part: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return between which values 95 % of the observations are expected along a band."""
    if kind != "band":
        raise BnnvizError(
            "Only the band of a regression on one input has lines of observations; the intervals of test rows are of"
            " observations already.",
            "observations",
        )
    if isinstance(source, Mapping):
        raise BnnvizError("A part of a frame has no observations; give a run or a recording.", "observations")
    from bnnviz.engine.evaluation.predictive_distribution import predict

    found = predict(parts.network_draws(source), np.asarray(part["x"], dtype=float)[:, None], _OBSERVED)
    return {f"observed_{end}": found.quantiles[level] for end, level in zip(("lo", "hi"), _OBSERVED, strict=True)}


def spread(source: Any, *, dark: bool = False) -> hv.Image:
    """Draw how far the draws of a network differ on a map: the standard deviation of the probability of class 1.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A network with two inputs and two classes; or the part ``spread`` of a frame, with its scene under ``scene``.
    dark : bool, default False

    Returns
    -------
    hv.Image

    Raises
    ------
    BnnvizError
        If it is no such network, or there are no draws.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> network = {"data": "moons", "hidden": "3"}
    >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=20, warmup=10, chains=2)
    >>> plots.spread(run)
    :Image...
    """
    if isinstance(source, Mapping):
        scene, part = parts.part(source, "spread", "a map")
        data, sd = scene.get("data"), part.get("sd")
    else:
        predictor, theta = _network(source)
        data, sd = predictor.scene(), predictor.spread_of(theta).get("sd")
    if data is None or data["kind"] != "area" or sd is None:
        raise BnnvizError("A map of the spread needs a network with two inputs and two classes.", "source")
    palette = style.palette_of(dark)
    element = _image(np.asarray(sd), data, "sd over the draws")
    element = style.image(element, palette, [palette.surface, palette.purple], (0.0, 0.5), "sd")
    return style.finish(element, palette, size=(style.SQUARE[0] + 60, style.SQUARE[1]))


def _part(source: Any) -> FramePart:
    if isinstance(source, Mapping):
        return parts.part(source, "prediction", "prediction: it is no network on data")
    predictor, theta = _network(source)
    return FramePart({"data": predictor.scene()}, predictor.part_of(theta, theta[-1]))


def _network(source: Any) -> tuple[Any, Any]:
    """Return what predicts by a network, and draws of it that count the same."""
    from bnnviz.engine.evaluation.predictions import Predictor

    given = parts.network_draws(source)
    return Predictor(given.target), given.theta[_even(given, _DRAWS)]


def _even(given: Any, most: int) -> Any:
    """Return the numbers of draws that stand for all."""
    from bnnviz.engine.evaluation.predictions import evenly

    if given.log_weights is None:
        return evenly(len(given.theta), most)
    return diagnostics.systematic(given.log_weights, most)


# --- kinds


def _band(data: dict[str, Any], part: dict[str, Any], palette: Palette) -> hv.Overlay:
    x, y = (hv.Dimension((data[f"{axis}_label"], data[f"{axis}_label"])) for axis in ("x", "y"))
    drawn = band_of(part, x, y, palette)
    drawn[2:2] = _observed_lines(part, x, y, palette)
    points = hv.Points((data["x"], data["y"]), [x, y], label="data")
    drawn.insert(-1, style.kind(points, palette, DATA, 6))
    ends = {"xlim": tuple(map(float, data["x_range"])), "ylim": band_range(data, [part])}
    return style.finish(hv.Overlay(drawn), palette, legend="right", **ends)


def _observed_lines(part: dict[str, Any], x: hv.Dimension, y: hv.Dimension, palette: Palette) -> list[hv.Curve]:
    """Return the lines between which observations are expected, where they are known; one label stands for both."""
    ends = [part[name] for name in ("observed_lo", "observed_hi") if name in part]
    curves = [hv.Curve((part["x"], end), x, y, label="95 % of observations") for end in ends]
    return [style.line(curve, palette, palette.blue, 1.5, (6, 4)) for curve in curves]


def band_of(part: dict[str, Any], x: hv.Dimension, y: hv.Dimension, palette: Palette) -> list[Any]:
    """Return the bands of 95 and 50 % and the mean of functions."""
    areas = [
        style.band(
            hv.Area((part["x"], part[low], part[high]), x, [y, "high"], label=label), palette, palette.blue, tone
        )
        for low, high, label, tone in (("lo95", "hi95", _FUNCTIONS[0], WIDE), ("lo50", "hi50", _FUNCTIONS[1], NARROW))
    ]
    return [*areas, style.line(hv.Curve((part["x"], part["mean"]), x, y, label="mean"), palette, palette.ink, 2.6)]


def band_range(data: dict[str, Any], found: list[dict[str, Any]]) -> tuple[float, float]:
    """Return what bands show: all of them and the data, as far as these stay in sight of the data."""
    low, high = map(float, data["y_range"])
    room = ROOM * (high - low)
    ends = [part[end] for part in found for end in ("lo95", "hi95", "observed_lo", "observed_hi") if end in part]
    values = np.concatenate([np.ravel(each) for each in (data["y"], *ends)])
    values = values[np.isfinite(values)]
    if not values.size:
        return low, high
    edge = 0.05 * float(np.ptp(values) or 1.0)
    return max(float(values.min()) - edge, low - room), min(float(values.max()) + edge, high + room)


def _image(values: np.ndarray, data: dict[str, Any], label: str) -> hv.Image:
    across = int(data["columns"])
    (left, right), (bottom, top) = data["x_range"], data["y_range"]
    grid = values.reshape(-1, across)
    axes = [np.linspace(left, right, across), np.linspace(bottom, top, len(grid))]
    dims = [hv.Dimension((data[f"{axis}_label"], data[f"{axis}_label"])) for axis in ("x", "y")]
    return hv.Image((*axes, grid), dims, hv.Dimension((label, label)))


def _map(data: dict[str, Any], part: dict[str, Any], palette: Palette) -> hv.Overlay:
    names = [f"class {name}" if name.isdigit() else name for name in map(str, data["class_names"])]
    label = f"P({names[1]})"
    element = _image(np.asarray(part["mean"], dtype=float), data, label)
    drawn = [style.image(element, palette, [palette.blue, palette.surface, palette.orange], (0.0, 1.0), label)]
    x, y = element.kdims
    axes = element.dimension_values(0, expanded=False), element.dimension_values(1, expanded=False)
    half = level_lines(*axes, np.asarray(part["mean"], dtype=float).reshape(len(axes[1]), -1), 0.5)
    drawn.append(style.line(hv.Path(half, [x, y]), palette, palette.ink, 2.6))
    for code, (of, name) in enumerate(zip(CLASSES, names, strict=True)):
        own = np.asarray(data["class"]) == code
        points = hv.Points((data["x"][own], data["y"][own]), [x, y], label=name)
        drawn.append(_outlined(points, palette, of))
    size = (style.SQUARE[0] + 60, style.SQUARE[1])
    return style.finish(hv.Overlay(drawn), palette, size=size, legend="top_left")


def _outlined(points: hv.Points, palette: Palette, of: Kind) -> hv.Points:
    """Mark rows of a class in its colour, with an edge that a map of the same colour does not swallow."""
    made = style.kind(points, palette, of, 7)
    return style.apply(made, {"line_color": palette.ink}, {"edgecolors": palette.ink})


def _against(data: dict[str, Any], part: dict[str, Any], palette: Palette) -> hv.Overlay:
    label = data["label"]
    x, y = hv.Dimension((label, label)), hv.Dimension((f"predicted {label}", "predicted, 95 % of observations"))
    observed, mean, low, high = (np.asarray(part[name], dtype=float) for name in ("observed", "mean", "lo", "hi"))
    least, most = float(observed.min()), float(observed.max())
    room = 0.04 * ((most - least) or 1.0)  # for the marks of the first and the last row
    ends = [least - room, most + room]
    drawn = [style.line(hv.Curve((ends, ends), x, y), palette, palette.axis, 1.5, (6, 4))]
    whiskers = hv.Segments((observed, low, observed, high), [x, y, "x1", "y1"])
    drawn.append(style.line(whiskers, palette, palette.blue, 1.2, alpha=0.5))
    inside = (low <= observed) & (observed <= high)
    for of, own in ((INSIDE, inside), (OUTSIDE, ~inside)):
        if own.any():
            points = hv.Points((observed[own], mean[own]), [x, y], label=of.label)
            drawn.append(style.kind(points, palette, of, 6))
    title = f"RMSE {part['rmse']:.3g}, NLL {part['nll']:.3g}, {100 * part['coverage']:.0f} % inside"
    return style.finish(hv.Overlay(drawn), palette, title=title, legend="right", xlim=tuple(ends))


def _classes(data: dict[str, Any], part: dict[str, Any], palette: Palette) -> hv.Overlay:
    order = np.argsort(-np.asarray(part["mean"], dtype=float))
    mean, low, high = (np.asarray(part[name], dtype=float)[order] for name in ("mean", "lo", "hi"))
    right, place = np.asarray(part["right"], dtype=bool)[order], np.arange(len(order))
    x = hv.Dimension(("rank of row", "test rows, the surest first"))
    y = hv.Dimension(("own class", "probability of the own class"))
    whiskers = hv.Segments((place, low, place, high), [x, y, "x1", "y1"])
    drawn = [style.line(whiskers, palette, palette.blue, 1.2, alpha=0.5)]
    for of, own in ((RIGHT, right), (WRONG, ~right)):
        if own.any():
            points = hv.Points((place[own], mean[own]), [x, y], label=of.label)
            drawn.append(style.kind(points, palette, of, 6))
    title = f"accuracy {100 * part['accuracy']:.1f} %, NLL {part['nll']:.3g}"
    return style.finish(hv.Overlay(drawn), palette, title=title, legend="right", ylim=(-0.02, 1.02))


_KINDS: dict[str, Callable[[dict[str, Any], dict[str, Any], Palette], hv.Overlay]] = {
    "band": _band,
    "area": _map,
    "intervals": _against,
    "classes": _classes,
}

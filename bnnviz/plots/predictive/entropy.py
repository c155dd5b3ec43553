"""Draw how unsure predictions are of test rows, and of rows out of distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.plots.sources import is_array
from bnnviz.views.palette import Palette

_DASH = (7, 4)
_SIDES = ("inside", "outside")


def entropy(
    source: Any,
    outside: Any = None,
    *,
    kind: Literal["ecdf", "histogram"] = "ecdf",
    base: float = math.e,
    top: float | None = None,
    dark: bool = False,
) -> hv.Overlay:
    """Draw the predictive entropies of test rows (solid) and of rows out of distribution (dashed).

    Parameters
    ----------
    source : Run, array, dict or list
        A run of a network with classes; what `bnnviz.uncertainty` returned; entropies (rows,) themselves; a dict of
        these by names; or the part ``entropy`` of a frame.
    outside : str, data set or array_like, optional
        Of a run: rows out of distribution, as ``ood`` of `bnnviz.uncertainty`. Of an array: their entropies.
    kind : {"ecdf", "histogram"}
        The share of the rows up to each entropy, or in bins of it.
    base : float, default e
        Of the entropies' logarithm: e gives nats, 2 bits.
    top : float, optional
        The largest entropy there can be, where arrays are given.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the source has no entropies, or rows do not fit the network.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.entropy(rng.beta(1, 4, 200), rng.beta(4, 1, 200), top=1.0)
    :Overlay...
    """
    palette = style.palette_of(dark)
    if kind not in ("ecdf", "histogram"):
        raise BnnvizError(f"There is no kind {kind!r}; choose ecdf or histogram.", "kind")
    lanes = parts.lanes(source)
    if lanes is not None:
        part = {name: source[name] for name in ("kind", "unit", "top", "inside", "outside")}
        return _drawn(lanes, part, palette)
    lanes, most = [], 0.0
    for name, each in _named(source):
        lane, highest, base = _lane(each, outside, base)
        lanes.append({"name": name, **lane})
        most = max(most, highest)
    top = most if top is None else float(top)
    for lane in lanes:
        for side in _SIDES:
            if lane[side] is not None:
                lane[side] = _steps(lane[side], kind, top)
    unit = {math.e: "nats", 2.0: "bits"}.get(base, f"base {base:g}")
    words = {"kind": kind, "unit": unit, "top": top, "inside": "test rows", "outside": "out of distribution"}
    return _drawn(lanes, words, palette)


def _named(source: Any) -> list[tuple[str, Any]]:
    if isinstance(source, Mapping) and "arrays" not in source:
        return [(str(name), each) for name, each in source.items()]
    return [("", source)]


def _lane(source: Any, outside: Any, base: float) -> tuple[dict[str, Any], float, float]:
    """Return entropies of test rows and of others, the largest there can be, and the base of their logarithm."""
    if is_array(source) or isinstance(source, list | tuple):
        inner = np.asarray(source, dtype=float)
        outer = None if outside is None else np.asarray(outside, dtype=float)
        if inner.ndim != 1 or (outer is not None and outer.ndim != 1):
            raise BnnvizError(f"Give an entropy for each row, not an array of the shape {inner.shape}.", "source")
        highest = max(each.max(initial=0.0) for each in (inner, outer) if each is not None)
        return {"inside": inner, "outside": outer}, float(highest), base
    if not isinstance(source, Mapping):
        from bnnviz.engine.evaluation.uncertainty import uncertainty

        given = parts.network_draws(source)
        shape = (given.chains, -1, given.theta.shape[-1])
        source = uncertainty(given.target, given.theta.reshape(shape), given.log_weights, ood=outside, base=base)
    if "arrays" not in source or "summary" not in source:
        raise BnnvizError("Give what bnnviz.uncertainty returned, a run, or an array of entropies.", "source")
    arrays, summary = source["arrays"], source["summary"]
    outer = None if arrays["ood"] is None else arrays["ood"]["entropy"]
    base = float(summary["base"])
    lane = {"inside": arrays["test"]["entropy"], "outside": outer, "auroc": (summary["detection"] or {}).get("auroc")}
    return lane, math.log(len(summary["class_names"])) / math.log(base), base


def _steps(values: np.ndarray, kind: str, top: float) -> dict[str, np.ndarray]:
    if kind == "ecdf":
        return diagnostics.score_ecdf(values)._asdict()
    return diagnostics.score_histogram(values, top)._asdict()


def _drawn(lanes: list[dict[str, Any]], part: dict[str, Any], palette: Palette) -> hv.Overlay:
    stepped, top = part["kind"] == "ecdf", float(part["top"])
    x = hv.Dimension(("entropy", f"entropy ({part['unit']})"))
    y = hv.Dimension((f"rows {part['kind']}", "share of the rows up to it" if stepped else "share of the rows"))
    drawn, highest = [], 0.0
    for place, lane in enumerate(lanes):
        colour = style.series(palette, place)[0]
        auroc = lane.get("auroc")
        name = lane["name"] if auroc is None else f"{lane['name']}, AUROC {auroc:.3f}".removeprefix(", ")
        for side, dash in zip(_SIDES, ((), _DASH), strict=True):
            if lane[side] is None:
                continue
            points = _corners(lane[side], top, stepped)
            highest = max(highest, float(points[1].max()))
            label = f"{name}: {part[side]}" if name else part[side]
            drawn.append(style.line(hv.Curve(points, x, y, label=label), palette, colour, 2.2, dash))
    ends = (0.0, 1.02) if stepped else (0.0, 1.08 * highest)
    return style.finish(
        hv.Overlay(drawn), palette, size=style.WIDE, room=170, legend="right", xlim=(0.0, top), ylim=ends
    )


def _corners(steps: dict[str, Any], top: float, stepped: bool) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(steps["x"], dtype=float), np.asarray(steps["y"], dtype=float)
    if stepped:
        return np.repeat(np.append(x, top), 2), np.repeat(np.concatenate([[0.0], y, [1.0]]), 2)[1:-1]
    return np.repeat(x, 2), np.concatenate([[0.0], np.repeat(y, 2), [0.0]])

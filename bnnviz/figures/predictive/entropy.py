"""Draw the predictive entropies of test rows, of rows out of distribution, and of an image that is rotated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SERIES, Axis, Drawing, Line, Mark, Points, Rule, chain, curve, scores, series_kind
from bnnviz.figures.palette import DOT
from bnnviz.figures.ranges import extent
from bnnviz.figures.sources import is_array

DASH = (7, 4)
HEADROOM = 1.08
MARKED = 0.35, 0.4  # the share of the rows at the first sampler's mark, and the largest difference to the last one's
_SIDES = ("inside", "outside")


class Entropy(Figure):
    """Draw predictive entropies of test rows (solid) and of OOD rows (dashed): steps of the shares, or bars."""

    name, title = "entropy", "Entropy"
    needs = ("entropy",)
    x, y = Axis("entropy", (0.0, 1.0), "exact"), Axis("share of the rows", (0.0, 1.02), "exact")
    brief = False  # whether the legend omits the samplers, because adjacent figures show them

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw the steps or bars (``kind``) of each sampler's rows ``inside`` and ``outside``, up to ``top``."""
        entries, stepped, top = part["entries"][:SERIES], part["kind"] == "ecdf", float(part["top"])
        marks: list[Mark] = []
        highest = 0.0
        for place, sampler in enumerate(entries):
            turn = place / len(entries) if len(entries) > 1 else None
            named = "" if self.brief or not sampler["name"] else f"{sampler['name']}: "
            for side, dash in zip(_SIDES, ((), DASH), strict=True):
                if sampler[side] is None:
                    continue
                x, y = (np.asarray(sampler[side][axis], dtype=float) for axis in "xy")
                if stepped:  # the corners of steps or of bars, and the place of a sampler's mark
                    at = min(int(np.searchsorted(y, MARKED[0] + MARKED[1] * (turn or 0.0))), len(y) - 1)
                    mark = x[at], y[at]
                    x, y = np.repeat(np.append(x, top), 2), np.repeat(np.concatenate([[0.0], y, [1.0]]), 2)[1:-1]
                else:
                    at = int(np.argmax(y))
                    mark = (x[at] + x[at + 1]) / 2, y[at]
                    x, y = np.repeat(x, 2), np.concatenate([[0.0], np.repeat(y, 2), [0.0]])
                highest = max(highest, float(np.max(y, initial=0.0)))
                look = {"colour": chain(place), "label": f"{named}{part[side]}"}
                marks.append(Line(x, y, 2.2, dash, **look))
                if turn is not None:
                    marks.append(Points([mark[0]], [mark[1]], series_kind(place), **look))
        up = "share of the rows up to it" if stepped else "share of the rows"
        x = Axis(f"entropy ({part['unit']})", (0.0, top), "exact")
        y = Axis(up, (0.0, 1.02 if stepped else HEADROOM * highest or 1.0), "exact")
        return self.drawing(marks, x=x, y=y, note=scores(entries, "auroc", "AUROC"))


class Rotation(Figure):
    """Draw the predictive entropy of one image against the angle by which it is rotated, and the present angle."""

    name, title = "turned", "Rotated"
    needs = ("turned",)
    x = Axis("degrees", (-180.0, 180.0), "exact")

    def blank(self) -> Drawing:
        """Return empty axes."""
        most = float(np.log(max(len(self.scene.get("classes", ())), 2)))
        return self.drawing(y=Axis("entropy (nats)", (0.0, most)))

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw each sampler's ``entropy`` in nats at each of the ``angles`` in degrees."""
        entries = part["entries"][:SERIES]
        marks: list[Mark] = [Rule([part["angle"]], "x", 1.5, (4, 4), colour="muted", label="this angle")]
        for place, sampler in enumerate(entries):
            marks += curve(part["angles"], sampler["entropy"], place, sampler["name"], DOT, 5)
        up = extent(self.blank().y.ends, *(sampler["entropy"] for sampler in entries))
        return self.drawing(marks, y=Axis("entropy (nats)", up))


def entropy(
    source: Any,
    outside: Any = None,
    *,
    kind: Literal["ecdf", "histogram"] = "ecdf",
    base: float = math.e,
    top: float | None = None,
) -> Drawing:
    """Plot predictive entropies of test rows (solid) and out-of-distribution rows (dashed).

    Parameters
    ----------
    source : Run, array, dict or list
        A run of a classification network; the result of `bnnviz.uncertainty`; entropies (rows,); a dict of these by
        name; or the part ``entropy`` of a frame.
    outside : str, data set or array_like, optional
        Out-of-distribution rows. For a run, as ``ood`` in `bnnviz.uncertainty`. For an array, their entropies.
    kind : {"ecdf", "histogram"}
        Whether to plot the empirical distribution function or a histogram.
    base : float, default e
        Base of the logarithm in entropies: e for nats, 2 for bits.
    top : float, optional
        Maximum possible entropy. Used if arrays are given.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> plots.entropy(rng.beta(1, 4, 200), rng.beta(4, 1, 200), top=1.0)
    :Overlay...
    """
    if kind not in ("ecdf", "histogram"):
        raise BnnvizError(f"There is no kind {kind!r}; choose ecdf or histogram.", "kind")
    if (drawing := parts.given(Entropy(), source, "entries")) is not None:
        return drawing
    named = source if isinstance(source, Mapping) and "arrays" not in source else {"": source}
    found = {str(name): _entry(each, outside, base) for name, each in named.items()}
    base = next(reversed(found.values()))[2] if found else base
    top = max((highest for _, highest, _ in found.values()), default=0.0) if top is None else float(top)
    entries = [{"name": name, **sampler} for name, (sampler, _, _) in found.items()]
    steps = diagnostics.score_ecdf if kind == "ecdf" else lambda values: diagnostics.score_histogram(values, top)
    for sampler in entries:
        sampler |= {side: None if sampler[side] is None else steps(sampler[side])._asdict() for side in _SIDES}
    part = {"kind": kind, "unit": {math.e: "nats", 2.0: "bits"}.get(base, f"base {base:g}"), "top": top}
    part |= {"inside": "test rows", "outside": "out of distribution"}
    return Entropy().draw(part | {"entries": entries})


def _entry(source: Any, outside: Any, base: float) -> tuple[dict[str, Any], float, float]:
    """Return entropies of test rows and of others, the largest there can be, and the base of their logarithm."""
    if is_array(source) or isinstance(source, list | tuple):
        inner = np.asarray(source, dtype=float)
        outer = None if outside is None else np.asarray(outside, dtype=float)
        if inner.ndim != 1 or (outer is not None and outer.ndim != 1):
            raise BnnvizError(f"Give an entropy for each row, not an array of the shape {inner.shape}.", "source")
        highest = max(each.max(initial=0.0) for each in (inner, outer) if each is not None)
        return {"inside": inner, "outside": outer, "auroc": None}, float(highest), base
    if not isinstance(source, Mapping):
        from bnnviz.engine.evaluation.uncertainty import uncertainty

        given = parts.network_draws(source)
        shape = (given.chains, -1, given.theta.shape[-1])
        source = uncertainty(given.target, given.theta.reshape(shape), given.log_weights, ood=outside, base=base)
    if "arrays" not in source or "summary" not in source:
        raise BnnvizError("Give the result of bnnviz.uncertainty, a run, or an array of entropies.", "source")
    arrays, summary, base = source["arrays"], source["summary"], float(source["summary"]["base"])
    sampler = {"inside": arrays["test"]["entropy"], "outside": arrays["ood"] and arrays["ood"]["entropy"]}
    sampler["auroc"] = (summary["detection"] or {}).get("auroc")
    return sampler, math.log(len(summary["class_names"])) / math.log(base), base

"""Draw the predictive entropies of test rows, and of rows out of distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SERIES, Axis, Drawing, Line, Mark, Points, chain, scores, series_kind
from bnnviz.figures.sources import is_array

DASH = (7, 4)
HEADROOM = 1.08
MARKED = 0.35, 0.4  # the share of the rows at the first sampler's mark, and the largest difference to the last one's
_SIDES = ("inside", "outside")


class Entropy(Figure):
    """Draw predictive entropies of test rows (solid) and of OOD rows (dashed): steps of the shares, or bars."""

    name = "entropy"
    title = "Entropy"
    needs = ("entropy",)

    x, y = Axis("entropy", (0.0, 1.0), "exact"), Axis("share of the rows", (0.0, 1.02), "exact")
    brief = False  # whether the legend omits the samplers, because adjacent figures show them

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``entries``.

        ``kind`` is ``ecdf`` or ``histogram``; ``top`` is the largest possible entropy in ``unit``; ``inside`` and
        ``outside`` are names of the rows. Each sampler has a ``name``, the result of `bnnviz.diagnostics.score_ecdf`
        or `bnnviz.diagnostics.score_histogram` for the rows of each side (None without rows), and the ``auroc`` of
        entropy as a detector.
        """
        entries, stepped, top = part["entries"][:SERIES], part["kind"] == "ecdf", float(part["top"])
        marks: list[Mark] = []
        highest = 0.0
        for place, sampler in enumerate(entries):
            turn = place / len(entries) if len(entries) > 1 else None
            named = "" if self.brief or not sampler["name"] else f"{sampler['name']}: "
            for side, dash in zip(_SIDES, ((), DASH), strict=True):
                if sampler[side] is None:
                    continue
                x, y, at = _corners(sampler[side], top, stepped, turn)
                highest = max(highest, float(np.max(y, initial=0.0)))
                look = {"colour": chain(place), "label": f"{named}{part[side]}"}
                marks.append(Line(x, y, 2.2, dash, **look))
                if turn is not None:
                    marks.append(Points([at[0]], [at[1]], series_kind(place), **look))
        up = "share of the rows up to it" if stepped else "share of the rows"
        x = Axis(f"entropy ({part['unit']})", (0.0, top), "exact")
        y = Axis(up, (0.0, 1.02 if stepped else HEADROOM * highest or 1.0), "exact")
        return self.drawing(marks, x=x, y=y, note=scores(entries, "auroc", "AUROC"))


def _corners(
    steps: dict[str, Any], top: float, stepped: bool, turn: float | None
) -> tuple[Any, Any, tuple[float, float]]:
    """Return the corners of steps or bars, and the position of a sampler's mark, ``turn`` of the way up."""
    x, y = np.asarray(steps["x"], dtype=float), np.asarray(steps["y"], dtype=float)
    if stepped:
        at = min(int(np.searchsorted(y, MARKED[0] + MARKED[1] * (turn or 0.0))), len(y) - 1)
        heights = np.repeat(np.concatenate([[0.0], y, [1.0]]), 2)[1:-1]
        return np.repeat(np.append(x, top), 2), heights, (x[at], y[at])
    at = int(np.argmax(y))
    heights = np.concatenate([[0.0], np.repeat(y, 2), [0.0]])
    return np.repeat(x, 2), heights, ((x[at] + x[at + 1]) / 2, y[at])


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
    if (entries := parts.entries(source)) is not None:
        return Entropy().draw(dict(source) | {"entries": entries})
    named = source.items() if isinstance(source, Mapping) and "arrays" not in source else [("", source)]
    entries, most = [], 0.0
    for name, each in named:
        sampler, highest, base = _entry(each, outside, base)
        entries.append({"name": str(name), **sampler})
        most = max(most, highest)
    top = most if top is None else float(top)
    steps = diagnostics.score_ecdf if kind == "ecdf" else lambda values: diagnostics.score_histogram(values, top)
    for sampler in entries:
        sampler |= {side: None if sampler[side] is None else steps(sampler[side])._asdict() for side in _SIDES}
    part = {"kind": kind, "unit": {math.e: "nats", 2.0: "bits"}.get(base, f"base {base:g}"), "top": top}
    rows = {"inside": "test rows", "outside": "out of distribution"}
    return Entropy().draw(part | rows | {"entries": entries})


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
    arrays, summary = source["arrays"], source["summary"]
    outer = None if arrays["ood"] is None else arrays["ood"]["entropy"]
    base = float(summary["base"])
    sampler = {
        "inside": arrays["test"]["entropy"],
        "outside": outer,
        "auroc": (summary["detection"] or {}).get("auroc"),
    }
    return sampler, math.log(len(summary["class_names"])) / math.log(base), base

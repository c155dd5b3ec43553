"""Draw the autocorrelation of draws, with the band of white noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.diagnostics.packages import array_stats
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts, sources
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Band, Bars, Drawing, Line, Mark, Panels, Rule, chain, dash_of
from bnnviz.figures.ranges import extent
from bnnviz.figures.sources import SourceDraws

LAGS = (25, 50, 100, 200)  # the axis ends at one of these
EDGE = 0.4  # half of a bar
FLOOR = -0.2


class Acf(Figure):
    """Plot the autocorrelation of the traced quantity."""

    name, title = "acf", "ACF"
    needs = ("acf",)
    place = 7
    of_draws = True
    x = Axis("lag (draws)", (-EDGE, LAGS[0] + EDGE))
    y = Axis("ACF", (FLOOR, 1.0), count=3)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``acf`` (lags,) at ``lag`` (lags,) of the quantity ``label``."""
        lag, acf = (np.asarray(part[name], dtype=float)[: LAGS[-1] + 1] for name in ("lag", "acf"))
        # Up to three times the first lag within the noise.
        within = np.flatnonzero(acf <= _noise(part.get("draws", 0)))
        requested = 3 * within[0] if within.size else LAGS[-1]
        lags = next((lags for lags in LAGS if lags >= requested), LAGS[-1])
        ess = part.get("ess", np.nan)
        up = extent(acf[lag <= lags], [FLOOR, 1.0])
        marks = _bars(lag, acf, part.get("draws", 0))
        return _drawing(marks, part["label"], lags, up, note=f"ESS {ess:,.0f}" if np.isfinite(ess) else "")


def _noise(draws: int) -> float:
    return 1.96 / np.sqrt(max(draws, 1))


def _bars(lag: np.ndarray, acf: np.ndarray, draws: int, label: str = "ACF") -> list[Mark]:
    """Return the bars of all chains over the band of white noise, if the number of draws is known."""
    half = np.full(len(lag), _noise(draws))
    band = Band(lag, -half, half, colour="grey", label="95% of white noise")
    return [*([band] if draws else []), Bars(lag, acf, 2 * EDGE, colour="blue", label=label)]


def _drawing(marks: Sequence[Mark], label: str, lags: int, up: Any, note: str = "") -> Drawing:
    across = Axis("lag (draws)", (-EDGE, lags + EDGE))
    return Drawing(marks, x=across, y=Axis(f"ACF ({label})", up, count=3), note=note)


def acf(source: Any, variables: str | Sequence[str] | None = None, *, lags: int = 100) -> Drawing | Panels:
    """Plot the autocorrelation of draws, which determines their effective sample size.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Draws, or the part ``acf`` of a frame. For one source, thin curves show each chain (ArviZ) and bars show all
        chains, centred at the overall mean (`bnnviz.diagnostics.autocorrelation`). Several sources have one curve each.
    variables : str or sequence of str, optional
        Variables to plot. The default is the first four.
    lags : int, default 100
        Maximum lag.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(4, 500))
    >>> chains = np.array([[sum(0.8**k * row[t - k] for k in range(min(t, 30))) for t in range(500)] for row in noise])
    >>> plots.acf({"mu": chains}, lags=30)
    :Overlay...
    """
    if lags < 1:
        raise BnnvizError(f"lags = {lags} must be at least 1.", "lags")
    if (drawing := parts.given(Acf(), source, "lag", "acf", "label")) is not None:
        return drawing
    found, names = sources.shared(source, variables)
    for draws in found:
        if draws.log_weights is not None:
            raise BnnvizError(
                f"The draws of {draws.name} have weights and no order; draw their weight_ess instead.", "source"
            )
    return Panels([_of_draws(found, name, lags) for name in names], 2)


def _of_draws(found: Sequence[SourceDraws], name: str, lags: int) -> Drawing:
    marks: list[Mark] = [Rule([0.0], colour="axis")]
    lowest = FLOOR
    for place, draws in enumerate(found):
        values = draws.finite(name)
        together = diagnostics.autocorrelation(values, lags)
        at = np.arange(len(together))
        if len(found) == 1:
            several = len(values) > 1
            marks += _bars(at, together, values.size, "all chains" if several else draws.name)
            for number, own in enumerate(array_stats().autocorr(values, axis=1) if several else ()):
                curve = own[: lags + 1]
                look = {"colour": chain(number), "label": f"chain {number + 1}", "opacity": 0.75}
                marks.append(Line(np.arange(len(curve)), curve, 1.1, **look))
                lowest = min(lowest, float(curve.min()))
        else:
            marks.append(Line(at, together, 2.6, dash_of(place), colour=chain(place), label=draws.name))
        lowest = min(lowest, float(together.min()))
    return _drawing(marks, name, lags, (lowest, 1.0))

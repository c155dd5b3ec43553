"""Draw the autocorrelation of draws, with the band of white noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.diagnostics.packages import array_stats
from bnnviz.errors import BnnvizError
from bnnviz.figures import sources
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Band, Bars, Drawing, Line, Mark, Rule, chain, dash_of, extent
from bnnviz.figures.parts import as_arrays
from bnnviz.figures.sources import SourceDraws

if TYPE_CHECKING:
    import holoviews as hv

LAGS = (25, 50, 100, 200)  # the axis ends at one of these
EDGE = 0.4  # half of a bar
FLOOR = -0.2


class Acf(Figure):
    """Draw the autocorrelation of the traced quantity; the note has its effective sample size."""

    name = "acf"
    title = "ACF"
    needs = ("acf",)
    place = 7
    of_draws = True

    def __init__(self) -> None:
        super().__init__()
        self._lags = LAGS[0]

    def blank(self) -> Drawing:
        """Return empty axes."""
        self._lags = LAGS[0]
        return _drawing([], "ACF", LAGS[0], (FLOOR, 1.0))

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``acf`` (lags,) at ``lag`` (lags,) of the quantity ``label``."""
        lag, acf = (np.asarray(part[name], dtype=float)[: LAGS[-1] + 1] for name in ("lag", "acf"))
        noise = 1.96 / np.sqrt(max(part.get("draws", 0), 1))
        self._lags = max(self._lags, _telling(acf, noise))
        seen = lag <= self._lags
        marks: list[Mark] = bars(lag[seen], acf[seen])
        if part.get("draws"):
            marks.insert(0, _noise(lag[seen], noise))
        ess = part.get("ess", np.nan)
        return _drawing(
            marks,
            f"ACF ({part['label']})",
            self._lags,
            extent(acf[seen], [FLOOR, 1.0]),
            note=f"ESS {ess:,.0f}" if np.isfinite(ess) else "",
        )


def bars(lag: np.ndarray, acf: np.ndarray, label: str = "ACF") -> list[Mark]:
    """Return the autocorrelation of all chains."""
    return [Bars(lag, acf, 2 * EDGE, colour="blue", label=label)]


def _noise(lag: np.ndarray, noise: float) -> Band:
    half = np.full(len(lag), noise)
    return Band(lag, -half, half, colour="grey", label="95 % of white noise")


def _telling(acf: np.ndarray, noise: float) -> int:
    """Return the last lag to show: three times the first one within the noise."""
    within = np.flatnonzero(acf <= noise)
    wanted = 3 * within[0] if within.size else LAGS[-1]
    return next((lags for lags in LAGS if lags >= wanted), LAGS[-1])


def _drawing(marks: Sequence[Mark], label: str, lags: int, up: Any, note: str = "") -> Drawing:
    across = Axis("lag (draws)", (-EDGE, lags + EDGE), follow="exact")
    return Drawing(marks, x=across, y=Axis(label, up, count=3), note=note)


def acf(
    source: Any, variables: str | Sequence[str] | None = None, *, lags: int = 100, dark: bool = False
) -> hv.Overlay | hv.Layout:
    """Draw the autocorrelation of draws, which determines their effective sample size.

    Parameters
    ----------
    source : Run, Recording, path, DataTree, array, dict or list
        Draws; or the part ``acf`` of a frame. One source has a thin curve for each chain (ArviZ) and bars for all
        chains, centred at the mean of all (`bnnviz.diagnostics.autocorrelation`): chains with different levels raise
        the bars. For several sources, one curve per source covers all chains.
    variables : str or sequence of str, optional
        Default: the first four.
    lags : int, default 100
        At most.
    dark : bool, default False

    Returns
    -------
    hv.Overlay, or hv.Layout of several variables

    Raises
    ------
    BnnvizError
        If draws cannot be read from the source, they have weights or are not finite.

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
    from bnnviz.figures.still.render import layout

    if lags < 1:
        raise BnnvizError(f"lags = {lags} must be 1 at least.", "lags")
    if isinstance(source, Mapping) and {"lag", "acf", "label"} <= set(source):
        return layout([Acf().draw(as_arrays(dict(source)))], dark=dark)
    found = sources.read(source)
    names = sources.shared(found, variables)
    for draws in found:
        if draws.log_weights is not None:
            raise BnnvizError(
                f"The draws of {draws.name} have weights and no order; draw their weight_ess instead.", "source"
            )
    return layout([_of_draws(found, name, lags) for name in names], across=2, dark=dark)


def _of_draws(found: Sequence[SourceDraws], name: str, lags: int) -> Drawing:
    marks: list[Mark] = [Rule([0.0], colour="axis")]
    lowest = FLOOR
    for place, draws in enumerate(found):
        values = draws.finite(name)
        together = diagnostics.autocorrelation(values, lags)
        at = np.arange(len(together))
        if len(found) == 1:
            several = len(values) > 1
            marks += [
                _noise(at, 1.96 / np.sqrt(values.size)),
                *bars(at, together, "all chains" if several else draws.name),
            ]
            for number, own in enumerate(array_stats().autocorr(values, axis=1) if several else ()):
                curve = own[: lags + 1]
                look = {"colour": chain(number), "label": f"chain {number + 1}", "opacity": 0.75}
                marks.append(Line(np.arange(len(curve)), curve, 1.1, **look))
                lowest = min(lowest, float(curve.min()))
        else:
            marks.append(Line(at, together, 2.6, dash_of(place), colour=chain(place), label=draws.name))
        lowest = min(lowest, float(together.min()))
    return _drawing(marks, f"ACF ({name})", lags, (lowest, 1.0))

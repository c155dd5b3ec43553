"""Draw recorded parts of frames, each by its figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.comparison.bands import bands
from bnnviz.figures.marks import Drawing, Panels

_BAND = "band"  # panels of this kind share their axes
_ACROSS = 2


def panels(source: Sequence[tuple[str, str, dict[str, Any]]]) -> Drawing | Panels:
    """Plot recorded parts of frames in a grid with two columns.

    Parameters
    ----------
    source : sequence of (str, str, dict)
        Heading, figure and part of each, as the records of experiments have them. A part may have its scene under
        ``scene``.

    Examples
    --------
    >>> from bnnviz import plots
    >>> part = {"matrix": [[8, 2], [1, 9]], "classes": ["cat", "dog"]}
    >>> plots.panels([("HMC", "confusion", part), ("SGLD", "confusion", part)])
    :Layout...
    """
    from bnnviz.figures.listing import BY_NAME

    found = list(source)
    unknown = [name for _, name, _ in found if name not in BY_NAME and name != _BAND]
    if not found or unknown:
        why = f"no figure is called {unknown[0]!r}" if unknown else "there is no part"
        raise BnnvizError(f"Panels need parts of frames: {why}.", "source")
    if found[0][1] == _BAND:
        return bands([part for _, _, part in found])
    drawings = []
    for heading, name, given in found:
        drawings.append(replace(parts.drawn(BY_NAME[name](), given, name), title=heading))
    return Panels(drawings, _ACROSS)

"""Check the file formats of figures before the work starts, without loading plotting libraries."""

from __future__ import annotations

from pathlib import Path

from bnnviz import optional
from bnnviz.errors import BnnvizError

PAGE = ".html"
#: Formats of Matplotlib.
PRINT = (".pdf", ".svg", ".eps", ".png")


def check(out: Path, field: str = "out") -> None:
    """Refuse a file that no figure can be written to."""
    ending = out.suffix.lower()
    if ending not in (PAGE, *PRINT):
        raise BnnvizError(f"A figure is written to {PAGE}, {', '.join(PRINT)}, not to {out.name!r}.", field)
    optional.check("holoviews", "A figure needs")
    if ending in PRINT:
        optional.check("matplotlib", f"A figure as {ending} needs")

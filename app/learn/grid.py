"""Lay out the cards of a step of a lesson."""

from __future__ import annotations

from collections.abc import Sequence

TABLE = "table"
#: The grid of two, three and four cards, the largest first.
_GRIDS = (
    '"{0} {1}" minmax(0, 1fr) / minmax(0, 5fr) minmax(0, 4fr)',
    '"{0} {1}" minmax(0, 1fr) "{0} {2}" minmax(0, 1fr) / minmax(0, 6fr) minmax(0, 5fr)',
    '"{0} {1}" minmax(0, 1fr) "{2} {3}" minmax(0, 1fr) / minmax(0, 1fr) minmax(0, 1fr)',
)


def grid(parts: Sequence[str], lanes: bool = False) -> str:
    """Return the CSS grid template of these cards under the caption; the wide table of lanes lies under the others."""
    if lanes and TABLE in parts and len(parts) > 1:
        others = [part for part in parts if part != TABLE]
        caption, table = (" ".join([name] * len(others)) for name in ("caption", TABLE))
        columns = " ".join(["minmax(0, 1fr)"] * len(others))
        return f'"{caption}" auto "{" ".join(others)}" minmax(0, 1fr) "{table}" minmax(140px, 0.45fr) / {columns}'
    if len(parts) == 1:
        return f'"caption" auto "{parts[0]}" minmax(0, 1fr) / minmax(0, 1fr)'
    return '"caption caption" auto ' + _GRIDS[len(parts) - 2].format(*parts)

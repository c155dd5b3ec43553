"""Read the files that image sets are published as: one module per format, arrays out.

Problems with a file's content raise `broken`, and nothing in a file is executed.
"""

from __future__ import annotations

from pathlib import Path

from bnnviz.errors import BnnvizError


def broken(place: Path, what: str, reason: object) -> BnnvizError:
    """Return the refusal of a file."""
    text = str(reason) or type(reason).__name__
    return BnnvizError(f"The file {place} is not a complete {what} ({text}): put the published one there.", "data")

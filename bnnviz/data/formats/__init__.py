"""Read the files that image sets are published as: one module per format, arrays out.

Problems with a file's content raise a `BnnvizError` that names the file, and nothing in a file is executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bnnviz.errors import BnnvizError


@contextmanager
def reading(place: Path, what: str) -> Iterator[None]:
    """Refuse a file if the block raises: decoders raise anything for damaged bytes."""
    try:
        yield
    except (BnnvizError, ImportError):
        raise
    except Exception as error:
        text = str(error) or type(error).__name__
        raise BnnvizError(
            f"The file {place} is not a complete {what} ({text}): put the published one there.", "data"
        ) from error

"""Write the result of a race: its curves as a figure, or a page with the caption, the curves and the table."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures.comparison.race import race
from bnnviz.figures.leaderboard import table_html
from bnnviz.figures.still.forms import PAGE
from bnnviz.figures.still.output import page, save, write
from bnnviz.figures.still.render import shown

_FONT = "font:15px/1.4 sans-serif"


def save_race(scene: dict[str, Any], frame: dict[str, Any], out: str | os.PathLike[str]) -> Path:
    """Write a race to a file."""
    figure = shown(race(frame["curves"]), False)
    if Path(out).suffix.lower() != PAGE:
        if not any(np.isfinite(entry["error"]).any() for entry in frame["curves"]["entries"]):
            raise BnnvizError("No errors are available yet. Write an .html page, which contains the table.", "out")
        return save(figure, out)
    caption, table = frame["caption"], frame["table"]
    words = html.escape(" ".join(part for part in (caption["text"], caption["warning"]) if part))
    head = f"<div style='{_FONT}'><h2>{html.escape(scene['title'])}</h2>{words}</div>"
    board = table_html(table["rows"], table["scores"], scene["spec"]["chains"])
    meaning = html.escape(f"Error: {scene['measured']}. {scene['start']}")
    return write(page(figure, scene["title"], head, below=f"{board}<p style='{_FONT}'>{meaning}</p>"), out)

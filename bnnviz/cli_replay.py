"""What ``bnnviz replay`` does: take a film of a run, and write pages, pictures and tables of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path

from bnnviz import optional
from bnnviz.engine.recording.replay_frames import Film, save
from bnnviz.errors import BnnvizError

Told = Callable[[float, str], None]
_PICTURES = ("gif", "mp4")


def check(places: Mapping[str, Path], folders: Mapping[str, Path]) -> None:
    """Refuse what cannot be written before the run is done again, not after it.

    Raises
    ------
    BnnvizError
        If nothing is asked for, a file is there already, or a package or the browser is missing.
    """
    if not places and not folders:
        raise BnnvizError("Say what to make: --html FILE, or --gif, --mp4, --png, --svg, --csv, --film.", "html")
    if set(places) - {"csv", "film"} or folders:
        optional.check("bokeh", "A replay needs")
    for name, folder in folders.items():
        if folder.exists() and not folder.is_dir():
            raise BnnvizError(f"{folder} is a file; choose a folder for --{name}.", name)
        if folder.is_dir() and any(folder.glob(f"*.{name}")):
            raise BnnvizError(f"There are {name} files in {folder} already; choose another folder for --{name}.", name)
    if folders or set(places) & set(_PICTURES):
        from bnnviz.replays import pictures

        pictures.check(movie="mp4" in places)


def write(
    found: Film,
    places: Mapping[str, Path],
    folders: Mapping[str, Path],
    at: int | None,
    speed: int,
    dark: bool,
    told: Told,
) -> list[Path]:
    """Write what is asked for; return the files."""
    made = []
    if "film" in places:
        made.append(found.save(places["film"]))
    if "csv" in places:
        save(places["csv"], table(found).encode())
        made.append(places["csv"])
    if "html" in places:
        from bnnviz.replays import player

        made.append(player.write(found, places["html"], dark or None))
    for name in _PICTURES:
        if name in places:
            from bnnviz.replays import pictures

            made.append(pictures.movie(found, places[name], speed, dark, lambda share, kind=name: told(share, kind)))
    for name, folder in folders.items():
        from bnnviz.replays import pictures

        made += pictures.stills(found, folder, name, at, dark)
    return made


def table(found: Film) -> str:
    """Return the table of figures at each frame as CSV: step, figure, and how it is written."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("step", "figure", "value"))
    for step, frame in zip(found.steps, found.frames, strict=True):
        rows.writerows((step, label, text) for label, text, _ in frame.get("table", {"rows": []})["rows"])
    return out.getvalue()

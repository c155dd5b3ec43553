"""Make the replays that pages embed: what is run, for how long and which views are shown is in `replays.json`."""

from __future__ import annotations

import dataclasses
import html
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from bnnviz.engine.recording.replay_frames import ReplayFrames, take_frames
from bnnviz.replays import player
from bnnviz.specs.run import Spec
from docs.site.contents import ROOT

LISTED = ROOT / "docs" / "concepts" / "replays.json"
#: What every replay shows beside its views.
_ALWAYS = ("caption", "status", "table", "events", "selection")


@cache
def listed() -> dict[str, dict[str, Any]]:
    """Return what is replayed, by name: title, spec, frames, steps and views."""
    return json.loads(LISTED.read_text(encoding="utf-8"))


def write(folder: Path) -> None:
    """Write all replays as pages of their own.

    Parameters
    ----------
    folder : Path
        Where the pages are staged.
    """
    place = folder / "_static" / "replays"
    place.mkdir(parents=True, exist_ok=True)
    for name in listed():
        player.write(take(name), place / f"{name}.html")


def take(name: str) -> ReplayFrames:
    """Run what a replay shows, and return its frames with the views that it lists.

    Parameters
    ----------
    name : str
        Of an entry of `replays.json`.
    """
    wanted = listed()[name]
    found = take_frames(Spec.from_json(wanted["spec"]), wanted["frames"], steps=wanted["steps"])
    emits = [part for part in found.scene["emits"] if part in (*wanted["views"], *_ALWAYS)]
    return dataclasses.replace(found, scene=found.scene | {"emits": emits, "title": wanted["title"]})


def embed(name: str, page: str) -> str:
    """Return the directive that shows a replay in a page.

    Parameters
    ----------
    name : str
        Of an entry of `replays.json`.
    page : str
        The staged page.
    """
    title = html.escape(listed()[name]["title"])
    source = os.path.relpath(f"_static/replays/{name}.html", Path(page).parent)
    return (
        '```{raw} html\n<figure class="replay">\n'
        f'<iframe src="{source}" title="Replay: {title}" loading="lazy"></iframe>\n'
        f'<figcaption>{title}. <a href="{source}">Open it in a page of its own</a>: space plays, arrows step.'
        "</figcaption>\n</figure>\n```"
    )

"""Write replay frames as one HTML page, which needs no server; a content security policy blocks all network access."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from bokeh.core.json_encoder import serialize_json

from bnnviz.engine.recording.replay_frames import ReplayFrames, save
from bnnviz.errors import BnnvizError
from bnnviz.figures.live import canvas
from bnnviz.figures.live.view import LOW, View
from bnnviz.figures.palette import DARK, FONT, KINDS, LABEL_SIZE, LIGHT, TICK_SIZE
from bnnviz.figures.places import ORDER, shared_out, titles
from bnnviz.figures.places import grid as template
from bnnviz.numerals import count
from bnnviz.replays.timeline import ReplayTimeline, Series
from bnnviz.specs.run import Spec
from bnnviz.version import VERSION

_HERE = Path(__file__).parent
_TIMELINE = "events"  # its view is in the control bar
_TABLE = "table"
#: The page's own texts, by key.
WORDS = {
    "needs": "This page plays a run of a sampler. It needs a browser of 2023 or later, with JavaScript.",
    "so_far": "Summary",
    "play": "Play",
    "pause": "Pause",
    "back": "Back",
    "step": "Step",
    "speed": "Speed",
    "rate": "frames/s",
    "frame": "Frame",
    "place": "frame {0} of {1}, step {2}",
    "frame_back": "One frame back",
    "frame_on": "One frame on",
    "settings": "Settings",
    "of_run": "Settings of this run",
    "changes": "Changes",
    "command": "The command that repeats it",
    "close": "Close",
    "dark": "Dark colours",
    "projector": "Projector",
    "failed": "The film cannot be shown",
}
#: Pixels: below which height a figure has no label, and the type of its axes; and how much larger that is from afar.
_TYPE = {"low": LOW, "letter": LABEL_SIZE, "tick": TICK_SIZE, "magnified": 1.4}
_COLOURS = ("surface", "ink", "muted", "grid", "axis", "blue", "orange", "magenta", "green")
# Tooltips of the scrubber's marks, by kind of caption.
_ROLES = {kind.label: kind.role for kind in KINDS.values()}


def page(replay_frames: ReplayFrames, dark: bool | None = None) -> str:
    """Return replay frames as a self-contained HTML page."""
    content, numbers = pack(replay_frames)
    shared = serialize_json(shared_words(dark)).encode()
    held = {"shared": shared, "content-0": content, "numbers-0": numbers}
    bokeh, player = bokeh_js(), script()
    return Template((_HERE / "player.html").read_text(encoding="utf-8")).substitute(
        {name: html.escape(text) for name, text in WORDS.items()},
        language="en",
        heading=html.escape(str(replay_frames.scene["title"])),
        policy=_policy(bokeh, player),
        style=style(),
        held=held_parts(held),
        scripts=f"<script>{player}</script>\n<script>{bokeh}</script>",
    )


def shared_words(dark: bool | None = None) -> dict[str, Any]:
    """Return what films of one page share: words and sizes of type."""
    return {"dark": dark, "words": WORDS, **_TYPE}


def write(replay_frames: ReplayFrames, out: str | Path, dark: bool | None = None) -> Path:
    """Write replay frames to a page atomically; ``.html`` is added to a name without a suffix."""
    out = Path(out)
    out = out if out.suffix else out.with_suffix(".html")
    save(out, page(replay_frames, dark).encode())
    return out


def pack(replay_frames: ReplayFrames, show: Sequence[str] = (), grid: str = "") -> tuple[bytes, bytes]:
    """Return a film as the player reads it: JSON, and the bytes of its columns; ``show`` lists the parts to show."""
    timeline = ReplayTimeline(replay_frames)
    if not timeline.views:
        raise BnnvizError("This run has no views, so it cannot be replayed.", "run")
    sheets, numbers = timeline.columns()
    shares = shared_out({view.needs[0] for view in timeline.views} | {_TABLE})
    content = {
        **_texts(replay_frames),
        "document": timeline.document,
        "cards": [_card(view, shares, show) for view in timeline.views],
        "grid": grid or template({place: False for place, parts in shares.items() if parts}),
        "tabled": not show or _TABLE in show,
        "values": list(timeline.values()),
        "words": {name: words.plain() for name, words in timeline.words.items()},
        "legends": {name: [series.plain() for series in both] for name, both in timeline.legends.items()},
        "sheets": sheets,
    }
    return serialize_json(content).encode(), numbers


def _card(view: View, shares: Mapping[str, list[str]], show: Sequence[str]) -> dict[str, Any]:
    """Return the page's data of a view's card."""
    part = view.needs[0]
    place = next((place for place, parts in shares.items() if part in parts), part)
    together = [] if show else shares.get(place, [])
    return {
        "name": view.name,
        "part": part,
        "place": part if show else place,
        "order": show.index(part) if part in show else ORDER.get(place, 0),
        "behind": part not in together[:1] and bool(together),
        "others": [[each, titles(place)[each]] for each in together if each != part],
        "root": view.root.id,
        "ranges": [view.root.x_range.id, view.root.y_range.id],
        "axes": [view.root.xaxis[0].id, view.root.yaxis[0].id],
        "alike": view.drawing.equal,
        "models": sorted(model.id for model in view.root.references()),
        "bar": part == _TIMELINE,
    }


def _texts(replay_frames: ReplayFrames) -> dict[str, Any]:
    """Return all texts: those of the run, and those at each frame."""
    caption, status, table = (Series([], []) for _ in range(3))
    moves = "events" if "events" in replay_frames.scene["emits"] else "moves"
    rows: list[Any] = []
    for number, frame in enumerate(replay_frames.frames):
        reported = frame.get("caption", {"text": "", "kind": "", "warning": ""})
        caption.note(number, [reported["text"], reported.get("warning", "")])
        status.note(number, _cells(frame["status"], moves))
        # Recorded frames have it only occasionally: the last text stays, as on the stage.
        rows = frame.get("table", {"rows": rows})["rows"]
        table.note(number, rows)
    return {
        "title": str(replay_frames.scene["title"]),
        "made": f"made with bnnviz {replay_frames.header.get('bnnviz', VERSION)}",
        "steps": replay_frames.steps,
        "caption": caption.plain(),
        "status": status.plain(),
        "table": table.plain(),
        "marks": _marks(replay_frames),
        "settings": _settings(replay_frames.header["spec"]),
        "changes": [[step, json.dumps(settings)[:200]] for step, settings in replay_frames.header.get("changes", [])],
        "command": _command(replay_frames.header["spec"]),
        "notes": [str(note) for note in replay_frames.header.get("notes", [])],
    }


def _cells(status: dict[str, Any], moves: str) -> list[list[str]]:
    """Return the cells of the status line: figure and unit."""
    return [
        [str(status["device"]), ""],
        [str(status["phase"]), ""],
        [count(status["step"]), "steps"],
        [count(status["events"]), moves],
        [count(status["gradients"]), "gradients"],
        [f"{count(status['draws'])} × {status['chains']}", "draws"],
        [count(status["ess"]), "ESS"],
    ]


def _marks(replay_frames: ReplayFrames) -> list[dict[str, Any]]:
    """Return the marks on the scrubber: phases, changes, and outcomes of single steps."""
    marks: list[dict[str, Any]] = []
    steps, frames = replay_frames.steps, replay_frames.frames
    for number, frame in enumerate(frames):
        status, before = frame["status"], frames[max(number - 1, 0)]["status"]
        if not number or status["phase"] != before["phase"]:
            marks.append({"at": number, "phase": str(status["phase"])})
        if status["generation"] != before["generation"]:
            marks.append({"at": number, "role": "magenta", "high": True})
        role = _ROLES.get(frame.get("caption", {}).get("kind"))
        if role and number and steps[number] - steps[number - 1] == 1:
            marks.append({"at": number, "role": role, "high": False})
    return marks


def _settings(spec: dict[str, Any]) -> list[list[str]]:
    """Return the spec as rows of whose, name and value."""
    rest = {name: spec[name] for name in ("chains", "draws", "warmup", "seed", "dtype", "kernel") if name in spec}
    rows = []
    for owner, settings in (
        ("target", spec.get("target_settings", {})),
        ("sampler", spec.get("settings", {})),
        ("run", rest),
    ):
        rows.append([owner, "", str(spec.get(owner, ""))])
        for name, value in settings.items():
            text = value if isinstance(value, str) else json.dumps(value)
            rows.append(["", str(name), text if len(text) <= 80 else text[:77] + "..."])
    return rows


def _command(spec: dict[str, Any]) -> str:
    """Return the command that repeats the run, or "" if no command can."""
    try:
        checked = Spec.from_json(spec)
    except BnnvizError:
        return ""
    return "" if checked.shareable() else checked.as_command()


# --- the file


def bokeh_js() -> str:
    """Return BokehJS, escaped for a page."""
    return canvas.bokeh_js().replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(*scripts: str) -> str:
    """Return the content security policy: only these scripts, and no connections."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    # Bokeh's callbacks are texts that it makes functions of; they come with the document.
    allowed = {
        "default-src": "'none'",
        "script-src": f"{hashes} 'unsafe-eval'",
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


def held_parts(parts: Mapping[str, bytes]) -> str:
    """Return elements of a page that hold data, by their ids."""
    return "\n".join(
        f'<script type="text/plain" id="{name}">{compressed(data)}</script>' for name, data in parts.items()
    )


def compressed(content: bytes) -> str:
    """Return bytes as text, compressed."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def style() -> str:
    """Return the player's style sheet with the colours of both themes."""
    names = sorted({*_COLOURS, *_ROLES.values()})
    light, dark = (" ".join(f"--{name}: {getattr(of, name)};" for name in names) for of in (LIGHT, DARK))
    sheet = (_HERE / "player.css").read_text(encoding="utf-8")
    return f":root {{--font: {FONT}; {light}}}\n:root[data-theme=dark] {{{dark}}}\n{sheet}"


def script() -> str:
    """Return the player's script."""
    return (_HERE / "player.js").read_text(encoding="utf-8")

"""A sound recording of a run that is half done, and ways to change it with right checksums."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bnnviz.files import sealed, unsealed

HUGE = 10**30
DEEP: Any = []
for _ in range(90):
    DEEP = [DEEP]
ABSENT = object()

#: File, path to a value in it, and what it is instead.
VALUES: list[tuple[str, str, Any]] = [
    *(("header.json", "bnnviz", value) for value in (ABSENT, None, 3, "\x1b[2J", ["0.1"])),
    *(("header.json", "device", value) for value in (ABSENT, {}, "")),
    *(("header.json", "spec", value) for value in (ABSENT, [], "banana", {})),
    *(("header.json", "spec.target", value) for value in (ABSENT, 1, ["banana"], "x" * 1000, "\ud800")),
    *(("header.json", "spec.target_settings", value) for value in ([], None, "bend", {"": 1})),
    *(("header.json", "spec.sampler", value) for value in (["hmc"], {}, None)),
    *(("header.json", "spec.settings", value) for value in ([1], 7)),
    *(("header.json", "spec.chains", value) for value in (0, -1, "2", 1.5, True, HUGE)),
    *(("header.json", "spec.draws", value) for value in ("many", -3, [97], HUGE)),
    *(("header.json", "spec.start", value) for value in ("text", [], 4, "../../etc/passwd")),
    *(("header.json", "spec.file", value) for value in ("text", [1])),
    ("header.json", "spec.unknown", 1),
    *(("header.json", "changes", value) for value in (ABSENT, {}, [[1]], [[-1, {}]], [[1, []]], "none")),
    *(("header.json", "notes", value) for value in (ABSENT, "a note", [1], [None])),
    *(("header.json", "format", value) for value in (99, None, [DEEP], "[/bold]")),
    ("header.json", "stats", DEEP),
    *(("progress.json", "finished", value) for value in (ABSENT, "yes", 1, None)),
    *(("progress.json", "counts", value) for value in (ABSENT, [], [1], [-1, 2], [1.5, 2], [HUGE, 1], "97", [True, 1])),
    *(("progress.json", "alive", value) for value in (ABSENT, [], [1, 1], [True])),
    *(("progress.json", "checkpoint", value) for value in (ABSENT, [], [{}], {}, None)),
    *(("progress.json", "checkpoint.file", value) for value in ("../header.json", "checkpoint-1", 3)),
    *(("progress.json", "checkpoint.step", value) for value in (None, -1, "0", HUGE)),
    ("progress.json", "checkpoint.sha256", 1),
    *(("progress.json", "spec", value) for value in (ABSENT, None, [], {"target": 1})),
    *(("progress.json", "spec.chains", value) for value in (3, HUGE)),
    *(("progress.json", "changes", value) for value in (ABSENT, 1, [1])),
    *(("progress.json", "phase", value) for value in (ABSENT, "asleep", ["done"], {})),
    *(("progress.json", "steps", value) for value in (ABSENT, -1, 1.5, HUGE, "302")),
    *(("progress.json", "seconds", value) for value in (ABSENT, -1, "soon", float("nan"), float("inf"), HUGE)),
    *(("progress.json", "error", value) for value in (1, ["failed"], {}, True)),
]

#: The bytes of a file instead of what it holds.
TEXTS: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "another encoding": "{\u201c".encode("utf-16"),
    "no object": b"[1]",
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "a long number": b'{"steps": ' + b"9" * 5000 + b"}",
    "zeros": b"\0" * 1000,
}


def record_half(folder: Path) -> Path:
    """Record HMC on the banana up to 30 of its 90 draws."""
    from bnnviz.engine.recording.writer import RecordingWriter
    from bnnviz.engine.viewed_run import ViewedRun
    from bnnviz.specs.run import Spec

    run = ViewedRun(Spec(target="banana", sampler="hmc", chains=2, draws=90, warmup=20).checked())
    writer = RecordingWriter(run, folder)
    run.prepare()
    while int(run.store.counts.min()) < 30:
        run.take(20, 1.0)
    writer.note(now=True)
    writer.abandon()
    return folder


def name_of(case: tuple[str, str, Any]) -> str:
    file, path, value = case
    return f"{file.partition('.')[0]}-{path}-{'absent' if value is ABSENT else str(value)[:12]!r}"


def craft(folder: Path, file: str, path: str, value: Any) -> None:
    """Put a value in its place, with a right checksum."""
    found = unsealed((folder / file).read_bytes())
    *way, last = path.split(".")
    inside: Any = found
    for word in way:
        inside = inside[int(word)] if isinstance(inside, list) else inside[word]
    if value is ABSENT:
        del inside[last]
    else:
        inside[last] = value
    (folder / file).write_bytes(sealed(found))


def craft_checkpoint(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what the checkpoint of a recording holds, with a right checksum."""
    progress = unsealed((folder / "progress.json").read_bytes())
    mark = progress["checkpoint"]
    saved = torch.load(io.BytesIO((folder / mark["file"]).read_bytes()), weights_only=True)
    change(saved)
    buffer = io.BytesIO()
    torch.save(saved, buffer)
    replace_checkpoint(folder, mark, buffer.getvalue())
    (folder / "progress.json").write_bytes(sealed(progress))


def replace_checkpoint(folder: Path, mark: dict[str, Any], content: bytes) -> None:
    """Put bytes in the place of a checkpoint, and note their checksum in its mark."""
    digest = hashlib.sha256(content).hexdigest()
    (folder / mark["file"]).unlink()
    mark |= {"file": f"checkpoint-{mark['step']}-{digest[:12]}", "sha256": digest, "size": len(content)}
    (folder / mark["file"]).write_bytes(content)

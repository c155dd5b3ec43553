"""Pack a recording into one file, and unpack received ones."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO

from bnnviz.engine.recording import reader
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError
from bnnviz.files import make_private, replacing

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_MOST_FILES, _MOST_BYTES = 100_000, 1 << 36
_MOST_SHRINK, _FREE = 200, 1 << 26


def pack(recording: Recording, out: Path) -> Path:
    """Write a recording to a zip file atomically."""
    recording.header, recording.progress  # noqa: B018
    try:
        with replacing(out) as new:
            write(recording, new)
    except OSError as error:
        raise BnnvizError(f"{out} cannot be written: {error.strerror or error}.", "out") from error
    return out


def write(recording: Recording, out: Path | IO[bytes]) -> None:
    """Write a recording's files as a zip file."""
    # Draws are compressed already.
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for path in recording.files():
            # Skip unfinished files, and the lock of a live run.
            inside = path.relative_to(recording.folder)
            if not any(part.startswith(".") for part in inside.parts) and path.suffix != ".partial":
                file.write(path, inside.as_posix())


def unpack(file: str | os.PathLike[str], name: str | None = None) -> Path:
    """Unpack a recording, and return its folder."""
    file = Path(file)
    target = reader.place(reader.free_name(file.stem) if name is None else name)
    if os.path.lexists(target):
        raise BnnvizError(f"The recording {target.name!r} exists already; choose another name.", "name")
    try:
        make_private(target.parent)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unpacking-") as scratch:
            inside = Path(scratch) / target.name
            with file.open("rb") as packed:
                extract(packed, inside, str(file))
            Recording(inside).check()
            inside.rename(target)
    except OSError as error:
        raise BnnvizError(f"{file} cannot be imported: {error.strerror or error}.", "file") from error
    return target


def extract(packed: IO[bytes], folder: Path, name: str) -> None:
    """Extract a zip file to a new folder; messages use ``name``."""
    size = packed.seek(0, os.SEEK_END)
    try:
        with zipfile.ZipFile(packed) as file:
            members = file.infolist()
            _believe(name, size, members)
            for member in members:
                path = folder / member.filename
                path.parent.mkdir(parents=True, exist_ok=True)
                with file.open(member) as source, path.open("xb") as copy:
                    shutil.copyfileobj(source, copy)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise BnnvizError(f"{name} is not an exported recording ({error}).", "file") from error


def _believe(name: str, packed: int, members: list[zipfile.ZipInfo]) -> None:
    """Raise for names that are not plain ones, and for files much larger than their packed bytes."""
    for member in members:
        parts = PurePosixPath(member.filename).parts
        link = (member.external_attr >> 16) & 0o170000 not in (0, 0o100000)
        if link or not parts or member.filename.startswith("/") or not all(map(_PART.fullmatch, parts)):
            raise BnnvizError(
                f"{name} holds {member.filename[:100]!r}, which no recording has; it was not imported.", "file"
            )
    size = sum(member.file_size for member in members)
    if len(members) > _MOST_FILES or size > min(_MOST_BYTES, _FREE + _MOST_SHRINK * packed):
        raise BnnvizError(
            f"{name} would become {size / 1e9:,.1f} GB in {len(members):,} files; it was not imported.", "file"
        )

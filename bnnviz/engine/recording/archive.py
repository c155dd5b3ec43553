"""A recording as one file, to be sent and taken in."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from bnnviz.engine.recording import reader
from bnnviz.engine.recording.reader import Recording
from bnnviz.errors import BnnvizError
from bnnviz.files import replacing

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_MOST_FILES, _MOST_BYTES = 100_000, 1 << 36
_MOST_SHRINK, _FREE = 200, 1 << 26


def pack(recording: Recording, out: Path) -> Path:
    """Put a recording into a zip file, whole or not at all.

    Raises
    ------
    BnnvizError
        If it is no recording, or the file cannot be written.
    """
    recording.header, recording.progress  # noqa: B018
    try:
        # Draws are compressed already.
        with replacing(out) as new, zipfile.ZipFile(new, "w", zipfile.ZIP_STORED) as file:
            for path in recording.files():
                # What is about to become a file, and the lock of a run that goes on, are no part of it.
                inside = path.relative_to(recording.folder)
                if any(part.startswith(".") for part in inside.parts) or path.suffix == ".partial":
                    continue
                file.write(path, inside.as_posix())
    except OSError as error:
        raise BnnvizError(f"{out} cannot be written: {error.strerror or error}.", "out") from error
    return out


def unpack(file: str | os.PathLike, name: str | None = None) -> Path:
    """Take a packed recording in, and return its folder.

    Parameters
    ----------
    file : path
        Of a zip file; what is in it is not believed: no file outside of the new folder is written.
    name : str, optional
        The recording's name; default: the file's, with a number where that is taken.

    Raises
    ------
    BnnvizError
        If the file holds no recording, one that is damaged, or names that leave the folder; nothing is kept of it.
    """
    file = Path(file)
    target = reader.place(reader.free_name(file.stem) if name is None else name)
    if os.path.lexists(target):
        raise BnnvizError(f"There is a recording {target.name!r} already; choose another name.", "name")
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unpacking-") as scratch:
            inside = Path(scratch) / target.name
            _extract(file, inside)
            Recording(inside).check()
            inside.rename(target)
    except OSError as error:
        raise BnnvizError(f"{file} cannot be taken in: {error.strerror or error}.", "file") from error
    return target


def _extract(file: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(file) as packed:
            members = packed.infolist()
            _believe(file, members)
            for member in members:
                path = folder / member.filename
                path.parent.mkdir(parents=True, exist_ok=True)
                with packed.open(member) as source, path.open("xb") as copy:
                    shutil.copyfileobj(source, copy)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise BnnvizError(f"{file} is no recording that was packed ({error}).", "file") from error


def _believe(file: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuse names that are not plain ones, and files that would become far larger than they are.

    Raises
    ------
    BnnvizError
    """
    for member in members:
        parts = PurePosixPath(member.filename).parts
        link = (member.external_attr >> 16) & 0o170000 not in (0, 0o100000)
        if link or not parts or member.filename.startswith("/") or not all(map(_PART.fullmatch, parts)):
            raise BnnvizError(
                f"{file} holds {member.filename[:100]!r}, which no recording has; it is not taken in.", "file"
            )
    size = sum(member.file_size for member in members)
    if len(members) > _MOST_FILES or size > min(_MOST_BYTES, _FREE + _MOST_SHRINK * file.stat().st_size):
        raise BnnvizError(
            f"{file} would become {size / 1e9:,.1f} GB in {len(members):,} files; it is not taken in.", "file"
        )

"""Read and validate recordings on disk.

A recording is a folder that `bnnviz.engine.recording.writer` writes:

- ``header.json``: spec, change log, versions, device, checksum of the data;
- ``draws.zarr``: the groups ``posterior`` and ``sample_stats`` (chain, draw), which ArviZ opens;
- ``checkpoint-N-...``: the state after step N, without the draws;
- ``progress.json``: the number of complete draws per chain, and checkpoints; written last;
- ``summary.json``: the last written `ViewedRun.summary`;
- ``data.bin`` and ``start.bin`` (optional): the rows of the user's file, and the chains' starting points, whose
  checksum is in the header.

Folders are untrusted: all content is checked, links are not followed, and only plain names become paths. This
module does not import torch.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnnviz import optional, paths
from bnnviz.engine.recording import arrays
from bnnviz.engine.recording.arrays import DRAWS, LOG_WEIGHT, SAMPLE_STATS, X
from bnnviz.engine.recording.lock import RecordingLock
from bnnviz.errors import BnnvizError
from bnnviz.files import unsealed
from bnnviz.messages import Message
from bnnviz.specs.forms import Check, unfit
from bnnviz.specs.run import Spec

if TYPE_CHECKING:
    import numpy as np

FORMAT = 1
HEADER, PROGRESS, SUMMARY, FILE = "header.json", "progress.json", "summary.json", "data.bin"
START = "start.bin"
_MOST_TEXT = 1 << 26  # maximum bytes of a JSON file
_MOST_NAME = 255  # bytes of a file's name
_NAME = re.compile(r"[^\W_][\w .+=,@()-]{0,99}")


def place(name: str) -> Path:
    """Return the folder of a recording with this name, existing or not."""
    if not _NAME.fullmatch(name) or name.endswith((".", " ")) or len(name.encode()) > _MOST_NAME:
        raise BnnvizError(
            f"{name[:100]!r} cannot name a recording: take letters, digits, spaces and . _ + = , @ ( ) -, at most 100"
            " of them, a letter or digit first.",
            "name",
        )
    return paths.recordings() / name


def new_place(word: str | Path) -> Path:
    """Return the folder of a new recording: a path, or for a text without a separator its name among the recordings."""
    if not isinstance(word, str | os.PathLike):
        raise BnnvizError(f"record is the name or the path of a new recording, not {word!r:.60}.", "record")
    named = isinstance(word, str) and os.sep not in word
    folder = place(word) if named else Path(word).expanduser()
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise BnnvizError(
            f"{folder} exists already; choose another name for the recording, or continue it with"
            f" bnnviz resume {word}.",
            "record",
        )
    return folder


def check_zarr() -> None:
    """Raise an ImportError without zarr, before any work."""
    optional.check("zarr", "Recordings need")


def free_name(stem: str) -> str:
    """Return an unused name: the stem, or the stem and a number."""
    stem = re.sub(r"[^A-Za-z0-9._+=,@()-]+", "-", stem).strip("-. ")[:80] or "run"
    name, number = stem, 1
    while os.path.lexists(place(name)):
        number += 1
        name = f"{stem}-{number}"
    return name


def find(word: str | Path) -> Path:
    """Return the folder of a recording by its path or name."""
    if Path(word).is_dir():
        return Path(word)
    if is_recording_name(word):
        return place(str(word))
    folder = paths.recordings()
    known = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) if folder.is_dir() else ""
    known = f" ({known})" if known else ""
    raise BnnvizError(
        f"There is no recording {str(word)[:200]!r}: give its folder, or its name in {folder}{known}.", "run"
    )


def is_recording_name(word: str | Path) -> bool:
    """Return whether a word is the name of a recording."""
    return _NAME.fullmatch(str(word)) is not None and place(str(word)).is_dir()


@dataclass(frozen=True)
class Recording:
    """Read one recording."""

    folder: Path

    @cached_property
    def header(self) -> dict[str, Any]:
        """Spec, change log, versions, device."""
        return self._checked(HEADER, arrays.HEADER_FORM)

    @cached_property
    def progress(self) -> dict[str, Any]:
        """The progress: ``counts`` and ``alive`` of the chains, ``checkpoint``, ``finished``, ``steps``."""
        found = self._checked(PROGRESS, arrays.PROGRESS_FORM)
        if not len(found["counts"]) == len(found["alive"]) == found["spec"]["chains"]:
            raise self.damaged(f"counts in {PROGRESS}")
        return found

    @cached_property
    def last_summary(self) -> dict[str, Any] | None:
        """The last written summary of the run; None if there is no summary yet."""
        if not (self.folder / SUMMARY).exists():
            return None
        found = self._read(SUMMARY)
        try:
            for name in ("warnings", "notes"):
                found[name] = [Message.from_json(each) for each in found.get(name, ())]
            if "verdict" in found:
                found["verdict"] = Message.from_json(found["verdict"])
        except (TypeError, ValueError) as error:
            raise self.damaged(SUMMARY) from error
        return found

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @cached_property
    def size(self) -> int:
        """Size on disk in bytes."""
        return sum(_fact(path, "st_size") for path in self.files())

    @property
    def whole(self) -> int:
        """Number of common draws of all living chains."""
        counts, alive = self.progress["counts"], self.progress["alive"]
        return min([n for n, one in zip(counts, alive, strict=True) if one] or counts)

    def checkpoint(self) -> bytes:
        """Return the last checkpoint."""
        last = self.progress["checkpoint"]
        return self.part(last["file"], last["sha256"])

    def part(self, name: str, digest: str) -> bytes:
        """Return the content of a file with a checksum."""
        content = self._bytes(name)
        if hashlib.sha256(content).hexdigest() != digest:
            raise self.damaged(name)
        return content

    def attachment(self) -> bytes | None:
        """Return the rows of the user's own file; None without one."""
        return self._bytes(FILE) if (self.folder / FILE).exists() else None

    def start_points(self) -> bytes | None:
        """Return the recorded starting points, packed; None if the run chose them itself."""
        digest = self.header["spec"].get("start")
        return None if digest is None else self.part(START, digest)

    def spec(self, begun: bool = False) -> Spec:
        """Return the run's spec after all changes, or with ``begun`` the initial spec, with all its data."""
        spec = (self.header if begun else self.progress)["spec"]
        return Spec.from_json(spec, self.attachment(), self.start_points())

    def check_written(self) -> None:
        """Raise for a recording with draws only in its checkpoint, which needs torch."""
        if not (self.folder / DRAWS / X).is_dir():
            raise BnnvizError(
                f"The draws of {self.name} are in its checkpoint until its run ends: continue the"
                f" run in the Lab, or export them with bnnviz export {self.name} --format netcdf.",
                "run",
            )

    def read_draws(self, most: int | None = None) -> np.ndarray | None:
        """Return the draws (chains, draws, dim) of all chains; None if the checkpoint has them."""
        return self._array(X, most)

    def read_log_weights(self, most: int | None = None) -> np.ndarray | None:
        """Return the log weights (chains, draws) of the draws; None for unweighted draws."""
        return self._array(LOG_WEIGHT, most)

    def read_sample_stats(self, most: int | None = None) -> dict[str, np.ndarray]:
        """Return the sample statistics of the draws' moves by name, (chains, draws) each, without the weights."""
        folder = self.folder / DRAWS / SAMPLE_STATS
        found = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        paths = {name: f"{SAMPLE_STATS}/{name}" for name in found if name.isidentifier() and name != "chain"}
        read = {name: self._array(path, most) for name, path in paths.items() if path != LOG_WEIGHT}
        return {name: values for name, values in read.items() if values is not None}

    def names(self) -> list[str]:
        """Return a label for each coordinate of the draws."""
        return self.labels("coordinate")

    def labels(self, axis: str) -> list[str]:
        """Return the labels of an axis of the draws."""
        check_zarr()
        self.files()
        try:
            return arrays.labels(self.folder / DRAWS, "posterior", axis)
        except arrays.BROKEN as error:
            raise self.damaged(DRAWS) from error

    def check(self) -> None:
        """Read and check the whole recording."""
        self.checkpoint(), self.header, self.last_summary, self.start_points(), self.read_log_weights()
        draws = self.read_draws()
        if draws is not None:
            if self.labels("chain") != [str(chain) for chain in range(len(draws))]:
                raise self.damaged(f"{DRAWS}/posterior/chain")
            if len(set(self.names())) != draws.shape[2]:
                raise self.damaged(f"{DRAWS}/posterior/coordinate")
            self.read_sample_stats()
        elif self.header["spec"].get("draws") is not None:
            raise self.damaged(f"{DRAWS}/{X}")

    def _array(self, path: str, most: int | None) -> np.ndarray | None:
        """Return an array, or its first columns; data beyond the progress may be incomplete."""
        check_zarr()
        self.files()
        counts = self.progress["counts"]
        end = self.whole if self.progress["phase"] == "done" else max(counts)
        try:
            return arrays.read(self.folder / DRAWS, path, end if most is None else min(end, most), len(counts))
        except arrays.BROKEN as error:
            raise self.damaged(f"{DRAWS}/{path}") from error

    def files(self) -> list[Path]:
        """Return all files; raise for links and anything but files and folders."""
        found, folders = [], [self.folder]
        while folders:
            for entry in _entries(folders.pop()):
                try:
                    kind = entry.lstat().st_mode
                except FileNotFoundError:  # a checkpoint that the run has just replaced
                    continue
                if stat.S_ISDIR(kind):
                    folders.append(entry)
                elif stat.S_ISREG(kind):
                    found.append(entry)
                else:
                    raise BnnvizError(
                        f"The recording {self.folder} holds {entry.name!r}, which is a link or no file; it is not"
                        " opened. Remove it if you know where it comes from.",
                        "run",
                    )
        return found

    def _bytes(self, name: str, most: int | None = None) -> bytes:
        path = self.folder / name
        try:
            if self.folder.is_symlink() or not stat.S_ISREG(path.lstat().st_mode):
                raise self.damaged(name)
            if most is not None and path.lstat().st_size > most:
                raise self.damaged(name)
            return path.read_bytes()
        except OSError as error:
            if name in (PROGRESS, HEADER):
                raise BnnvizError(f"{self.folder} is not a recording: it has no {name}.", "run") from error
            raise self.damaged(name) from error

    def _checked(self, name: str, form: dict[str, Check]) -> dict[str, Any]:
        """Return the content of a JSON file after checking its types."""
        found = self._read(name)
        if (wrong := unfit(found, form, {})) is not None:
            raise self.damaged(f"{wrong} in {name}")
        return found

    def _read(self, name: str) -> dict[str, Any]:
        content = self._bytes(name, _MOST_TEXT)
        try:
            found = unsealed(content)
        except ValueError as error:
            raise self.damaged(name) from error
        if found.get("format") != FORMAT:
            raise BnnvizError(
                f"The recording {self.folder} cannot be read: {name} has format {str(found.get('format'))[:20]!r}; this"
                f" bnnviz reads format {FORMAT}.",
                "run",
            )
        return found

    def damaged(self, part: str) -> BnnvizError:
        """Return the error for a damaged part."""
        return BnnvizError(
            f"The recording {self.folder} is damaged: {part} is not as written. Take it from a copy, or run its"
            " spec again.",
            "run",
        )


def _fact(path: Path, name: str) -> float:
    """Return the size or the time of the last change of a file (`os.stat_result`); 0 for a removed one."""
    try:
        return getattr(path.lstat(), name)
    except OSError:
        return 0


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise BnnvizError(f"The folder {folder} cannot be read ({error.strerror}); is it yours?", "run") from error


def recordings() -> Iterator[tuple[Recording, str | None]]:
    """Yield all recordings, newest first, each with an error message or None."""
    if not paths.recordings().is_dir():
        return
    folders = _entries(paths.recordings())
    for folder in sorted(folders, key=lambda folder: _fact(folder, "st_mtime"), reverse=True):
        if folder.name.startswith(".") or not os.path.lexists(folder):
            continue
        recording = Recording(folder)
        try:
            recording.header, recording.progress, recording.last_summary, recording.size  # noqa: B018
        except BnnvizError as error:
            yield recording, str(error)
        else:
            yield recording, None


def rename(name: str, new: str) -> Path:
    """Rename a recording."""
    old, target = place(name), place(new)
    if not os.path.lexists(old):
        raise BnnvizError(f"There is no recording {name!r}.", "name")
    if os.path.lexists(target):
        raise BnnvizError(f"The recording {new!r} exists already; choose another name.", "name")
    try:
        if not old.is_symlink():
            RecordingLock(old).release(remove=True)
        return old.rename(target)
    except OSError as error:
        raise BnnvizError(f"The recording {name!r} cannot be renamed ({error.strerror}).", "name") from error


def delete(name: str) -> None:
    """Remove a recording without a writing process; of a link only the link."""
    folder = place(name)
    try:
        if stat.S_ISDIR(folder.lstat().st_mode):
            RecordingLock(folder).release()
            # Rename it first, so that the name is free at once and never belongs to half a recording.
            going = folder.with_name(f".{folder.name}.{os.getpid()}.going")
            folder.rename(going)
            shutil.rmtree(going)
        else:
            folder.unlink()
    except OSError as error:
        raise BnnvizError(f"The recording {name!r} cannot be removed ({error.strerror}).", "name") from error

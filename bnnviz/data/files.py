"""Find files with a known checksum: in the folder of BNNVIZ_DATA, in the cache, in the package, or download them once.

A file that comes with bnnviz takes precedence over its download: the checksum guarantees identical bytes. A *part* of a
set that comes with bnnviz is a different file, used only if the whole set cannot be downloaded (`bnnviz.data.forms`).
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from types import ModuleType

from bnnviz import optional
from bnnviz.errors import BnnvizError

VARIABLE = "BNNVIZ_DATA"
#: The files that come with bnnviz; its README lists their sources.
EMBEDDED = Path(__file__).resolve().parent / "embedded"
_TIMEOUT_S = (5, 30)  # to connect, and between two pieces of the answer


class DownloadError(BnnvizError):
    """A file that cannot be downloaded."""

    def __init__(self, sentence: str, cause: str) -> None:
        super().__init__(sentence, field="data")
        self.cause = cause

    def __reduce__(self) -> tuple:
        return type(self), (self.message, self.cause)


@dataclass(frozen=True)
class DataFile:
    """A file, where it comes from and how to know it."""

    path: str
    url: str | None
    checksum: str  # the algorithm, as `hashlib` calls it, a colon, and hexadecimal digits


def published(*paths: str) -> tuple[DataFile, ...]:
    """Return files of ``checksums.csv`` by their paths; an empty cell there is no address."""
    return tuple(_published()[path] for path in paths)


@cache
def _published() -> dict[str, DataFile]:
    with Path(__file__).with_name("checksums.csv").open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream)
        return {row["path"]: DataFile(row["path"], row["url"] or None, row["checksum"]) for row in rows}


def shared_folder() -> Path | None:
    """Return the folder in the variable BNNVIZ_DATA, or None if it is not set."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser().resolve()
    if not folder.is_dir():
        raise BnnvizError(f"{VARIABLE} names {folder}, which is not a folder: correct it, or unset it.", field="data")
    return folder


def cache_folder() -> Path:
    """Return the user's cache folder for downloads, which need not exist."""
    return Path(_pooch().os_cache("bnnviz"))


def find(file: DataFile, *, embedded: bool = True) -> Path | None:
    """Return the path of a local file without reading it, or None if it is missing."""
    pooch = [cache_folder()] if optional.has("pooch") else []  # without it nothing has been downloaded
    shared = shared_folder()
    for folder in (*([] if shared is None else [shared]), *pooch, *([EMBEDDED] if embedded else [])):
        place = folder / file.path
        for candidate in (place, place.with_name(f"{place.name}.gz")):
            if candidate.exists():
                return candidate
    return None


def locate(file: DataFile) -> Path:
    """Find a file that is on this machine already, and check it."""
    place = find(file)
    if place is None:
        fetched = "fetch it with 'bnnviz data fetch', or " if file.url else ""
        raise BnnvizError(f"The file {file.path} is not on this machine: {fetched}{_remedy(file)}.", field="data")
    packed = place.name != PurePosixPath(file.path).name
    if place.is_relative_to(EMBEDDED):
        remedy = "install bnnviz again"
    elif file.url is None:
        remedy = "put the right one there; it cannot be downloaded"
    else:
        remedy = f"put the file from {file.url} there, or remove it to download it"
    algorithm, _, digest = file.checksum.partition(":")
    try:
        with (gzip.open if packed else open)(place, "rb") as stream:
            found = hashlib.file_digest(stream, algorithm).hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is not a complete gzip file"
        raise BnnvizError(f"The file {place} cannot be read ({reason}): {remedy}.", field="data") from error
    if found != digest:
        raise BnnvizError(f"The file {place} is not the expected one (its checksum differs): {remedy}.", field="data")
    return place


def fetch(file: DataFile) -> Path:
    """Find a file on this machine, or download it into the cache."""
    place = find(file)
    is_cached = place is not None and optional.has("pooch") and place.is_relative_to(cache_folder())
    return _download(file) if place is None or is_cached else locate(file)


def _download(file: DataFile) -> Path:
    if file.url is None:
        raise DownloadError(f"The file {file.path} cannot be downloaded: {_remedy(file)}.", "it has no download")
    pooch = _pooch()
    import requests  # comes with pooch, which lets its errors through

    # Callers report downloads themselves; pooch's messages would mix with the output of a command.
    pooch.get_logger().setLevel("WARNING")
    place = cache_folder() / file.path
    try:
        pooch.retrieve(
            file.url,
            known_hash=file.checksum,
            fname=place.name,
            path=place.parent,
            downloader=pooch.HTTPDownloader(timeout=_TIMEOUT_S),
        )
    except requests.RequestException as error:
        cause = type(error).__name__
        raise DownloadError(
            f"{file.url} could not be downloaded ({cause}): check the network, or {_remedy(file)}.", cause
        ) from error
    except OSError as error:
        cause = error.strerror or type(error).__name__
        raise DownloadError(
            f"The cache {place.parent} cannot be used ({cause}): make it a folder that you can write to, or"
            f" {_remedy(file)}.",
            f"the cache cannot be used: {cause}",
        ) from error
    except ValueError as error:  # pooch's error for a wrong checksum
        raise DownloadError(
            f"{file.url} is not the expected file (its checksum differs): try again later, or {_remedy(file)}.",
            "its checksum differs",
        ) from error
    return place


def _remedy(file: DataFile) -> str:
    folder = shared_folder()
    if folder is not None:
        return f"put it into {folder}, which {VARIABLE} names, as {file.path}"
    return f"set {VARIABLE} to a folder that holds {file.path}"


def _pooch() -> ModuleType:
    try:
        return optional.require("pooch", "Downloading data needs")
    except ImportError as error:
        remedy = f"{str(error).removesuffix('.')}, or set {VARIABLE} to a folder that holds the files."
        raise DownloadError(remedy, "the package pooch is missing") from error

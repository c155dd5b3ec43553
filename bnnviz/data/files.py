"""Files with a known checksum: from the folder in BNNVIZ_DATA, or downloaded once into the cache."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from bnnviz.errors import BnnvizError

VARIABLE = "BNNVIZ_DATA"
_ALGORITHMS = {"sha256": "SHA-256", "md5": "MD5"}
_TIMEOUT_S = (5, 30)  # to connect, and between two pieces of the answer


@dataclass(frozen=True)
class DataFile:
    """A file, where it comes from and how to know it.

    Parameters
    ----------
    path : str
        Where it lies, with forward slashes, in the folder named by BNNVIZ_DATA and in the cache. In its
        place there may be a compressed file with one more ``.gz`` at the end of its name.
    url : str or None
        Where it is downloaded from; None where nobody publishes it.
    checksum : str or None
        Of the bytes of the file at `path`: a SHA-256 in hexadecimal, or another algorithm of `hashlib`, as pooch
        writes it: ``md5:`` and the digits. None where there is none, as of a folder: it is taken as it is.
    """

    path: str
    url: str | None
    checksum: str | None

    @property
    def algorithm(self) -> str:
        """The checksum's algorithm, as `hashlib` calls it."""
        return self.checksum.rpartition(":")[0] or "sha256"

    @property
    def digest(self) -> str:
        """The checksum's hexadecimal digits alone."""
        return self.checksum.rpartition(":")[2]

    @property
    def difference(self) -> str:
        """What is said of a file that is another one."""
        return f"its {_ALGORITHMS.get(self.algorithm, self.algorithm)} differs"


def shared_folder() -> Path | None:
    """Give the folder that the variable BNNVIZ_DATA names, or None where it is not set."""
    folder = os.environ.get(VARIABLE)
    return Path(folder).expanduser().resolve() if folder else None


def cache_folder() -> Path:
    """Give the user's cache folder for downloads, which need not exist."""
    return Path(_pooch().os_cache("bnnviz"))


def locate(file: DataFile) -> Path:
    """Find a file that is on this machine already, and check it.

    Parameters
    ----------
    file : DataFile
        The file to find.

    Returns
    -------
    Path
        Its place in the folder of BNNVIZ_DATA when that is set, in the cache otherwise; it ends in
        ``.gz`` when it is compressed.

    Raises
    ------
    BnnvizError
        If it is not there, cannot be read, or is not the expected file.
    """
    folder = shared_folder()
    if folder is None:
        place = cache_folder() / file.path
        remedy = f"fetch it with 'bnnviz data fetch', or {_elsewhere(file)}"
    else:
        place = folder / file.path
        remedy = (
            f"put the file from {file.url} there, or unset {VARIABLE} to download it"
            if file.url
            else "put the right one there; nobody publishes it"
        )
    if file.checksum is None and place.exists():
        return place
    packed = place.with_name(f"{place.name}.gz")
    if packed.exists() and not place.exists():
        place = packed
    try:
        with (gzip.open if place == packed else open)(place, "rb") as stream:
            found = hashlib.file_digest(stream, file.algorithm).hexdigest()
    except FileNotFoundError as error:
        raise BnnvizError(f"There is no file {place}: {remedy}.", field="data") from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is no whole gzip file"
        raise BnnvizError(f"The file {place} cannot be read ({reason}): {remedy}.", field="data") from error
    if found != file.digest:
        raise BnnvizError(f"The file {place} is not the expected one ({file.difference}): {remedy}.", field="data")
    return place


def is_here(file: DataFile) -> bool:
    """Tell whether a file, or its compressed form, lies where it is looked for; nothing is checked."""
    place = (shared_folder() or cache_folder()) / file.path
    return place.exists() or place.with_name(f"{place.name}.gz").exists()


def fetch(file: DataFile) -> Path:
    """Find a file, downloading it where that is needed and BNNVIZ_DATA is not set.

    Parameters
    ----------
    file : DataFile
        The file to find. A copy in the cache whose checksum is wrong is downloaded again.

    Returns
    -------
    Path
        The place of the checked file.

    Raises
    ------
    BnnvizError
        If it cannot be had, or what was downloaded is not the expected file.
    """
    return locate(file) if shared_folder() is not None else _download(file)


def _download(file: DataFile) -> Path:
    if file.url is None:
        raise BnnvizError(f"Nobody publishes the file {file.path}: {_elsewhere(file)}.", field="data")
    pooch = _pooch()
    import requests  # comes with pooch, which lets its errors through

    place = cache_folder() / file.path
    try:
        pooch.retrieve(
            file.url,
            known_hash=f"{file.algorithm}:{file.digest}",
            fname=place.name,
            path=place.parent,
            downloader=pooch.HTTPDownloader(timeout=_TIMEOUT_S),
        )
    except requests.RequestException as error:
        raise BnnvizError(
            f"{file.url} could not be downloaded ({type(error).__name__}): check the network, or {_elsewhere(file)}.",
            field="data",
        ) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise BnnvizError(
            f"The cache {place.parent} cannot be used ({reason}): make it a folder that you can write to, or"
            f" {_elsewhere(file)}.",
            field="data",
        ) from error
    except ValueError as error:  # how pooch says that the checksum is wrong
        raise BnnvizError(
            f"What {file.url} sent is not the expected file ({file.difference}): try again later, or"
            f" {_elsewhere(file)}.",
            field="data",
        ) from error
    return place


def _elsewhere(file: DataFile) -> str:
    return f"set {VARIABLE} to a folder that holds {file.path}"


def _pooch():
    try:
        import pooch
    except ImportError as error:
        raise BnnvizError(
            "Downloading data needs the package pooch: install it (pip install 'bnnviz[data]'), or set"
            f" {VARIABLE} to a folder that holds the files.",
            field="data",
        ) from error
    return pooch

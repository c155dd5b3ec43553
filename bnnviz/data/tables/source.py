"""Read the text of a CSV file within limits on its size."""

from __future__ import annotations

import codecs
import os
import re
import unicodedata
from pathlib import Path
from reprlib import repr as short_repr
from typing import TYPE_CHECKING, Any

from bnnviz import optional
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 1_000_000_000
_COMPRESSED = (b"PK\x03\x04", b"\x1f\x8b", b"\xd0\xcf\x11\xe0", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf")
_OTHERS = (b"PAR1", b"ARROW1", b"\x89HDF", b"\x93NUMPY", b"SQLite", b"%PDF", b"{\\rtf", b"\x80\x04", b"\x80\x05")
_WITH_MARKS = {  # the longer ones first
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Byte order marks, spaces of no width and marks of direction, which are copied from pages and sheets unseen; the end of
# a file under DOS.
_UNSEEN = dict.fromkeys([0x1A, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF])
_MARKUP = {r"<[a-z!?]": "HTML or XML", r"\{|\[[\[{]": "JSON", "@relation": "ARFF"}


def is_frame(source: Any) -> bool:
    """Return whether something is a frame of pandas or polars, or a table of PyArrow."""
    return any(hasattr(source, each) for each in ("iloc", "write_csv", "column_names")) and hasattr(source, "columns")


def content(source: Any, name: str | None) -> tuple[bytes, str]:
    """Return the bytes of a file, or the given bytes, and its name."""
    if isinstance(source, str) and "\n" in source:
        raise _wrong("The text of a table was given instead of a path; give it as bytes, text.encode().")
    is_path = isinstance(source, str | os.PathLike)
    name = name or (Path(source).name if is_path else "")
    name = "".join(letter for letter in Path(name).name if letter.isprintable())[:100] or "your file"
    if is_path:
        found = _read_file(Path(source), name)
    else:
        found = source if isinstance(source, bytes) else _read_stream(source)
    _check_size(len(found), name)
    return found, name


def _check_size(size: int, name: str) -> None:
    if size > MOST_BYTES:
        raise _wrong(f"The file {name} has more than {MOST_BYTES / 1e6:,.0f} MB: give fewer rows or columns.")


def of_index(source: Any) -> list[str]:
    """Return a note that the index of a frame is dropped, unless it only numbers the rows."""
    index = getattr(source, "index", None) if is_frame(source) else None
    names = [] if index is None else [str(name) for name in index.names if name is not None]
    if index is None or (type(index).__name__ == "RangeIndex" and not names):
        return []
    called = f" ({', '.join(names)})" if names else ""
    return [f"The index of the frame{called} is dropped; reset_index() makes columns of it."]


def frame_of(source: Any) -> pd.DataFrame:
    """Return a frame of pandas, polars or a table of PyArrow as a frame of pandas."""
    pandas = optional.require("pandas", "Reading a table needs")
    if hasattr(source, "iloc"):
        found = source
    elif hasattr(source, "to_pydict"):
        found = pandas.DataFrame(source.to_pydict())
    else:
        found = pandas.DataFrame(source.to_dict(as_series=False))
    if found.columns.nlevels > 1:
        raise _wrong(
            "The columns of the frame have names of several levels; give each one name, as in frame.columns ="
            " ['_'.join(names) for names in frame.columns]."
        )
    found = found.set_axis([str(name) for name in found.columns], axis=1)
    if not found.columns.is_unique:
        twice = found.columns[found.columns.duplicated()][0]
        raise _wrong(f"Two columns of the frame are called {twice}; give each its own name.")
    return found


def _read_stream(source: Any) -> bytes:
    found = source.read() if hasattr(source, "read") else None
    if not isinstance(found, str | bytes):
        raise _wrong(
            f"A table is the path of a CSV file, its bytes, an open file or a frame, not a {type(source).__name__}."
        )
    return found.encode() if isinstance(found, str) else found


def _read_file(path: Path, name: str) -> bytes:
    try:
        with path.open("rb") as stream:
            _check_size(os.fstat(stream.fileno()).st_size, name)
            return stream.read(MOST_BYTES + 1)  # a device may have no end
    except FileNotFoundError as error:
        raise _wrong(f"There is no file {path}; give the path of a CSV file.") from error
    except IsADirectoryError as error:
        raise _wrong(f"{path} cannot be read (it is a folder); give the path of a CSV file.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not a path"
        raise _wrong(f"{short_repr(str(path))} cannot be read ({reason}); give the path of a CSV file.") from error


def decode(content: bytes, name: str) -> str:
    """Return the text of a file's bytes."""
    if content.startswith(_COMPRESSED):
        raise _wrong(f"The file {name} is a spreadsheet or compressed; save or unpack it as CSV first.")
    if content.startswith(_OTHERS):
        raise _wrong(f"The file {name} is not a text but another program's; save it as CSV first.")
    encoding = next((each for mark, each in _WITH_MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
        if not text.isascii() or "\x1a" in text:
            # Combining accents: equal-looking texts must be equal.
            text = unicodedata.normalize("NFC", text.translate(_UNSEEN))
    except UnicodeDecodeError as error:
        raise _wrong(f"The file {name} is not UTF-8 text (byte {error.start + 1}); save it as CSV UTF-8.") from error
    if "\0" in text:
        raise _wrong(f"The file {name} is not a text; give a CSV file in UTF-8.")
    head = text[:1000].lstrip().lower()
    markup = next((kind for start, kind in _MARKUP.items() if re.match(start, head)), "")
    if markup:
        raise _wrong(f"The file {name} looks like {markup}, not like CSV; save it as CSV first.")
    if not text.strip():
        raise _wrong(f"The file {name} is empty; give one with a line of names and a line for each row.")
    return text


def _wrong(sentence: str) -> BnnvizError:
    return BnnvizError(sentence, "data")

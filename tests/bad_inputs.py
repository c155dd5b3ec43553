"""Tables that cannot be used: source, target column and task as `bnnviz.data.read_table` takes them."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Made = tuple[Any, str | None, str | None]

GOOD = "a,b,y\n" + "".join(f"{i},{i * i % 7},{i / 4 + 0.1}\n" for i in range(30))


def text(content: str, target: str | None = "y", task: str | None = None) -> Callable[[Path], Made]:
    return lambda folder: (content.encode(), target, task)


def raw(content: bytes) -> Callable[[Path], Made]:
    return lambda folder: (content, "y", None)


def rows(header: str, row: Callable[[int], str], count: int = 30) -> str:
    return header + "\n" + "\n".join(row(i) for i in range(count)) + "\n"


def at(place: str) -> Callable[[Path], Made]:
    return lambda folder: (folder / place, "y", None)


def folder_itself(folder: Path) -> Made:
    return folder, "y", None


def sparse(folder: Path) -> Made:
    """Make a file of 10 GB that takes no room."""
    place = folder / "huge.csv"
    with place.open("wb") as stream:
        stream.truncate(10_000_000_000)
    return place, "y", None


def million_rows(folder: Path) -> Made:
    place = folder / "long.csv"
    place.write_bytes(b"a,y\n" + b"1,2.5\n" * 1_000_000)
    return place, "y", None


def spreadsheet(folder: Path) -> Made:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return buffer.getvalue(), "y", None


#: Names of inputs, and what makes them in a folder.
BAD_TABLES: dict[str, Callable[[Path], Made]] = {
    "no file": at("nowhere.csv"),
    "a file without end": lambda folder: ("/dev/zero", "y", None),
    "a folder": folder_itself,
    "empty": raw(b""),
    "10 GB": sparse,
    "a million rows": million_rows,
    "zero bytes": raw(b"a,y\n1,\0\n"),
    "a spreadsheet": spreadsheet,
    "a gzip file": raw(gzip.compress(GOOD.encode())),
    "a picture": raw(b"\x89PNG\r\n\x1a\n" + bytes(range(256))),
    "one column": text("y\n1\n2\n3\n"),
    "2,001 columns": text(",".join(f"c{i}" for i in range(2001)) + "\n"),
    "a first line without end": raw(b"a," * 1_000_000),
    "all rows too long": text(rows("a,y", lambda i: f"{i},{i},2")),
    "no target named": text(GOOD, None),
    "a missing target": text(GOOD, "price"),
    "classes or amounts": text(rows("a,y", lambda i: f"{i},{i % 3}")),
    "classes without end": text(GOOD, "y", "classification"),
    "an unknown task": text(GOOD, "y", "ranking"),
    "numbers with an odd cell": text(rows("a,y", lambda i: f"{i or 'none?'},{i}.5")),
    "infinite numbers": text(rows("a,y", lambda i: f"inf,{i}.5")),
    "texts that make too many columns": text(
        rows(",".join(f"c{i}" for i in range(300)) + ",y", lambda i: f"v{i % 10}," * 300 + f"{i}.5")
    ),
}

"""Inputs that cannot be used, and a part of the one sentence that each gets.

A row is a name, a function that makes the input in a folder and returns what `bnnviz.data.read_table`
takes (source, target column, task), and what the sentence has to say.
"""

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


def unreadable(folder: Path) -> Made:
    return str(folder / ("long" * 100)), "y", None


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


BAD_TABLES: list[tuple[str, Callable[[Path], Made], str]] = [
    # The file itself
    ("no file", at("nowhere.csv"), "There is no file"),
    ("a file without end", lambda folder: ("/dev/zero", "y", None), "the limit is 50 MB"),
    ("a folder", folder_itself, "cannot be read (it is a folder); give the path"),
    ("an impossible name", unreadable, "cannot be read"),
    ("a name with a zero byte", lambda folder: ("a\0b.csv", "y", None), "cannot be read"),
    ("empty", raw(b""), "is empty; give one with a line of names"),
    ("blank lines", raw(b"\n \n\n"), "is empty; give one"),
    ("a byte order mark alone", raw(b"\xef\xbb\xbf\n"), "is empty"),
    ("10 GB", sparse, "has 10,000 MB; the limit is 50 MB"),
    ("bytes over the limit", raw(b"a,y\n" + b"1" * 50_000_001), "the limit is 50 MB"),
    ("a million rows", million_rows, "more than 200,000 rows; give a random part"),
    ("Latin-1", raw("größe,y\n1,2\n".encode("latin-1")), "no UTF-8 text (byte 3); save it as CSV UTF-8"),
    ("UTF-16 without a mark", raw("a,y\n1,2\n".encode("utf-16-le")), "is no text"),
    ("zero bytes", raw(b"a,y\n1,\0\n"), "is no text; give a CSV file"),
    ("a spreadsheet", spreadsheet, "is a spreadsheet or compressed; save or unpack it"),
    ("a gzip file", raw(gzip.compress(GOOD.encode())), "is a spreadsheet or compressed"),
    ("an old spreadsheet", raw(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100)), "is a spreadsheet or compressed"),
    ("a picture", raw(b"\x89PNG\r\n\x1a\n" + bytes(range(256))), "no UTF-8 text"),
    # Its shape
    ("one column", text("y\n1\n2\n3\n"), "has one column only"),
    ("separated by spaces", text("a b y\n1 2 3\n4 5 6\n"), "separated by one of comma, semicolon, tab"),
    ("2,001 columns", text(",".join(f"c{i}" for i in range(2001)) + "\n"), "has 2,001 columns; give at most 2,000"),
    ("a first line without end", raw(b"a," * 1_000_000), "first line of your file is longer than"),
    ("names but no rows", text("a,b,y\n"), "has names but no rows"),
    ("two columns of one name", text("a,a,y\n1,2,3\n"), "Two columns of your file are called a"),
    ("a row that is too long", text(rows("a,b,y", lambda i: "1,2,3,4" if i == 7 else "1,2,3")), "Line 9 of your file"),
    ("all rows too long", text(rows("a,y", lambda i: f"{i},{i},2")), "more cells than the 2 columns"),
    ("a quote without end", text('a,b,y\n1,2,3\n1,"2,3\n4,5,6\n'), "check its separators and quotes"),
    ("four rows", text(rows("a,y", lambda i: f"{i},{i}.5", 4)), "has 4 rows without a missing value; at least 5"),
    # The target
    ("no target named", text(GOOD, None), "Say which column of your file is the target; its columns are a, b, y."),
    ("a missing target", text(GOOD, "price"), "no column 'price'; its columns are a, b, y."),
    ("nearly a column", text(GOOD.replace("y\n", "price\n", 1), "prise"), "did you mean price?"),
    ("another case", text(GOOD, "Y"), "did you mean y?"),
    ("an empty target name", text(GOOD, ""), "has no column ''"),
    ("a name where no line names", text(GOOD.partition("\n")[2], "y"), "its columns are c1, c2, c3."),
    ("a constant target", text(rows("a,y", lambda i: f"{i},2.5")), "is 2.5 in every row; there is nothing to predict"),
    ("one class", text(rows("a,y", lambda i: f"{i},cat")), "is cat in every row"),
    ("one class once gaps are out", text(rows("a,y", lambda i: f"{i},cat" if i else ",dog")), "is cat in every row"),
    ("a target without values", text(rows("a,y", lambda i: f"{i},")), "missing value, most of them in the column y"),
    ("texts without end", text(rows("a,y", lambda i: f"{i},name{i}")), "30 different values; classes are at most 20"),
    ("an odd cell in the target", text(rows("a,y", lambda i: f"{i},{i}.5" if i else "0,low")), "texts such as 'low'"),
    (
        "classes or amounts",
        text(rows("a,y", lambda i: f"{i},{i % 3}")),
        "whole numbers (0, 1, 2), which may be",
    ),
    ("regression on texts", text(rows("a,y", lambda i: f"{i},{'uv'[i % 2]}"), "y", "regression"), "needs numbers"),
    ("classes without end", text(GOOD, "y", "classification"), "choose another target, or take them as amounts"),
    ("an unknown task", text(GOOD, "y", "ranking"), "choose regression or classification"),
    # The inputs
    ("names of people", text(rows("who,y", lambda i: f"p{i},{i}.5")), "more than 20 different values (who)"),
    (
        "numbers with an odd cell",
        text(rows("a,y", lambda i: f"{i or 'none?'},{i}.5")),
        "texts such as 'none?'",
    ),
    (
        "constant inputs",
        text(rows("a,b,y", lambda i: f"1,u,{i}.5")),
        "but the target is constant",
    ),
    (
        "a gap in every row",
        text(rows("a,b,y", lambda i: f"{i if i % 2 else ''},{'' if i % 2 else i},{i}.5")),
        "Every row of your file has a missing value",
    ),
    ("infinite numbers", text(rows("a,y", lambda i: f"inf,{i}.5")), "Every row of your file has a missing value"),
    (
        "numbers too large",
        text(rows("a,y", lambda i: f"{i}e40,{i}.5")),
        "numbers beyond 1e+30",
    ),
    (
        "texts that make too many columns",
        text(rows(",".join(f"c{i}" for i in range(150)) + ",y", lambda i: f"v{i % 20}," * 150 + f"{i}.5")),
        "make 3,000 columns, one for each value; at most 2,000",
    ),
]

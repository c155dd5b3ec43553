"""Tables that people bring, kind by kind, each with the numbers that are in it or words of the sentence that asks."""

from __future__ import annotations

import importlib
import io
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bnnviz import optional

TRUE = pd.DataFrame(
    {
        "rooms": [3, 4, 5, 6, 7, 8],
        "price": [974.0, 1952.0, 1234.5, 12345.25, 810.5, 1000000.0],
        "y": [0.5, 1.25, -2.5, 3.0, 0.125, 7.75],
    }
)
COUNT = 12  # rows of a table that is made of a few cells


class Example(NamedTuple):
    """A file or a frame, and its inputs and observations; without these it is refused."""

    content: Any
    names: tuple[str, ...] = ()
    x: np.ndarray | None = None
    y: np.ndarray | None = None
    options: dict[str, Any] = {}


def written(decimal: str, thousands: str, separator: str, quote: bool = False) -> str:
    """Return the true table as a program writes it with these marks."""

    def cell(value: float) -> str:
        text = f"{value:,}".removesuffix(".0")
        return text.replace(",", "\0").replace(".", decimal).replace("\0", thousands)

    mark = '"' if quote else ""
    lines = [separator.join(TRUE.columns)]
    lines += [separator.join(f"{mark}{cell(value)}{mark}" for value in row) for row in TRUE.to_numpy()]
    return "\n".join(lines) + "\n"


def as_csv(table: pd.DataFrame, **given: Any) -> str:
    buffer = io.StringIO()
    table.to_csv(buffer, **given)
    return buffer.getvalue()


def frame(index: Any = None) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40), "y": rng.normal(size=40)})
    return found if index is None else found.set_index(index)


PLAIN = as_csv(TRUE, index=False)
KEYS = ("id", "flat_id", "Customer ID", "PassengerId", "id_of_flat", "user.uuid", "customerID", "order-key")


def column(cells: list[str], name: str = "b", separator: str = ";", count: int = COUNT) -> str:
    """Return a table of which one column has these cells, over and over."""
    rows = [f"{i / 7:.3f}{separator}{cells[i % len(cells)]}{separator}{i * i / 9:.3f}" for i in range(count)]
    return f"a{separator}{name}{separator}y\n" + "\n".join(rows) + "\n"


def elsewhere() -> list[Any]:
    """Return the true table as those other libraries hold it that are installed."""
    found = [importlib.import_module("polars").DataFrame(TRUE.to_dict("list"))] if optional.has("polars") else []
    return found + ([importlib.import_module("pyarrow").table(TRUE)] if optional.has("pyarrow") else [])


def true(content: Any, **options: Any) -> Example:
    """Return a file that holds the true table."""
    x = TRUE[["rooms", "price"]].to_numpy(float)
    return Example(content, ("rooms", "price"), x, TRUE["y"].to_numpy(), options)


def cells(given: list[str], right: list[float], separator: str = ";", **options: Any) -> Example:
    """Return a file with a column of these cells, over and over, which are these numbers; nan is filled and marked."""
    rows = np.arange(COUNT)
    b = np.array(right)[rows % len(right)]
    gaps = np.isnan(b)
    made = [[float(f"{i / 7:.3f}") for i in rows], np.where(gaps, np.nanmedian(b), b)]
    names = ("a", "b", "b is missing") if gaps.any() else ("a", "b")
    x = np.column_stack(made + [gaps] * int(gaps.any()))
    y = np.array([float(f"{i * i / 9:.3f}") for i in rows])
    return Example(column(given, separator=separator), names, x, y, options)


def asked(content: Any, **options: Any) -> Example:
    return Example(content, options=options)


def without(content: str, names: tuple[str, ...], like: pd.DataFrame | None = None) -> Example:
    """Return a file of which these columns of a frame are inputs."""
    like = frame() if like is None else like
    return Example(content, names, like[list(names)].to_numpy(float), like["y"].to_numpy())


def left_out(content: str) -> Example:
    """Return a file whose column b is left out, and a is the input."""
    plain = cells(["1"], [1.0])
    return Example(content, ("a",), plain.x[:, :1], plain.y, {"leave_out": ("b",)})


def one_of(given: list[str]) -> Example:
    """Return a file with a column of texts, which is one-hot encoded."""
    numbers = cells(["1"], [1.0])
    levels = sorted(set(given))
    made = [[float(given[i % len(given)] == level) for i in range(COUNT)] for level in levels]
    x = np.column_stack([numbers.x[:, 0], *made])
    return Example(column(given), ("a", *(f"b={level}" for level in levels)), x, numbers.y)


def prices(given: list[str], separator: str = ";") -> str:
    """Return a table without another number that shows how its numbers are written."""
    return f"p{separator}y\n" + "".join(f"{price}{separator}{i}\n" for i, price in enumerate(given))


PRICES = ["974", "1,952", "2,001", "810", "999"]
POINTS = [price.replace(",", ".") for price in PRICES]
WHOLE, PARTS = (np.array(each)[:, None] for each in ([974, 1952, 2001, 810, 999], [974, 1.952, 2.001, 810, 999]))
DATED = "a,y\n" + "".join(f"{i / 7:.3f},2020-01-{1 + i % 4:02d}\n" for i in range(COUNT))
ROUNDED = [5 + k % 3 * 1e-14 for k in range(40)]
SORTED = frame().sort_values("y")

KINDS: dict[str, tuple[Example, ...]] = {
    "commas, semicolons, tabs or bars between cells, but not blanks": (
        true(PLAIN),
        true(PLAIN.replace(",", ";")),
        true(PLAIN.replace(",", "\t")),
        true(PLAIN.replace(",", " | ")),
        true("sep=;\n" + PLAIN.replace(",", ";")),
        asked(PLAIN.replace(",", ";", 2)),
        asked(PLAIN.replace(",", "  ")),
    ),
    "decimal commas and points": (
        true(written(".", "", ";")),
        true(written(",", "", ";")),
        true(written(",", "", ",", quote=True)),
        true(written(",", "", "\t").encode("utf-16")),
        cells(["1,5E+03", "-2,25e-1", "0,5"], [1500, -0.225, 0.5]),
    ),
    "marks between thousands": (
        true(written(".", ",", ";")),
        true(written(".", ",", ",", quote=True)),
        true(written(",", ".", "\t")),
        true(written(".", "'", ";")),
        true(written(".", " ", ",")),
        true(written(",", "\u202f", ";")),
    ),
    "`1,952` where nothing tells 1952 from 1.952": (
        asked(prices(PRICES)),
        asked(prices(POINTS)),
        Example(prices(PRICES), ("p",), WHOLE, np.arange(5), {"decimal": "."}),
        Example(prices(PRICES), ("p",), PARTS, np.arange(5), {"decimal": ","}),
    ),
    "a column that numbers or names the rows": (
        without(as_csv(frame()), ("a", "b")),
        without(as_csv(SORTED), ("a", "b"), SORTED),
        without(as_csv(frame(pd.Index([f"patient {i}" for i in range(40)]))), ("a", "b")),
        without(as_csv(frame(), index_label="row_number"), ("a", "b")),
        *(without(as_csv(frame().assign(**{key: np.arange(40)[::-1] * 7}), index=False), ("a", "b")) for key in KEYS),
    ),
    "missing values": (
        cells(["1.5", "-999", "2.5"], [1.5, np.nan, 2.5], missing=["-999"]),
        cells(["1.5", "-999", "2.5"], [1.5, -999, 2.5]),
        cells(["1.5", "", "2.5"], [1.5, np.nan, 2.5]),
        cells(["1.5", "?", "2.5", "#VALUE!"], [1.5, np.nan, 2.5, np.nan]),
        cells(["1.5", "1e400", "2.5", "–"], [1.5, np.nan, 2.5, np.nan], separator=","),
    ),
    "percent": (cells(["0.5%", "12 %", "100%"], [0.5, 12, 100]), asked(column(["5", "7%", "8"]))),
    "dates, times, months": (
        cells(["2020-01-31", "", "2021-02-01"], [18292, np.nan, 18659]),
        cells(["31.01.2020", "1.2.2021"], [18292, 18659]),
        cells(["1/31/20", "2/1/21"], [18292, 18659]),
        cells(["31 Jan 2020", "1 Feb 2021"], [18292, 18659]),
        cells(["2020-01-31T06:00:00Z", "2020-02-01T12:00:00Z"], [18292.25, 18293.5]),
        asked(column(["1/2/2020", "3/4/2021"])),
        one_of(["2020Q1", "2020Q2", "2021Q1"]),
        asked(DATED, task=None),
    ),
    "a column that is left out": (
        left_out(column(["12", "7 or 8", "x"])),
        asked(PLAIN, leave_out=("size",)),
        asked(PLAIN, leave_out=("y",)),
        asked(PLAIN, leave_out=("rooms", "price")),
    ),
    "numbers that single or double precision loses": (
        asked(column([str(2**60 + i) for i in range(COUNT)], separator=",")),
        asked(column([f"{2**60 + i}.5" for i in range(COUNT)], separator=",")),
        cells(["1.5e20", "2.5e20", "0.3333333333333333333"], [1.5e20, 2.5e20, 1 / 3], separator=","),
        asked(column(["1e31", "2e31", "3"])),
        asked(column(["1e-300", "2e-300", "0"])),
    ),
    "numbers and texts in one column": (
        asked(column(["1.5", "2.5", "3.5", "4.5", "low"])),
        asked(column(["TRUE", "1", "FALSE", "0"])),
        asked(PLAIN + "Total,,99\n"),
        cells(["1.5", "low", "2.5"], [1.5, np.nan, 2.5], missing=["low"]),
    ),
    "comments, blank lines, a separator at the end of every line": (
        true("#comment, with, commas\n\n" + PLAIN.replace("\n5,", "\n# broken here\n5,")),
        true("# " + PLAIN),
        true(PLAIN.replace("\n", ",,\n")),
        asked(PLAIN.replace("\n", ",\n").replace("y,\n", "y\n", 1)),
        true(PLAIN.replace("\n", "\r")),
        true(PLAIN.replace("\n", "\r\n")),
    ),
    "names that are not clear": (
        asked(PLAIN.replace("rooms", "price")),
        asked(PLAIN.replace("rooms,price,y", "'rooms','price','y'")),
        asked(PLAIN.replace("\n5,", '\n"5,')),
        asked("My results\n" + PLAIN),
        *(
            true(PLAIN)._replace(content=content, names=("c1", "c2"), options={"target_column": "c3"})
            for content in (PLAIN.partition("\n")[2], "# a comment\n" + PLAIN.partition("\n")[2])
        ),
    ),
    "categories": (
        one_of(["yes", "no", "yes"]),
        one_of(["True", "False"]),
        one_of(["10-19", "20-29", "30-39"]),
        one_of(["00017", "00018", "10017"]),
        asked(column([f"P{i:03d}" for i in range(30)], count=30)),
    ),
    "a constant column, a column without a value, few rows": (
        without(as_csv(frame().assign(c="u"), index=False), ("a", "b")),
        without(as_csv(frame().assign(c=ROUNDED), index=False), ("a", "b")),
        without(as_csv(frame().assign(c=np.nan), index=False), ("a", "b")),
        asked(as_csv(frame().assign(y=ROUNDED), index=False)),
        asked(as_csv(frame().assign(a=1, b="u"), index=False)),
        asked("a,b,y\n1,2,3.5\n"),
    ),
    "encodings": (
        true(PLAIN.encode("utf-8-sig")),
        true(PLAIN.encode("utf-32")),
        asked(PLAIN.replace("rooms", "größe").encode("latin-1")),
        asked(PLAIN.encode("utf-16-le")),
        asked('[{"a": 1, "y": 2}]'),
        asked("<!DOCTYPE html>\n<table>1,2</table>"),
    ),
    "frames of pandas, polars and PyArrow": (
        true(TRUE),
        true(TRUE.astype({"rooms": "Int64", "y": "Float64"})),
        true(TRUE.set_index("rooms", drop=False)),
        *(true(each) for each in elsewhere()),
        asked(TRUE.set_axis(pd.MultiIndex.from_product([["u"], TRUE.columns]), axis=1)),
        Example(
            TRUE.assign(t=pd.date_range("2020", periods=6)),
            ("rooms", "price", "t"),
            np.column_stack([TRUE[["rooms", "price"]], 18262 + np.arange(6)]),
            TRUE["y"].to_numpy(),
        ),
        Example(
            TRUE[["y"]].assign(code=["00017", "00018"] * 3, b=[True, False] * 3, c=pd.Categorical([1, 2] * 3)),
            ("code=00017", "code=00018", "b=False", "b=True", "c=1", "c=2"),
            np.tile([[1, 0, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1]], (3, 1)),
            TRUE["y"].to_numpy(),
        ),
        asked(pd.concat([TRUE, TRUE[["price"]]], axis=1)),
        asked({"a": [1.0]}),
    ),
}

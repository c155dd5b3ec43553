"""Write settings as short texts in links, scripts and commands, and read them.

A link's parameters may be mistyped or truncated, so reading never fails: invalid values are clamped or left out, with a
message for each. A spec's class defines its settings (`bnnviz.specs.run.Spec.read_query`).
"""

from __future__ import annotations

import json
import math
import pprint
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote_plus

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.files import plain_json
from bnnviz.settings import MOST_POINTS

MOST_CHARACTERS = 8192
MOST_CHAINS = 64  # a page must not fill a worker
MOST_DRAWS = 100_000
MOST_NUMBERS = 100_000  # chains times dimensions
MOST_KEPT = 50_000_000  # chains times dimensions times draws: 200 MB
BATCH_DRAWS = 1000  # draws of a script that repeats a live run without an end
MOST_SENTENCES = 4
#: Parameters of the page, not of the spec.
PAGE = ("page", "scene", "step", "play", "speed", "projector", "theme", "recording", "run", "again", "your_data")

#: The part of a link after the question mark, as received by a server or test.
Query = str | Mapping[str, str | bytes | Sequence[str | bytes]]

_DEVICE = re.compile(r"auto|cpu|cuda(:\d{1,2})?")
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_NOTHING = ("none", "null")
_LISTED = 12  # maximum number of choices in a message


# --- one value


def write_value(value: Any) -> str:
    """Write a value for links and commands."""
    if value is None:
        return _NOTHING[0]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(int(value) if value.is_integer() and abs(value) < 1e15 else value)
    return write_points(value) if isinstance(value, list | tuple) else str(value)


def parse_value(setting: dict[str, Any], text: str) -> Any:
    """Parse a text in its setting's type; unreadable text is returned for the check to refuse."""
    kind = setting["type"]
    if text.lower() in _NOTHING and (setting.get("optional") or setting["default"] is None):
        return None
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), text)
    if kind == "choice":
        return next((choice for choice in setting["choices"] if str(choice) == text), text)
    try:
        if kind == "points":
            return plain_json(text) if text.startswith("[") else read_points(text)
        if kind in ("number", "integer"):
            number = float(text)
            return int(number) if kind == "integer" and number.is_integer() else number
    except BnnvizError:
        raise
    except ValueError:
        pass
    return text


def write_points(points: Iterable[Sequence[float]]) -> str:
    """Write rows of numbers as ``x,y;x,y``, rounded to four significant digits."""
    return ";".join(",".join(f"{number:.4g}" for number in row) for row in points)


def read_points(text: str) -> list[list[float]]:
    """Parse rows of two or three numbers from ``x,y;x,y``; an empty text has no points."""
    rows = [row for row in text.split(";") if row.strip()]
    if len(rows) > MOST_POINTS:
        raise BnnvizError(f"{len(rows)} points are too many; a link can have at most {MOST_POINTS}.", "points")
    points = []
    for row in rows:
        try:
            numbers = [float(number) for number in row.split(",")]
        except ValueError:
            numbers = []
        if (
            len(numbers) not in (2, 3)
            or not all(map(math.isfinite, numbers))
            or len(numbers) != len(rows[0].split(","))
        ):
            raise BnnvizError(f"The point {short(row)} is not written as x,y with finite numbers.", "points")
        points.append(numbers)
    return points


def short(text: str) -> str:
    """Return a text for quotation in a message: printable and short."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return repr(plain if len(plain) <= 40 else plain[:37] + "...")


# --- writing


def differing(described: list[dict[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values that differ from the defaults, in declared order."""
    return {s["name"]: given[s["name"]] for s in described if s["name"] in given and given[s["name"]] != s["default"]}


def write_query(described: list[dict[str, Any]], given: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return the parameters for values other than the defaults: texts by name, not yet quoted."""
    return {prefix + name: write_value(value) for name, value in differing(described, given).items()}


def query_text(query: Mapping[str, str]) -> str:
    """Join a link's parameters, keeping them as readable as possible."""
    return "&".join(f"{quote_plus(name)}={quote_plus(value, safe=',;:')}" for name, value in query.items())


def script_values(item: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item's settings that differ from the defaults, for scripts and commands."""
    # Points are rounded in every form, so that links, scripts and commands agree.
    chosen = differing(item["settings"], given)
    return {n: read_points(write_points(v)) if isinstance(v, list) else v for n, v in chosen.items()}


def python_call(head: str, positional: Sequence[Any], named: Mapping[str, Any], then: Sequence[str]) -> str:
    """Return a script with one call; keywords whose value is empty are left out."""
    arguments = [_literal(value) for value in positional]
    arguments += [f"{name}={_literal(value)}" for name, value in named.items() if value != {}]
    return "\n".join(["import bnnviz", "", f"{head}(", *(f"    {each}," for each in arguments), ")", *then, ""])


def command(words: Sequence[str], assigned: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> str:
    """Return a shell command."""
    line = ["bnnviz", *words]
    for key, value in assigned.items():
        line += ["--set", f"{key}={json.dumps(value) if isinstance(value, list) else write_value(value)}"]
    for name, value in (options or {}).items():
        line += [f"--{name.replace('_', '-')}", write_value(value)]
    return shlex.join(line)


def _literal(value: Any) -> str:
    """Write a value as Python."""
    if isinstance(value, dict):
        return "\n".join(["{", *(f"        {_literal(n)}: {_literal(v)}," for n, v in value.items()), "    }"])
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return pprint.pformat(value, width=100, compact=True).replace("\n", "\n            ")


# --- reading


class Link:
    """A link while it is read: its unread parameters, and messages on those that do not fit."""

    def __init__(self, query: Query) -> None:
        self.texts: dict[str, str] = {}
        self._sentences: list[str] = []
        for name, values in (parse_qs(query, keep_blank_values=True) if isinstance(query, str) else query).items():
            name = _decoded(name)
            texts = [_decoded(each).strip() for each in ([values] if isinstance(values, str | bytes) else values)]
            if name in PAGE or name.startswith("bokeh-") or not texts:
                continue
            if len(texts) > 1:
                self.note(f"The link has {short(name)} {len(texts)} times; the first was used.")
            self.texts[name] = texts[0]
        if sum(len(name) + len(text) for name, text in self.texts.items()) > MOST_CHARACTERS:
            self.texts.clear()
            self._sentences = [
                f"The link is longer than {MOST_CHARACTERS // 1024} kB and was not read; send the command or a file."
            ]

    def note(self, *sentences: str) -> None:
        """Add messages on invalid parameters."""
        self._sentences += sentences

    @property
    def sentences(self) -> list[str]:
        """Messages on invalid parameters, without repetition and limited in number."""
        sentences = list(dict.fromkeys(self._sentences))
        if len(sentences) <= MOST_SENTENCES:
            return sentences
        shown = sentences[: MOST_SENTENCES - 1]
        return [*shown, f"{len(sentences) - len(shown)} more parameters of the link did not fit."]

    def take(self, name: str) -> str | None:
        """Return and remove a parameter's text; None if missing."""
        return self.texts.pop(name, None)

    def take_values(
        self,
        item: dict[str, Any],
        begin: Mapping[str, Any],
        prefix: str = "",
        limits: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """Return the initial values, updated with valid ones of the link."""
        values = dict(begin)
        for setting in item["settings"]:
            name = setting["name"]
            text = self.take(prefix + name)
            if text is not None:
                try:
                    values[name] = self._value(setting, text, item["title"], (limits or {}).get(name))
                except BnnvizError as error:
                    self.note(f"{error.sentence}; {_taken(setting, values[name])} was used.")
        return values

    def _value(self, setting: dict[str, Any], text: str, owner: str, limit: int | None) -> Any:
        """Parse one value; raise the start of a message if it is invalid."""
        refused = BnnvizError(f"{setting['name']} = {short(text)} {_expectation(setting)}")
        if setting["name"] == "device" and not _DEVICE.fullmatch(text):
            raise refused
        try:
            value = parse_value(setting, text)
            return value if value is None else settings.check(setting, self._clamped(setting, value, limit), owner)
        except BnnvizError as error:
            raise BnnvizError(error.sentence.rstrip(".")) if setting["type"] == "points" else refused from None

    def _clamped(self, setting: dict[str, Any], value: Any, limit: int | None) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value):
            return value
        low, high = setting["bounds"] or (None, None)
        within = (low is None or value >= low) and (high is None or value <= high)
        high = high if limit is None else limit
        taken = value if low is None else max(value, low)
        taken = taken if high is None else min(taken, high)
        if taken != value:
            why = f"more than the limit of a link ({high})" if within else "out of range"
            self.note(f"{setting['name']} = {write_value(value)} is {why}; {write_value(taken)} was used.")
        return taken

    def refuse_rest(self, items: Mapping[str, dict[str, Any]] | None = None) -> None:
        """Report each unread parameter."""
        for name in self.texts:
            prefix, dot, rest = name.partition(".")
            item = (items or {}).get(prefix) if dot else None
            owner = "A link has no parameter" if item is None else f"{item['title']} has no setting"
            self.note(f"{owner} {short(name if item is None else rest)}; it was left out.")


def _decoded(text: str | bytes) -> str:
    return text.decode(errors="replace") if isinstance(text, bytes) else text


def _expectation(setting: dict[str, Any]) -> str:
    kind = setting["type"]
    if kind == "choice":
        choices = [str(choice) for choice in setting["choices"]]
        more = f" and {len(choices) - _LISTED} more" if len(choices) > _LISTED else ""
        return f"is not one of {', '.join(choices[:_LISTED])}{more}"
    return {
        "boolean": "is neither true nor false",
        "integer": "is not an integer",
        "number": "is not a finite number",
        "text": "is not auto, cpu or cuda:N" if setting["name"] == "device" else "is too long",
        "points": "is not a list of points",
    }[kind]


def _taken(setting: dict[str, Any], value: Any) -> str:
    """Describe the value that is used instead."""
    if setting["type"] == "points":
        return "the data set's own"
    return {None: "the automatic value", "": "the default"}.get(value, write_value(value))

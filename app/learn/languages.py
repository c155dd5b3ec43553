"""Read what the page says in a language: `app/lessons/LANGUAGE/` has all of its texts, and nothing else has any.

Beside a file for each lesson (`bnnviz_app.learn.lessons`) a language has ``page.json``, what buttons and headings say
and how its numbers are written, ``pieces.json``, what the pieces for the hand say, ``poll.json``, what is said around a
question to a class (`bnnviz_app.classroom`), ``figures.json``, what the figures of tables are
(`bnnviz_app.components.cards`), and ``glossary.json``, its terms (`bnnviz_app.learn.glossary`). Languages but English
have ``words.json``, what views, tables and the bar say, and ``help.json``, what the header and the dialog of keys and
marks say (`bnnviz_app.learn.wording`).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bnnviz.numerals import written_out
from bnnviz_app import LANGUAGE_COOKIE

FOLDER = Path(__file__).parents[1] / "lessons"
DEFAULT = "en"
# The files of a language that are no lessons.
PAGE, PIECES, POLL, FIGURES, GLOSSARY = "page", "pieces", "poll", "figures", "glossary"

_NO_BREAK, _JOINED = "\u00a0", "\u2060"
#: What is read as one thing: 25 %, v · grad U, 2.4 / √d, max(0, a + b t), a = 2, E[x] = 1.
_ONE_THING = re.compile(
    r"(?:\b(?:max|min|exp|log)\([^()]*\)|E\[[^\]]*\])(?: = )?|[\w)\]!] [=≠] |\d %| ± | · (?:grad )?"
    r"|(?<=[\w)]) [−+] (?=[\w√])|(?<=[\d)]) / (?=[\d√(])|(?<=\)) / (?=\w)|\b[A-Z] \(√"
)


@dataclass(frozen=True)
class PieceWords:
    """Say what a piece for the hand says."""

    texts: Mapping[str, str]
    language: str

    def __call__(self, name: str, **values: Any) -> str:
        """Return a text, with values in their places."""
        return self.texts[name].format(**values)

    def number(self, text: str) -> str:
        """Return a number as the language writes it, of one as Python does."""
        return number(text, self.language)


def names() -> dict[str, str]:
    """Return the languages that there are texts in, each with its own name for itself."""
    return {folder: page(folder)["language"] for folder in _folders()}


def found(asked: str) -> str | None:
    """Return the language of a code such as ``de`` or ``de-AT``; None where there are no texts in it."""
    code = asked.strip().lower().replace("_", "-").partition("-")[0]
    return code if code in _folders() else None


def asked(arguments: Mapping[str, Sequence[bytes]], cookies: Mapping[str, str]) -> str:
    """Return what an address calls its language; of one that names none, the language that this browser keeps."""
    named = arguments["lang"][0].decode(errors="replace") if arguments.get("lang") else ""
    return named or found(cookies.get(LANGUAGE_COOKIE, "")) or ""


def page(language: str = DEFAULT) -> dict[str, str]:
    """Return what the page itself says, by names."""
    return text(language, PAGE)


def piece(name: str, language: str = DEFAULT) -> PieceWords:
    """Return what a piece for the hand says."""
    texts = text(language, PIECES)
    return PieceWords({**texts["figure"], **texts[name]}, language)


def number(text: str, language: str) -> str:
    """Return a number as a language writes it, of one as Python does."""
    marks = page(language)
    return written_out(text).translate(str.maketrans({".": marks["decimal"], ",": marks["thousands"]}))


def unbroken(text: str) -> str:
    """Keep what is read as one thing in one line: a number with its unit, the factors of a product, a function."""
    text = _ONE_THING.sub(lambda match: match[0].replace(" ", _NO_BREAK), text)
    return text.replace("/∂", f"/{_JOINED}∂")


def heading(text: str) -> str:
    """Keep a letter with what its hyphen joins it to: no line of a heading ends with the A of A-priori."""
    return re.sub(r"\b(\w-)(?=\w)", rf"\1{_JOINED}", text)


@functools.cache
def text(language: str, name: str) -> Any:
    """Return what a file of a language holds."""
    return json.loads((FOLDER / language / f"{name}.json").read_text(encoding="utf-8"))


@functools.cache
def _folders() -> tuple[str, ...]:
    """Return the codes of the languages, the one that is taken where none is asked for first."""
    folders = (path.name for path in FOLDER.iterdir() if path.is_dir())
    return tuple(sorted(folders, key=lambda name: (name != DEFAULT, name)))

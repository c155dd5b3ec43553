"""Read the texts of lessons in a language: `app/lessons/LANGUAGE/` has them, and the Lab is English.

Beside a file for each lesson (`bnnviz_app.learn.lessons`) a language has ``page.json``, the buttons and headings of the
Learn page, and ``glossary.json``, its terms (`bnnviz_app.learn.glossary`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bnnviz_app import LANGUAGE_COOKIE

FOLDER = Path(__file__).parents[1] / "lessons"
DEFAULT = "en"
# The files of a language that are no lessons.
PAGE, GLOSSARY = "page", "glossary"


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


@functools.cache
def text(language: str, name: str) -> Any:
    """Return what a file of a language holds."""
    return json.loads((FOLDER / language / f"{name}.json").read_text(encoding="utf-8"))


@functools.cache
def _folders() -> tuple[str, ...]:
    """Return the codes of the languages, the one that is taken where none is asked for first."""
    folders = (path.name for path in FOLDER.iterdir() if path.is_dir())
    return tuple(sorted(folders, key=lambda name: (name != DEFAULT, name)))

"""Explain the terms of the glossary where a text uses them.

The one source is `docs/glossary.md`. ``python -m bnnviz_app.learn.glossary`` in a checkout writes from it what is
shipped with the dashboard, `app/learn/glossary.json`; a test compares the two.
"""

from __future__ import annotations

import functools
import html
import json
import re
from pathlib import Path

SHIPPED = Path(__file__).with_suffix(".json")
_SOURCE = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"
_ROW = re.compile(r"^\| (?!word|---)(.+?) \| (.+?) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_SHORT = re.compile(r"^(.*) \((\w+)\)$")  # a term and its abbreviation
_PLURAL = "(?:s|es)?"


def read(text: str) -> dict[str, str]:
    """Return the terms of a glossary in Markdown with what each of them is, in plain words.

    Parameters
    ----------
    text : str
        A table with one row for each entry, which may have several terms: ``bound, envelope`` or ``draw (D)``.
    """
    found: dict[str, str] = {}
    for words, meaning in _ROW.findall(text):
        for word in words.split(", "):
            pair = _SHORT.match(word)
            found |= dict.fromkeys(pair.groups() if pair else (word,), _LINK.sub(r"\1", meaning))
    return found


@functools.cache
def load() -> dict[str, str]:
    """Return the shipped terms with their meanings."""
    return json.loads(SHIPPED.read_text(encoding="utf-8"))


def link(text: str) -> tuple[str, dict[str, str]]:
    """Return a plain text as HTML whose terms are buttons, the first time each, and what these terms mean."""
    used: dict[str, str] = {}
    parts: list[str] = []
    end = 0
    for match in _pattern().finditer(text):
        term = _names()[match[1] if match[1] in _names() else match[1].lower()]
        if term in used:
            continue
        used[term] = load()[term]
        parts += [html.escape(text[end : match.start()]), _button(match[0], term)]
        end = match.end()
    return "".join([*parts, html.escape(text[end:])]), used


def _button(word: str, term: str) -> str:
    return f"<button type='button' class='term' data-term='{html.escape(term)}'>{html.escape(word)}</button>"


@functools.cache
def _names() -> dict[str, str]:
    """Return each term by the name that it is found by: abbreviations as they are, others in small letters."""
    return {term if term.isupper() else term.lower(): term for term in load()}


@functools.cache
def _pattern() -> re.Pattern[str]:
    """Return what finds terms, the longest first; an abbreviation in small letters is another word."""
    names = sorted(_names(), key=len, reverse=True)
    words = "|".join(f"(?-i:{re.escape(name)})" if name.isupper() else re.escape(name) for name in names)
    return re.compile(rf"(?<![\w-])({words}){_PLURAL}(?![\w-])", re.IGNORECASE)


def main() -> None:
    """Write the shipped terms from the documentation's glossary."""
    terms = read(_SOURCE.read_text(encoding="utf-8"))
    SHIPPED.write_text(json.dumps(terms, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

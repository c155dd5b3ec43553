"""Explain the terms of the glossary where a text uses them.

`app/lessons/LANGUAGE/glossary.json` has the terms of a language, by their names in English: a ``term``, other ``forms``
in which texts have it, and its ``meaning``. The English ones come from `docs/glossary.md`:
``python -m bnnviz_app.learn.glossary`` in a checkout writes them, and a test compares the two.
"""

from __future__ import annotations

import functools
import html
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from bnnviz_app.learn import languages

SHIPPED = languages.FOLDER / languages.DEFAULT / f"{languages.GLOSSARY}.json"
_SOURCE = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"
_ROW = re.compile(r"^\| (?!term|---)(.+?) \| (.+?) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_SEE = re.compile(r"(?:: s|\. S)ee \[[^\]]+\]\([^)]+\)(?=\.$)")  # where else to read, which the page does not show
_SHORT = re.compile(r"^(.*) \((\w+)\)$")  # a term and its abbreviation
_OPENING, _CLOSING = re.compile(r"[^\w\s<>]*$"), re.compile(r"[^\w\s<>]*")  # punctuation before a term, and after it
_HISSING = ("x", "z", "ch", "sh")
#: What is never counted: names and abbreviations of methods, properties, and quantities that there is one of.
_UNCOUNTED = frozenset(
    ("AUROC", "Boomerang", "Bouncy Particle", "Bouncy Particle Sampler", "BPS", "calibration", "ECE", "ergodic", "FGSM")
    + ("FuncHMC", "HMC", "MAP", "mutual information", "NLL", "OOD", "out-of-distribution", "Pareto k-hat", "R-hat")
    + ("SGHMC", "SGLD", "Stein's identity", "thinning", "U", "variational inference", "weight ESS")
)


@dataclass(frozen=True)
class Term:
    """Hold a term of the glossary."""

    term: str
    forms: tuple[str, ...]
    meaning: str


def read(text: str) -> dict[str, Term]:
    """Return the terms of a glossary in Markdown with what each of them is, in plain words."""
    found: dict[str, Term] = {}
    for words, meaning in _ROW.findall(text):
        for word in words.split(", "):
            pair = _SHORT.match(word)
            for term in pair.groups() if pair else (word,):
                found[term] = Term(term, _plurals(term), _LINK.sub(r"\1", _SEE.sub("", meaning)))
    return found


@functools.cache
def load(language: str = languages.DEFAULT) -> dict[str, Term]:
    """Return the terms of a language, by their names in English."""
    entries = languages.text(language, languages.GLOSSARY)
    return {name: Term(entry["term"], tuple(entry["forms"]), entry["meaning"]) for name, entry in entries.items()}


@dataclass(frozen=True)
class FoundTerm:
    """Hold a term where a text has it."""

    opening: str
    word: str
    closing: str
    term: Term


def pieces(text: str, language: str = languages.DEFAULT) -> list[str | FoundTerm]:
    """Return a plain text in pieces: the terms, the first time each, and what stands between them."""
    used: set[str] = set()
    found: list[str | FoundTerm] = []
    end = 0
    for match in _pattern(language).finditer(text):
        word = match[0]
        term = _by_form(language)[word if word in _by_form(language) else word.lower()]
        if term.term in used:
            continue
        used.add(term.term)
        opening, closing = _OPENING.search(text[end : match.start()])[0], _CLOSING.match(text, match.end())[0]
        found += [text[end : match.start() - len(opening)], FoundTerm(opening, word, closing, term)]
        end = match.end() + len(closing)
    return [*found, text[end:]]


def link(text: str, language: str = languages.DEFAULT) -> tuple[str, dict[str, str]]:
    """Return a plain text as HTML whose terms are buttons, the first time each, and what these terms mean."""
    parts = pieces(text, language)
    used = {part.term.term: part.term.meaning for part in parts if isinstance(part, FoundTerm)}
    return "".join(html.escape(part) if isinstance(part, str) else _linked(part) for part in parts), used


def _plurals(term: str) -> tuple[str, ...]:
    """Return the plural that texts may have; none of what ends in s, which is a plural or a name already."""
    if term in _UNCOUNTED or term.endswith(("s", "S")):
        return ()
    if term.endswith("y") and term[-2] not in "aeiou":
        return (term[:-1] + "ies",)
    return (term + ("es" if term.endswith(_HISSING) else "s"),)


def _linked(found: FoundTerm) -> str:
    """Return a term with its punctuation in one line: a browser would break the line beside a button."""
    opening, name, word, closing = map(html.escape, (found.opening, found.term.term, found.word, found.closing))
    button = f"<button type='button' class='term' data-term='{name}'>{word}</button>"
    return f"<span class='glued'>{opening}{button}{closing}</span>" if opening or closing else button


def _is_short(term: Term) -> bool:
    """Tell whether a term is an abbreviation: in small letters it is another word."""
    return term.term.isupper()


@functools.cache
def _by_form(language: str) -> dict[str, Term]:
    """Return each term by the words that it is found by: abbreviations as they are, others in small letters."""
    found: dict[str, Term] = {}
    for term in load(language).values():
        for form in (term.term, *term.forms):
            found[form if _is_short(term) else form.lower()] = term
    return found


@functools.cache
def _pattern(language: str) -> re.Pattern[str]:
    """Return what finds terms, the longest first."""
    forms = _by_form(language)
    longest = sorted(forms, key=len, reverse=True)
    words = "|".join(f"(?-i:{re.escape(form)})" if _is_short(forms[form]) else re.escape(form) for form in longest)
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)


def main() -> None:
    """Write the English terms from the documentation's glossary."""
    terms = {name: asdict(term) for name, term in read(_SOURCE.read_text(encoding="utf-8")).items()}
    lines = (f" {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in terms.items())
    SHIPPED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

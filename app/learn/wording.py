"""Say in a language what views, tables and the bar, the header and the dialog of keys and marks say in English.

`app/lessons/LANGUAGE/words.json` has what they say by what it is in English, which has no such file, and `help.json`
beside it what the header and the dialog say. Neither views nor engine know of it: the page translates where it writes.
An entry is a word, a phrase, what stands between separators
(``·``, ``;`` or ``:``), or a sentence. In it ``{0}``, ``{1}`` … are its numbers from left to right, which are written
as the language does. A name in braces is any phrase, which is translated in its turn; a name of a coordinate stays.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bnnviz_app.learn import languages

FILES = ("words", "help")
# A number that is no part of a name, such as x1, or the dash of an unknown one. A point after it ends a sentence.
_NUMERAL = (
    r"(?<![\w.,])[-−+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+| × 10⁻?[⁰¹²³⁴-⁹]+|st|nd|rd|th)?(?!\w)"
    r"|(?<!\w)-?(?:nan|inf)(?!\w)|(?<![^\s(])–(?![^\s,;%)])"
)
ORDINAL = "{0}th"  # how the first, second, … of a row are written
_NUMBER = re.compile(_NUMERAL)
_PLACE = re.compile(r"{(\w+)}")
_PHRASE = r"(?:(?!\. |: |[·;]).)+?"
# Between what is translated by itself; the widest stretches first.
_SEPARATORS = tuple(map(re.compile, (r"(?<=[.!?])( )(?=[A-Z0-9])", "( · )", "(; )", "(: )")))
_WRITTEN = re.compile(r"(?<=>)[^<>]+(?=<)|(?<= title=\")[^\"]+(?=\")")  # of HTML
_WORD = re.compile(r"[^\W\d_]{2}")
_KEPT = 4096  # texts


class Said(NamedTuple):
    """Hold a text in a language, and what of its English has no translation."""

    text: str
    unknown: tuple[str, ...] = ()


class Wording:
    """Say English texts in a language; in English they stay as they are."""

    def __init__(self, language: str, texts: Mapping[str, str]) -> None:
        self._language, self._texts = language, texts
        # What has more words of its own fits better.
        named = sorted((each for each in texts if re.search(r"{[a-z]", each)), key=_own_length, reverse=True)
        self._patterns = [(_pattern(each), texts[each]) for each in named]
        self._said = functools.lru_cache(_KEPT)(self._translated)

    def __call__(self, text: str) -> str:
        """Return a text in the language; what has no translation stays, with its numbers as the language has them."""
        return self._said(text).text if self._texts else text

    def markup(self, written: str) -> str:
        """Return HTML with its words, and the hints under the pointer, in the language."""
        if not self._texts:
            return written
        return _WRITTEN.sub(lambda match: html.escape(self(html.unescape(match[0]))), written)

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the parts of a text that have no translation; none of English."""
        return self._said(text).unknown if self._texts else ()

    def _translated(self, text: str) -> Said:
        bare = text.strip()
        if bare != text:
            said = self._said(bare) if bare else Said("")
            return Said(text.replace(bare, said.text) if bare else text, said.unknown)
        if text in self._texts:
            return Said(self._texts[text])
        found = self._numbered(text)
        if found is not None:
            return found
        # A general pattern fits much; what leaves nothing in English is right.
        return min((*self._named(text), *self._parted(text), self._as_it_is(text)), key=_missing)

    def _numbered(self, text: str) -> Said | None:
        """Return the translation of what has no places but for numbers."""
        numbers = _NUMBER.findall(text)
        places = map("{{{}}}".format, range(len(numbers)))
        form = self._texts.get(_NUMBER.sub(lambda match: next(places), text))
        return None if form is None else Said(self._filled(form, dict(enumerate(numbers))))

    def _named(self, text: str) -> Iterator[Said]:
        """Return the translations of what has phrases in it."""
        for pattern, form in self._patterns:
            match = pattern.fullmatch(text)
            if match is not None:
                found = match.groupdict()
                said = {name: self._said(phrase) for name, phrase in found.items() if not name.startswith("_")}
                numbers = {name[1:]: number for name, number in found.items() if name.startswith("_")}
                whole = self._filled(form, numbers, {name: each.text for name, each in said.items()})
                yield Said(whole, _joined(said.values()))

    def _parted(self, text: str) -> Iterator[Said]:
        """Return the translation of parts that are said one after another."""
        for separator in _SEPARATORS:
            parts = separator.split(text)
            if len(parts) > 1:
                said = [self._said(part) if place % 2 == 0 else Said(part) for place, part in enumerate(parts)]
                yield Said("".join(each.text for each in said), _joined(said))
        if text.endswith(".") and len(text) > 1:
            said = self._said(text[:-1])
            yield Said(f"{said.text}.", said.unknown)

    def _as_it_is(self, text: str) -> Said:
        said = _NUMBER.sub(lambda match: self._number(match[0]), text)
        return Said(said, (text,) if _WORD.search(_NUMBER.sub("", text)) else ())

    def _filled(self, form: str, numbers: Mapping[int | str, str], phrases: Mapping[str, str] | None = None) -> str:
        """Return a text with its numbers, as the language writes them, and its phrases."""
        values = {str(place): self._number(each) for place, each in numbers.items()}
        values |= phrases or {}
        return _PLACE.sub(lambda match: values[match[1]], form)

    def _number(self, text: str) -> str:
        """Return a number as the language writes it."""
        if text[-1:].isalpha() and text[0].isdigit():
            return self._texts.get(ORDINAL, ORDINAL).format(text[:-2])
        return languages.number(text, self._language)


@functools.cache
def wording(language: str) -> Wording:
    """Return how a language says what views, tables and the bar say."""
    held: list[Path] = [languages.FOLDER / language / f"{name}.json" for name in FILES]
    texts = [languages.text(language, path.stem) for path in held if path.exists()]
    return Wording(language, {english: text for each in texts for english, text in each.items()})


def _own_length(text: str) -> int:
    return len(_PLACE.sub("", text))


def _pattern(text: str) -> re.Pattern[str]:
    """Return what matches a text with places; the groups of numbers begin with ``_``."""
    place = re.compile(r"\\{(\w+)\\}")
    form = place.sub(
        lambda match: f"(?P<_{match[1]}>{_NUMERAL})" if match[1].isdigit() else f"(?P<{match[1]}>{_PHRASE})",
        re.escape(text),
    )
    return re.compile(form)


def _missing(said: Said) -> int:
    return sum(map(len, said.unknown))


def _joined(said: Iterable[Said]) -> tuple[str, ...]:
    return tuple(each for one in said for each in one.unknown)

"""Specs that are a list of settings, as links in the manner of `link`: reading one never fails."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from bnnviz.errors import BnnvizError
from bnnviz.specs import url
from bnnviz.specs.demo import PlainSpec

SpecT = TypeVar("SpecT", bound=PlainSpec)


def to_query(spec: PlainSpec) -> dict[str, str]:
    """Return what differs from the defaults as a link's parameters."""
    return {name: url.write_value(value) for name, value in differing(spec).items()}


def differing(spec: PlainSpec) -> dict[str, Any]:
    """Return the settings that are not the defaults."""
    defaults = {setting["name"]: setting["default"] for setting in spec.described()}
    return {name: value for name, value in spec.checked().settings.items() if value != defaults[name]}


def shareable(spec: PlainSpec) -> str:
    """Return why it cannot be shared: it always can, an empty text."""
    return ""


def from_query(given: Mapping[str, str | bytes | Sequence[str | bytes]], opening: SpecT) -> tuple[SpecT, list[str]]:
    """Read a link's parameters; whatever they are, there is something to run.

    Returns
    -------
    spec : PlainSpec
        Of the class of ``opening``.
    sentences : list of str
        One for each thing that was left out.
    """
    taken, sentences = opening.checked(), []
    for name, value in given.items():
        if name in url.PAGE or name.startswith("bokeh-"):
            continue
        text = _text(value)
        try:
            taken = taken.replace(settings=taken.settings | {name: _value(text)}).checked()
        except BnnvizError as error:
            sentences.append(f"{error.sentence[:200]} It was left out of the link.")
    return taken, sentences[: url.MOST_SENTENCES]


def _value(text: str) -> Any:
    """Return what a text stands for: a number, a switch, or itself."""
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return text


def _text(value: str | bytes | Sequence[str | bytes]) -> str:
    first = value if isinstance(value, str | bytes) else next(iter(value), "")
    return (first.decode(errors="replace") if isinstance(first, bytes) else first).strip()[:100]

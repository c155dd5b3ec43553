"""Name remedies in the words of whoever reads a sentence.

A sentence has an option as Python takes it, between backticks and in parentheses behind its words: "make more draws
(`draws=4000`)". The command line writes its own option there, and a page, where a control is at hand, leaves the words
alone.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from typing import Any

_OPTION = re.compile(r"`([^`]+)`")
_IN_PARENTHESES = re.compile(r" \((?:[^`()]*`[^`]+`)+[^`()]*\)")


def option(**values: Any) -> str:
    """Return options as Python takes them, between backticks.

    Examples
    --------
    >>> from bnnviz import remedies
    >>> remedies.option(draws=4000, settings={"wanted": 0.95})
    '`draws=4000, settings={"wanted": 0.95}`'
    """
    return f"`{', '.join(f'{name}={_literal(value)}' for name, value in values.items())}`"


def rewritten(sentence: str, write: Callable[[dict[str, Any]], str]) -> str:
    """Return a sentence in which options are written otherwise."""

    def replaced(found: re.Match[str]) -> str:
        values = _values(found[1])
        return found[0] if values is None else write(values)

    return _OPTION.sub(replaced, sentence)


def without_options(sentence: str) -> str:
    """Return a sentence without the parentheses that name options."""
    return _IN_PARENTHESES.sub(lambda found: found[0] if _foreign(found[0]) else "", sentence)


def _foreign(text: str) -> bool:
    """Return whether something stands between backticks that is no option."""
    return any(_values(each) is None for each in _OPTION.findall(text))


def _values(text: str) -> dict[str, Any] | None:
    """Return the values that a text gives to options; None where it is no text of options."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not call.keywords:
            return None
        return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError):
        return None


def _literal(value: Any) -> str:
    """Write a value as Python does, texts in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)

"""Write texts of lessons, Markdown with formulas, as HTML with MathML: pages need no script for either."""

from __future__ import annotations

import functools
import html
import re
from typing import Any

from bnnviz import optional

_LINK = re.compile(r"(term|claim):([\w\-' ]+)")


def render(text: str) -> str:
    """Return a text as HTML."""
    return _markdown().render(_bracketed(text)) if text else ""


def inline(text: str) -> str:
    """Return one line of text as HTML."""
    return _markdown().renderInline(_bracketed(text))


def plain(text: str) -> str:
    """Return a text without the marks of links and formulas."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("$", "").strip()


def linked(text: str, kind: str) -> list[str]:
    """Return the names of the terms or claims that a text links."""
    return [name for found, name in _LINK.findall(text) if found == kind]


def _bracketed(text: str) -> str:
    """Return a text whose targets of links may have spaces."""
    return re.sub(r"\]\(((?:term|claim):[^)]+)\)", r"](<\1>)", text)


@functools.cache
def _markdown() -> Any:
    made = optional.require("markdown_it", "Lessons need").MarkdownIt("commonmark").enable("table")
    plugin = optional.require("mdit_py_plugins.dollarmath", "Lessons need")
    made.use(plugin.dollarmath_plugin, renderer=_formula, double_inline=True)
    made.validateLink = lambda url: True
    made.renderer.rules["link_open"] = _open
    made.renderer.rules["link_close"] = _close
    return made


def _formula(text: str, options: dict[str, Any]) -> str:
    """Return a formula as MathML."""
    convert = optional.require("docutils.utils.math.latex2mathml", "Formulas need").tex2mathml
    return convert(text.strip(), as_block=bool(options.get("display_mode")))


def _open(tokens: Any, number: int, options: Any, env: Any) -> str:
    target = tokens[number].attrGet("href").replace("%20", " ").replace("%27", "'")
    found = _LINK.fullmatch(target)
    if found is None:
        return f'<a href="{html.escape(target)}">'
    kind, name = found.groups()
    tag = {"term": "span", "claim": "button"}[kind]
    env.setdefault("open", []).append(tag)
    return f'<{tag} class="{kind}" data-{kind}="{html.escape(name)}"' + (' type="button">' if kind == "claim" else ">")


def _close(tokens: Any, number: int, options: Any, env: Any) -> str:
    return f"</{env['open'].pop()}>" if env.get("open") else "</a>"

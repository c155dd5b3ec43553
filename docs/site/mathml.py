"""Write formulas as MathML, which browsers draw by themselves: pages load no script for them from anywhere."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)


def _write(translator: Any, node: nodes.Element, as_block: bool) -> None:
    text = node.astext().strip()
    try:
        formula = tex2mathml(_known(text), as_block=as_block)
    except (MathError, SyntaxError) as error:
        _log.warning("A formula cannot be drawn: %s (%s)", text, error, location=node)
        formula = f"<code>{translator.encode(text)}</code>"
    translator.body.append(f'<div class="formula" tabindex="0">{formula}</div>' if as_block else formula)
    raise nodes.SkipNode


def _known(text: str) -> str:
    """Return a formula without what docutils does not know and browsers do by themselves."""
    return re.sub(r"\\textstyle\s*", "", text).replace(r"\dots", r"\ldots")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the writer of formulas to Sphinx."""
    app.add_html_math_renderer(
        "mathml",
        (lambda translator, node: _write(translator, node, False), None),
        (lambda translator, node: _write(translator, node, True), None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}

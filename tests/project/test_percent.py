"""A share is written in one way: a number, a space and the sign."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def unspaced(tree: ast.AST) -> Iterator[int]:
    """Give the lines of f-strings with a format such as {share:.0%}, which writes the sign right after the number."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            formats = [part.format_spec for part in node.values if isinstance(part, ast.FormattedValue)]
            if any(ast.unparse(spec).rstrip("'\"").endswith("%") for spec in formats if spec is not None):
                yield node.lineno


def test_a_share_has_a_space_before_its_sign() -> None:
    modules = [path for folder in ("bnnviz", "app") for path in (ROOT / folder).rglob("*.py")]
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in modules
        for line in unspaced(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert len(modules) > 300 and not found

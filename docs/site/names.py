"""Link names in backticks in docstrings to their entries, and show figures as pictures only."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from bnnviz import RENAMED

#: Python's representation of a figure, which its picture replaces.
_PRINTED = (":Overlay", ":Layout", ":Image")


def _resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Element) -> nodes.Node | None:
    """Return a link to the only entry of this name, or the name itself."""
    if node.get("reftype") != "obj":
        return None
    domain = env.get_domain("py")
    last = str(node["reftarget"]).rpartition(".")[2]
    last = RENAMED.get(last, last)
    found = [name for name in domain.objects if name.rpartition(".")[2] == last]
    whole = [name for name in found if name == node["reftarget"]]
    (name,) = whole or (found if len(found) == 1 else [None])
    if name is None:
        return shown
    entry = domain.objects[name]
    return _reference(app, node["refdoc"], entry.docname, entry.node_id, name, shown)


def _reference(app: Sphinx, at: str, page: str, place: str, title: str, shown: nodes.Element) -> nodes.Node:
    link = nodes.reference("", "", internal=True, reftitle=title)
    link["refuri"] = f"{app.builder.get_relative_uri(at, page)}#{place}"
    link.append(shown)
    return link


def _leave_out_printed(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [line for line in lines if not line.strip().startswith(_PRINTED)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Add both to Sphinx."""
    app.connect("autodoc-process-docstring", _leave_out_printed)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

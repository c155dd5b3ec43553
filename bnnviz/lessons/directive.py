"""Show lessons on pages made by Sphinx: add ``bnnviz.lessons.directive`` to ``extensions``.

``{lesson} thinning 3`` (MyST) or ``.. lesson:: thinning 3`` (reStructuredText) opens the third step in a frame.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from bnnviz.errors import BnnvizError
from bnnviz.lessons import content, site
from bnnviz.version import VERSION

_FOLDER = "_static/lessons"


class LessonDirective(SphinxDirective):
    """Show the page of a lesson, with its name and optionally the number of a step."""

    required_arguments, optional_arguments = 1, 1

    def run(self) -> list[nodes.Node]:
        """Return the frame."""
        name, *step = self.arguments
        try:
            title = html.escape(content.find(name).title)
        except BnnvizError as error:
            raise self.error(error.message.text) from None
        source = "../" * self.env.docname.count("/") + f"{_FOLDER}/{name}.html#{step[0] if step else 1}"
        frame = f'<iframe src="{source}" title="{title}" loading="lazy"></iframe>'
        link = f'<figcaption><a href="{source}">Open in a separate page</a></figcaption>'
        return [nodes.raw("", f'<figure class="lesson">{frame}{link}</figure>', format="html")]


def _write(app: Sphinx, error: Exception | None) -> None:
    """Write the files of lessons next to the pages."""
    if error is None and app.builder.format == "html":
        site.write(Path(app.outdir) / _FOLDER)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive to Sphinx."""
    app.add_directive("lesson", LessonDirective)
    app.connect("build-finished", _write)
    return {"version": VERSION, "parallel_read_safe": True, "parallel_write_safe": True}

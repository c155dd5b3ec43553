"""One renderer writes the Papers page and both documents."""

from __future__ import annotations

from bnnviz.experiments import find, render
from bnnviz.experiments.record import records
from bnnviz.experiments.table import results


def test_the_documents_are_up_to_date() -> None:
    """Write them with ``python -m bnnviz.experiments.render``."""
    assert (render.DOCS / "papers.md").read_text(encoding="utf-8") == render.papers()
    text = (render.DOCS / "corrigendum.md").read_text(encoding="utf-8")
    assert render.filled(text) == text


def test_page_and_document_have_the_same_cells() -> None:
    found = results(find("pdmp-table1"), records("pdmp-table1")[0][0])
    markdown, html = render.markdown(*render.grid(found)), render.html(*render.grid(found), {"MAP": "<a>open</a>"})
    for one in found:
        assert one.ours is None or (render.cell(one) in markdown and render.cell(one) in html)
    assert "MAP<a>open</a></td>" in html and "class='differ'" in html
    assert render.html(["case"], [["<b>"]]).count("<b>") == 0

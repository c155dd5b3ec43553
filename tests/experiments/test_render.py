"""One renderer writes the Papers page and both documents."""

from __future__ import annotations

import pytest

from bnnviz.experiments import find, render
from bnnviz.experiments.record import records
from bnnviz.experiments.table import Result, results


def test_the_documents_are_up_to_date() -> None:
    """Write them with ``python -m bnnviz.experiments.render``."""
    assert (render.DOCS / "papers.md").read_text(encoding="utf-8") == render.papers()
    text = (render.DOCS / "corrigendum.md").read_text(encoding="utf-8")
    assert render.filled(text) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (None, None, "–"),
        (2.67143, 0.01577, "2.671 ± 0.016"),
        (30.003, 25.441, "30 ± 25"),
        (-0.90344, 0.0088643, "−0.9034 ± 0.0089"),
        (9.9032e-6, None, "9.903e−06"),
        (1.5e-5, 2e-7, "1.5e−05 ± 2e−07"),
    ],
)
def test_numbers_have_the_digits_of_their_errors(value: float | None, error: float | None, text: str) -> None:
    assert render.number(value, error) == text


def test_a_cell_has_both_values_and_z() -> None:
    ours = Result("BPS", "rmse", 2.6714, 0.0158, 5, paper=2.76, paper_error=0.0493, paper_n=5)
    assert render.cell(ours) == "2.671 ± 0.016 = 2.76 ± 0.049 (z −1.7)"
    assert render.cell(Result("BPS", "rmse", 2.6714, 0.0158, 5)) == "2.671 ± 0.016"
    assert render.cell(Result("BPS", "rmse", paper=2.76, paper_error=0.05, paper_n=5)) == "– ? 2.76 ± 0.05"


def test_page_and_document_have_the_same_cells() -> None:
    found = results(find("pdmp-table1"), records("pdmp-table1")[0][0])
    markdown, html = render.markdown(*render.grid(found)), render.html(*render.grid(found), {"MAP": "<a>open</a>"})
    for one in found:
        assert one.ours is None or (render.cell(one) in markdown and render.cell(one) in html)
    assert "MAP<a>open</a></td>" in html and "class='differ'" in html
    assert render.html(["case"], [["<b>"]]).count("<b>") == 0

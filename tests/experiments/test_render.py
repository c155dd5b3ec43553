"""Both documents hold the results of the records."""

from __future__ import annotations

from bnnviz.experiments import render


def test_the_documents_are_up_to_date() -> None:
    """Write them with ``python -m bnnviz.experiments.render``."""
    assert (render.DOCS / "papers.md").read_text(encoding="utf-8") == render.papers()
    text = (render.DOCS / "corrigendum.md").read_text(encoding="utf-8")
    assert render.filled(text) == text

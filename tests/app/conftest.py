"""Share a document for pages that are built without a server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future

import panel as pn
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from bnnviz_app.session import Session


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Document]:
    """Give pages a document and a backend that never comes."""
    monkeypatch.setattr(Session, "open", lambda self: None)
    monkeypatch.setitem(pn.state.cache, "backend", Future())
    with set_curdoc(Document()) as doc:
        yield doc

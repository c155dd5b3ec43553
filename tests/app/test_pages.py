"""The pages of the dashboard without a browser: they are built, turn dark and grow, and say what they cannot take."""

from __future__ import annotations

import html
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import panel as pn
import panel_material_ui as pmui
import param
import pytest
from bokeh.document import Document
from bokeh.models import ImportedStyleSheet

from bnnviz_app import bokeh_fixes
from bnnviz_app import page as document
from bnnviz_app.pages import PAGES
from bnnviz_app.pages.base import RunPage

#: What a library will no longer take is not waited for.
pytestmark = pytest.mark.filterwarnings("error::PendingDeprecationWarning", "error::DeprecationWarning")


@pytest.fixture(autouse=True)
def home(no_server: Document, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_turns_and_grows_and_its_address_says_so(name: str, dark: bool) -> None:
    page = PAGES[name].build(dark)
    assert f"page={name}" in page.address.query
    assert ("theme=dark" in page.address.query) == dark
    assert PAGES[name].purpose.endswith(".") and html.escape(PAGES[name].purpose) in page.guide.words
    page.theme(not dark)
    assert ("theme=dark" in page.address.query) != dark
    received: list[bool] = []
    page.on_large = lambda: received.append(page.large)
    page._project()
    assert "projector=1" in page.address.query
    page._project()
    assert "projector" not in page.address.query and received == [True, False]
    if isinstance(page, RunPage):
        assert page.settings is not None
        assert {"caption", "status"} <= page.requested()
    page.close()


def test_a_page_has_its_style_sheets_from_this_server_however_it_is_built() -> None:
    document.take_own_styles(pn.state.curdoc)
    root = pn.Column(pn.pane.HTML("words"), pmui.Button(label="Go")).get_root(pn.state.curdoc)
    urls = [sheet.url for sheet in root.select({"type": ImportedStyleSheet})]
    assert urls and all(url.startswith("static/") for url in urls)


class Part(param.Parameterized):
    at = param.Integer(default=0, readonly=True)


def test_a_thread_does_not_end_what_another_may_set() -> None:
    bokeh_fixes.apply()
    begun, ended = Event(), Event()

    def set_late() -> None:
        begun.wait()
        with pn.util.edit_readonly(part := Part()):
            ended.wait()
            part.at = 1

    with ThreadPoolExecutor(1) as thread:
        late = thread.submit(set_late)
        with pn.util.edit_readonly(Part()):
            begun.set()
            time.sleep(0.1)
        ended.set()
        late.result()

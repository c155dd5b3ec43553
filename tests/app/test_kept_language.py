"""The language that a browser keeps: pages that have several open in it, unless their address names another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import panel as pn
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from bnnviz_app import LANGUAGE_COOKIE, THEME_COOKIE
from bnnviz_app.access import roles
from bnnviz_app.access.gate import Gate
from bnnviz_app.access.roles import GATE
from bnnviz_app.access.secret import Secret
from bnnviz_app.learn import languages
from bnnviz_app.pages import OF_CLASS, PAGES
from bnnviz_app.pages.ask import AskPage
from bnnviz_app.prepared import Shelf, _FollowedLook
from bnnviz_app.session import Session

SPOKEN = ("learn", "notes", "follow", "ask")  # pages with texts in several languages
PAGES_TOO = PAGES | OF_CLASS
#: What a library will no longer take is not waited for.
pytestmark = pytest.mark.filterwarnings("error::PendingDeprecationWarning", "error::DeprecationWarning")

Opening = Callable[[str, str, str], Any]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Opening:
    """Return a function that opens a page of an address for a browser that keeps a language, as a server does."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    monkeypatch.setattr(Session, "open", lambda self: None)
    monkeypatch.setattr(AskPage, "open", lambda self: None)
    monkeypatch.setattr(roles, "present", lambda: roles.OWNER)
    monkeypatch.setitem(pn.state.cache, "backend", Future())
    gate = Gate.at("127.0.0.1", 5006, secret=Secret("the-teachers-token"), students=Secret("the-students-token"))
    monkeypatch.setitem(pn.state.cache, GATE, gate)

    def opened(name: str, kept: str, asked: str) -> Any:
        doc = Document()
        arguments = {"page": [name.encode()]} | ({"lang": [asked.encode()]} if asked else {})
        request = SimpleNamespace(arguments=arguments, cookies={LANGUAGE_COOKIE: kept} if kept else {}, headers={})
        doc._session_context = lambda: SimpleNamespace(request=request, session=None, server_context=None)
        with set_curdoc(doc):
            return PAGES_TOO[name].build(False)

    return opened


@pytest.mark.parametrize("name", SPOKEN)
@pytest.mark.parametrize(
    ("kept", "asked", "spoken"),
    [("de", "", "de"), ("de", "en", "en"), ("en", "de", "de"), ("tlh", "", "en"), ("", "", "en")],
)
def test_a_page_opens_in_the_language_of_its_address_or_else_of_its_browser(
    name: str, kept: str, asked: str, spoken: str, opened: Opening
) -> None:
    page = opened(name, kept, asked)
    assert page.language == spoken
    page.close()


@pytest.mark.parametrize(
    ("kept", "asked", "spoken"), [("de", "", "de"), ("de", "en", "en"), ("tlh", "", ""), ("", "", "")]
)
def test_of_the_pages_that_a_class_looks_at_together_a_browser_has_the_one_in_its_language(
    kept: str, asked: str, spoken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(SimpleNamespace(), SimpleNamespace(), "/app")
    found: list[tuple[bool, str]] = []

    async def follow(look: _FollowedLook) -> None:
        found.append((look.theme == "dark", look.lang))

    monkeypatch.setattr(shelf, "_follow", follow)
    cookies = {LANGUAGE_COOKIE: kept, THEME_COOKIE: "dark"}
    arguments = {"page": [b"follow"]} | ({"lang": [asked.encode()]} if asked else {})
    handler = SimpleNamespace(
        request=SimpleNamespace(arguments=arguments), get_cookie=lambda name, default: cookies.get(name) or default
    )
    asyncio.run(shelf.session(handler))
    assert found == [(True, spoken)]


@pytest.mark.parametrize("cookie", ["", "de", "DE-at", "../de", "tlh", "x" * 5000])
def test_what_a_cookie_says_is_a_language_with_texts_or_nothing(cookie: str) -> None:
    assert languages.asked({}, {LANGUAGE_COOKIE: cookie}) in ("", *languages.names())

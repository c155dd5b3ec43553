"""Build the page that the address asks for, with its header, for one session."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import panel as pn
import panel_material_ui as pmui
from bokeh.application.application import SessionContext
from bokeh.application.handlers import Handler
from bokeh.document import Document
from bokeh.events import ConnectionLost, DocumentReady
from bokeh.models import CustomJS
from panel.io.resources import LOCAL_DIST
from panel.util import edit_readonly

from bnnviz.figures.live.view import DOCUMENT_THEME
from bnnviz_app import THEME_COOKIE, bokeh_fixes, kept_runs
from bnnviz_app.access import roles
from bnnviz_app.classroom.bar import class_bar
from bnnviz_app.components.run.run_chip import LOOK_MS, RunChip
from bnnviz_app.components.widgets import HEADER, Text, WideColumn
from bnnviz_app.page_thread import PAGE_TURN, in_page_thread
from bnnviz_app.pages import FIRST, OF_CLASS, PAGES, PageEntry
from bnnviz_app.theme import HEADER_MENU, is_dark, material, styles

_STYLES = styles(__file__)
_FOLDER = Path(__file__).parent
_FILES = ("lost.js", "selects.js", "dialogs.js", "drops.js", "figures.js", "page.html")
_TEXTS = {name: (_FOLDER / name).read_text(encoding="utf-8") for name in _FILES}
# A browser that has chosen no theme has that of its system, until it is closed.
_PREFERENCE = f"""
{{
  const chosen = () => document.cookie.includes("{THEME_COOKIE}=")
  const dark = matchMedia("(prefers-color-scheme: dark)").matches
  if (dark && !chosen() && !new URLSearchParams(location.search).has("theme")) {{
    document.cookie = "{THEME_COOKIE}=dark; path=/; SameSite=Lax"
    if (chosen()) {{ location.reload() }}
  }}
}}
"""
# The next page, and this one when it comes again, open in the same theme.
_KEEP_THEME = f"""
const theme = cb_obj.dark_theme ? "dark" : "default"
document.cookie = `{THEME_COOKIE}=${{theme}}; path=/; max-age=31536000; SameSite=Lax`
"""

_TEMPLATE = _TEXTS["page.html"].replace("PREFERENCE", _PREFERENCE).replace("BOKEH_FIXES", bokeh_fixes.SCRIPT)
for _name in ("selects", "dialogs", "drops", "figures"):
    _TEMPLATE = _TEMPLATE.replace(_name.upper(), _TEXTS[f"{_name}.js"])

_SETTINGS = "settings"  # the drawer
_AGAIN_MS = 5000  # until a page that had to wait is loaded again


def _asked() -> str:
    """Return the name of the page in the address, or of the first page."""
    asked = pn.state.session_args.get("page", [FIRST.encode()])[0].decode(errors="replace")
    return asked if asked in _offered() else FIRST


def _offered() -> dict[str, PageEntry]:
    """Return the pages that the role of the session may open."""
    keeps = roles.present().keeps
    pages = PAGES | (OF_CLASS if roles.is_class() else {})
    return {name: entry for name, entry in pages.items() if keeps or not entry.keeps}


def _unbind(frame: pmui.Page) -> None:
    """Take the page off Panel's count of callbacks.

    Otherwise the page would send two patches for each acknowledged frame, and the watcher of the count would keep the
    pages of all closed tabs.
    """
    with edit_readonly(frame):
        frame.busy = False
    for watcher in list(pn.state.param.watchers["busy"]["value"]):
        if getattr(getattr(watcher.fn, "__self__", None), "self", None) is frame:
            pn.state.param.unwatch(watcher)


def _menu(page: Any) -> pmui.MenuButton:
    """Return the menu: links to all pages, which keep how this page looks, and what the page offers."""
    menu = pmui.MenuButton(label="Menu", size="small", variant="text", theme_config=HEADER_MENU, **HEADER)
    menu.on_click(lambda item: page.menu()[item["label"]]() if "href" not in item else None)

    def fill() -> None:
        pages = {
            entry.title: f"?{urlencode({'page': entry.name, **page.carried})}" for entry in _offered().values()
        } | {"Learn": "lessons/"}
        links = [{"label": title, "href": address, "target": "_self"} for title, address in pages.items()]
        menu.items = [*links, {"label": "---"}, *({"label": label} for label in page.menu())]

    page.on_menu = fill
    fill()
    return menu


def _drawer(entry: PageEntry, page: Any, frame: pmui.Page) -> None:
    """Let a page open its drawer of settings, which is then sent to the browser."""
    drawer = WideColumn()
    words = f"<h2>{html.escape(entry.title)}</h2><p>{html.escape(entry.purpose)}</p>"

    def fill(opened: bool) -> None:
        if opened and not drawer:
            look = {"stylesheets": [_STYLES["purpose"]], "css_classes": ["purpose"], "margin": (2, 14, 6, 14)}
            drawer.extend([Text(words, **look), page.settings])
        page.session.note_opened(_SETTINGS, opened)

    frame.sidebar = [drawer]
    frame.param.watch(lambda event: fill(event.new), "sidebar_open")
    frame.sidebar_open = _SETTINGS in page.session.opened
    page.on_settings = lambda: frame.param.update(sidebar_open=not frame.sidebar_open)
    page.on_close = lambda: frame.param.update(sidebar_open=False)


def take_own_styles(document: Document) -> None:
    """Make a document take its style sheets from this server.

    Panel does so for requested pages. The page of a slow browser expires and is built again for its socket, without
    this step.
    """
    document.template_variables["dist_url"] = LOCAL_DIST


def _wait(sentence: str) -> None:
    """Show why a page does not open yet, and load it again after a while."""
    Text(f"<p role='alert'>{html.escape(sentence)}</p>").servable()
    again = CustomJS(code=f"setTimeout(() => location.reload(), {_AGAIN_MS})")
    pn.state.curdoc.js_on_event(DocumentReady, again)


def open_page() -> None:
    """Build the page of the current session into its document."""
    pn.extension()
    take_own_styles(pn.state.curdoc)
    pn.state.curdoc.theme = DOCUMENT_THEME
    pn.state.curdoc.js_on_event(ConnectionLost, CustomJS(code=_TEXTS["lost.js"]))
    waits = roles.OPEN_PAGES.refusal(pn.state.curdoc.session_context)
    if waits is not None:
        _wait(waits)
        return
    name = _asked()
    dark = is_dark(pn.state.session_args, pn.state.cookies)
    pn.config.theme = "dark" if dark else "default"
    entry = _offered()[name]
    page = entry.build(dark)
    chip = RunChip(kept_runs.runs(), kept_runs.browser())
    pn.state.add_periodic_callback(chip.look, LOOK_MS)
    bar = class_bar()
    if bar is not None:
        page.main[0].insert(0, bar)
    look = {"margin": (0, 0, 0, 4), "align": "center", "stylesheets": [_STYLES["brand"]]}
    brand = Text(f"<h1><b>bnnviz</b> {html.escape(entry.title)}</h1>", **look)
    frame = pmui.Page(
        title="",
        template=_TEMPLATE,
        meta_name="bnnviz",
        meta_title=f"bnnviz: {entry.title}",
        header=[brand, chip.root, _menu(page)],
        theme_toggle=False,
        sidebar_width=300,
        sidebar_open=page.settings is None,  # closing a drawer that a page lacks would shift the page
        sidebar_resizable=False,  # a mouse alone could do it
        main=page.main,
        theme_config=material(page.large),
        busy_indicator=None,
        sx={"& .main": {"minWidth": 0}},  # otherwise wide content would make it wider than a phone
        dark_theme=dark,
    )
    _unbind(frame)
    if page.settings is not None:
        _drawer(entry, page, frame)
    page.on_large = lambda: frame.param.update(theme_config=material(page.large))
    page.on_theme = lambda: frame.param.update(dark_theme=not frame.dark_theme)
    frame.param.watch(lambda event: page.theme(event.new), "dark_theme")
    frame.jscallback(dark_theme=_KEEP_THEME)
    pn.state.on_session_destroyed(lambda context: page.close())
    # The page reads the address itself: Panel fails on some that people may type, such as one with two question marks.
    frame.servable(location=False)


class BuildInThread(Handler):
    """Build pages one after another, while the frames of others go out."""

    async def on_session_created(self, session_context: SessionContext) -> None:
        """Build the page of a new session; Bokeh waits for it, and then runs `main.py`."""
        async with PAGE_TURN:
            await in_page_thread(session_context._document, open_page)

    def modify_document(self, doc: Document) -> None:
        """Change nothing more."""

"""Serve the lessons, which are static files, with the dashboard, including the bar of a class."""

from __future__ import annotations

import asyncio
import re

from bokeh.server.tornado import BokehTornado
from tornado.web import HTTPError, RequestHandler

from bnnviz.lessons import site
from bnnviz_app.classroom.bar import class_script

FOLDER = "lessons"  # in the address
_CLASS = "class.js"
_TYPES = {"html": "text/html; charset=UTF-8", "js": "text/javascript; charset=UTF-8"}


def serve_lessons(application: BokehTornado, route: str, in_class: bool) -> None:
    """Add the routes of lessons, whose pages link to the dashboard, to a server."""
    path = f"{re.escape(application.prefix)}(?:{re.escape(route)})?/{FOLDER}(?:/(.*))?"
    head = f'<html data-dashboard="..{route}"'
    script = f'<script type="module" src="{_CLASS}"></script></body>' if in_class else "</body>"
    application.add_handlers(".*", [(path, _LessonFile, {"head": head, "script": script})])


class _LessonFile(RequestHandler):
    """Serve one file; files that take time are built in a thread."""

    def initialize(self, head: str, script: str) -> None:
        self._head, self._script = head, script

    def set_default_headers(self) -> None:
        self.set_header("Cache-Control", "no-cache")

    async def get(self, name: str | None) -> None:
        """Return a file, or the list of lessons at the address of the folder."""
        if name is None:
            self.redirect(f"{self.request.path}/", permanent=True)
            return
        name = name or site.INDEX
        if name == _CLASS:
            content = class_script().encode()
        else:
            try:
                content = await asyncio.to_thread(site.file, name)
            except KeyError:
                raise HTTPError(404) from None
        ending = name.rpartition(".")[2]
        if ending == "html":
            content = content.replace(b"<html", self._head.encode(), 1).replace(b"</body>", self._script.encode(), 1)
        self.set_header("Content-Type", _TYPES[ending])
        self.finish(content)

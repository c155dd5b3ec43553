"""Offer in the header of every page the run of this browser that no page shows."""

from __future__ import annotations

import html
from urllib.parse import urlencode

import panel as pn

from bnnviz_app.components.widgets import HEADER, Text, icon_button, set_changed
from bnnviz_app.kept_runs import KeptRun, KeptRuns

LOOK_MS = 1500
_STYLE = "display: flex; max-width: 24vw; white-space: nowrap; color: #fff; font-size: 13px"


class RunChip:
    """Show the run that was left last, with a link that opens it and a button that ends it."""

    def __init__(self, runs: KeptRuns, browser: str) -> None:
        self._runs, self._browser = runs, browser
        self._run: KeptRun | None = None
        self._text = Text(sizing_mode=None, margin=(0, 6), align="center")
        end = icon_button("close", "End this run", self._end, **HEADER)
        self.root = pn.Row(self._text, end, align="center", visible=False, css_classes=["kept-run"])
        self.look()

    def look(self) -> None:
        """Show the current runs."""
        self._run = self._runs.last(self._browser)
        set_changed(self.root, visible=self._run is not None)
        if self._run is not None:
            set_changed(self._text, object=_link(self._run))

    async def _end(self) -> None:
        run = self._run
        if run is not None:
            await self._runs.end(run)
            self.look()


def _link(run: KeptRun) -> str:
    draws = f"<span style='flex: none'>, {run.draws:,} draws</span>" if run.draws else ""
    query = html.escape(urlencode({"page": run.page, "run": run.run_id}))
    title = html.escape(run.title)
    name = f"<span title='{title}' style='overflow: hidden; text-overflow: ellipsis'>{title}</span>"
    return f"<a href='?{query}' title='Open this run' style='{_STYLE}'>{name}{draws}</a>"

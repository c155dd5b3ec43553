"""Draw the chosen recordings: one with figures whose draws are brushed together, several over each other."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import panel as pn

from bnnviz.engine.recording import reader
from bnnviz.engine.recording.export import ExportedDraws
from bnnviz_app.components.still import still

_FUNCTIONS = "bnnviz.engine.recording.drawn_functions"
_MOST_BRUSHED = 4000  # draws: each brush sends them to the browser again
_WIDTH, _HEIGHT, _LARGE = 560, 300, 1.25


class RecordingFigures:
    """The figures of the chosen recordings."""

    def __init__(self) -> None:
        self.root = pn.Column(sizing_mode="stretch_width", margin=0)
        self._process: asyncio.subprocess.Process | None = None
        self._known: tuple[str, int, dict[str, np.ndarray] | None] | None = None  # of the last recording
        self._place: pn.Column | None = None  # of its predictions
        self._drawing: dict[str, Any] = {}

    def clear(self) -> None:
        """Show nothing."""
        self.root[:] = []
        self._place = None

    def close(self) -> None:
        """Stop the computation."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()

    def show(self, kept: Mapping[str, ExportedDraws], label: str, against: str | None, dark: bool, large: bool) -> None:
        """Draw recordings."""
        from bnnviz import plots
        from bnnviz.figures import sources
        from bnnviz.figures.still.brushing import brush

        plots.use("bokeh")
        found = [sources.exported(name, each) for name, each in kept.items()]
        weighted = any(each.log_weights is not None for each in found)
        shown = [still(plots.density(found, label, dark=dark), large)]
        if not weighted:
            shown.append(still(plots.acf(found, label, dark=dark), large))
        if len(found) > 1:
            self._place = None
            self.root[:] = [shown[0], still(plots.trace(found, label, dark=dark), large), *shown[1:]]
            return
        (one,) = found
        self._drawing = {"dark": dark, "large": large, "link": brush(dark)}
        few = one.thinned(_MOST_BRUSHED)
        figures = [] if against is None else [plots.pair(few, [label, against], dark=dark)]
        figures.append(plots.trace(few, label, points=True, dark=dark))
        self._place = pn.Column(sizing_mode="stretch_width", margin=0)
        self.root[:] = [*map(self._brushed, figures), self._place, *shown]
        self._predict(one.name, one.shape[1], few.every)

    def _brushed(self, figure: Any) -> pn.pane.HoloViews:
        """Return a pane with a figure that is linked with the others."""
        from bnnviz.figures.still.brushing import link

        scale = _LARGE if self._drawing["large"] else 1.0
        made = link(figure, self._drawing["link"], width=_WIDTH, height=_HEIGHT, fontscale=scale)
        return pn.pane.HoloViews(made, backend="bokeh", margin=(2, 0, 6, 0), linked_axes=False)

    # ---- predictions --------------------------------------------------------------------------------------

    def _predict(self, name: str, draws: int, every: int) -> None:
        """Show the predictions of a recording once they are computed."""
        if self._known is not None and self._known[:2] == (name, draws):
            self._show_functions()
            return
        self.close()
        self._known = None
        if pn.state.curdoc is not None:  # a visible page
            pn.state.execute(partial(self._compute, name, draws, every), schedule=True)

    async def _compute(self, name: str, draws: int, every: int) -> None:
        """Compute predictions in a separate process: this one has no torch, and others wait."""
        with tempfile.TemporaryDirectory(prefix="bnnviz-functions-") as scratch:
            out = Path(scratch) / "functions.npz"
            command = [sys.executable, "-m", _FUNCTIONS, str(reader.place(name)), str(out), str(every)]
            quiet = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL}
            process = self._process = await asyncio.create_subprocess_exec(*command, **quiet)
            # A density has no predictions, which the exit status reports.
            done = not await process.wait()
            given = dict(np.load(out)) if done else None
        if process is not self._process:  # the choice has changed
            return
        self._known = (name, draws, given)
        self._show_functions()

    def _show_functions(self) -> None:
        given = None if self._known is None else self._known[2]
        if self._place is None or given is None:
            return
        from bnnviz import plots

        self._place[:] = [self._brushed(plots.functions(given, dark=self._drawing["dark"]))]

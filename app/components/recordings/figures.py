"""Draw the chosen recordings: one, or several over each other."""

from __future__ import annotations

from collections.abc import Mapping

import panel as pn

from bnnviz.engine.recording.export import ExportedDraws
from bnnviz_app.components.still import still


def recording_figures(
    kept: Mapping[str, ExportedDraws], label: str, against: str | None, dark: bool
) -> list[pn.pane.Bokeh]:
    """Return the figures of a coordinate of recordings; of one also a pair with another coordinate."""
    from bnnviz import plots
    from bnnviz.figures import sources

    plots.use("bokeh")
    found = [sources.exported(name, each) for name, each in kept.items()]
    weighted = any(each.log_weights is not None for each in found)
    figures = [] if against is None or len(found) > 1 else [plots.pair(found, [label, against], dark=dark)]
    figures += [plots.trace(found, label, dark=dark), plots.density(found, label, dark=dark)]
    figures += [] if weighted else [plots.acf(found, label, dark=dark)]
    return [still(figure) for figure in figures]

"""Write a report on a run on a table as one HTML page: verdict, scores, figures, and how to predict new rows."""

from __future__ import annotations

import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnnviz.cli.output import worded
from bnnviz.cli.summary_table import comparison
from bnnviz.errors import BnnvizError

if TYPE_CHECKING:
    from bnnviz.engine.viewed_run import ViewedRun

_ABOVE = """<h1>{{ title }}</h1>
<p style="font-size: 1.2em">{{ verdict }}</p>
{% if rows %}<table cellpadding="6"><tr>{% for head in heads %}<th align="left">{{ head }}</th>{% endfor %}</tr>
{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}</table>
<p>{{ caption }}</p>{% endif %}"""
_BELOW = """<h2>New rows</h2>
{% if recording %}<pre>bnnviz predict {{ word }} --data new.csv --out predictions.csv</pre>
<pre>import bnnviz
bnnviz.recording({{ recording.__repr__() }}).predict("new.csv").to_frame()</pre>
{% else %}<p>The fit was not kept. Fit again with <code>--record NAME</code> to predict new rows.</p>{% endif %}
{% if notes %}<h2>Data</h2><p>{{ notes }}</p>{% endif %}"""


def write(run: ViewedRun, out: Path, recording: str) -> None:
    """Write the report on a run, whose recording has a name or none."""
    import holoviews as hv
    import jinja2

    from bnnviz import plots
    from bnnviz.engine.evaluation.metrics import network_draws
    from bnnviz.figures.still.output import page, write

    given, summary = network_draws(run), run.summary()
    figures = []
    for figure in (plots.prediction, plots.calibration, plots.relevance):
        try:
            figures.append(figure(given).map(_narrow, hv.Overlay))
        except BnnvizError:  # the network or its likelihood has no such figure
            continue
    scores = summary.get("baselines") or {}
    heads, rows, caption = comparison(summary["metrics"], scores) if scores else ((), (), "")
    table = run.spec.file or {}
    values = {
        "title": f"Predictions of {table.get('target', 'the target')} ({table.get('name', run.spec.target)})",
        "verdict": worded(summary.get("verdict", "")),
        "heads": heads,
        "rows": rows,
        "caption": caption,
        "recording": recording,
        "word": shlex.quote(recording),
        "notes": run.target.data_set.doc,
    }
    above, below = (jinja2.Environment(autoescape=True).from_string(text).render(values) for text in (_ABOVE, _BELOW))
    write(page(hv.Layout(figures).cols(1), values["title"], above, below=below), out)


def _narrow(figure: Any) -> Any:
    """Return a figure that a phone can show: a legend beside it would take half of the width."""
    import holoviews as hv

    options = hv.Store.lookup_options("bokeh", figure, "plot").kwargs
    look = {"title": textwrap.fill(options["title"], 40), "legend_position": "bottom", "legend_cols": 1}
    look |= {"width": 520, "height": None, "frame_height": options["height"] - 70}
    return figure.opts(hv.Options("Overlay", **look, backend="bokeh"))

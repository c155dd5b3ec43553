"""Describe a recording and its results in HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from bnnviz.engine.recording.reader import Recording
from bnnviz.specs import url
from bnnviz.specs.run import Spec
from bnnviz_app import deep_links

NONE = (
    "<h2>No recordings</h2><p>A recording keeps a run on disk while it samples. To make one, open the Lab and"
    " choose <b>Record</b> in the menu; it appears here immediately.</p>"
    "<p><a class='go' href='?page=lab'>Open the Lab</a></p>"
    "<p>On the command line: <code>bnnviz sample --data concrete --record concrete</code>. If the run is interrupted,"
    " <code>bnnviz resume concrete</code> continues it.</p>"
)
_SUMMARY = {
    "draws": "draws of each chain",
    "chains": "chains",
    "ess_min": "smallest ESS",
    "rhat_max": "largest R-hat",
    "rhat_function_max": "largest R-hat of functions",
    "weight_ess": "ESS of the weights",
    "ess_pc1": "ESS of PC 1",
    "ess_function_median": "ESS of functions, median",
    "grad_evals": "gradients",
    "seconds": "seconds",
    "ess_per_million_grads": "ESS per million gradients",
    "rmse": "RMSE (units of the target)",
    "accuracy": "accuracy",
    "nll": "NLL (on the network's scale)",
    "ece": "calibration error (ECE)",
}


def results(recording: Recording) -> str:
    """Return a table of the known entries of a recording's summary."""
    summary = recording.last_summary or {}
    known = {label: summary[name] for name, label in _SUMMARY.items() if summary.get(name) is not None}
    body = "".join(f"<tr><td>{label}</td><td>{html.escape(_text(value))}</td></tr>" for label, value in known.items())
    return f"<table>{body}</table>"


def about(recording: Recording, flags: Mapping[str, str]) -> str:
    """Describe a recording, with a link that runs its spec again."""
    header, progress, name = recording.header, recording.progress, html.escape(recording.name)
    spec = Spec(**{name: value for name, value in header["spec"].items() if name != "version"})
    found = deep_links.deep_link(spec) if not header["changes"] else None
    in_lab = found is None or found.page == "lab"
    text = f"<h2>{name}</h2><p>Made with bnnviz {html.escape(str(header['bnnviz']))} on"
    text += f" {html.escape(str(header['device']))}."
    if progress["error"]:
        text += f" <span class='error'>{html.escape(progress['error'])}</span>"
    elif not progress["finished"] and spec.draws is not None:
        text += f" It is incomplete: <code>bnnviz resume {name}</code> resumes it."
    links = []
    if not progress["finished"] and in_lab:
        query = url.query_text({"page": "lab", "recording": recording.name, **flags})
        links.append((query, "Resume in the Lab"))
    if found is not None:
        links.append((found.query(flags), f"Run it again in {found.title}"))
    text += "".join(f" <a href='?{html.escape(query, quote=True)}'>{words}</a>." for query, words in links)
    return text + f"</p><details><summary>All settings</summary>{html.escape(_settings(spec))}</details>"


def _settings(spec: Spec) -> str:
    settings = {"target": spec.target, **spec.target_settings, "sampler": spec.sampler, **spec.settings}
    if spec.start is not None:
        settings["start"] = "given"
    settings |= {"chains": spec.chains, "draws": spec.draws, "seed": spec.seed}
    return ", ".join(f"{name} {_text(value)}" for name, value in settings.items() if value is not None)


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)[:60]
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"

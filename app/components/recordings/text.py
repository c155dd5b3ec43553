"""Describe chosen recordings and their results in HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from bnnviz.engine.recording import compare
from bnnviz.engine.recording.reader import Recording
from bnnviz.specs import url
from bnnviz.specs.run import Spec
from bnnviz_app import deep_links


def about(found: list[Recording], most: int, flags: Mapping[str, str]) -> str:
    """Describe the chosen recordings."""
    if not found:
        return (
            "<h2>No recording selected</h2><p>A recording keeps a run on disk while it samples. To make one, open the"
            " Lab and choose <b>Record</b> in the menu; it appears here immediately.</p>"
            "<p><a class='go' href='?page=lab'>Open the Lab</a></p>"
            "<p>On the command line: <code>bnnviz sample --data concrete --record concrete</code>. If the run is"
            " interrupted, <code>bnnviz resume concrete</code> continues it.</p>"
        )
    if len(found) == 1:
        return _one(found[0], flags)
    more = f"<p>The figures show the first {most}.</p>" if len(found) > most else ""
    return f"<h2>{len(found)} recordings</h2>{more}"


def results(found: list[Recording]) -> str:
    """Compare their results in a table."""
    if not found:
        return ""
    body = "".join(_line(label, values) for label, values in compare.rows(found))
    if len(found) > 1:
        heads = "".join(f"<th>{html.escape(one.name)}</th>" for one in found)
        body = f"<tr><th></th>{heads}</tr>{body}"
        differing = compare.differences(found)
        body += "<tr class='head'><td>settings that differ</td></tr>" if differing else ""
        body += "".join(_line(name, values) for name, values in differing)
    return f"<div class='scroll'><table>{body}</table></div>"


def _one(recording: Recording, flags: Mapping[str, str]) -> str:
    """Describe one recording, with a link that runs its spec again."""
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


def _line(name: str, values: Sequence[Any]) -> str:
    cells = "".join(f"<td>{html.escape(_text(value))}</td>" for value in values)
    return f"<tr><td>{html.escape(name)}</td>{cells}</tr>"


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)[:60]
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"

"""Show a paper's experiment on a card: description, picture, and our figures next to the published ones."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz.experiments import LABELS, Experiment, render
from bnnviz.experiments.paper import heading
from bnnviz.experiments.record import Record
from bnnviz.experiments.table import AGREE, DIFFER, Result, counts, first_edition, results, summary
from bnnviz_app import deep_links, thumbnails
from bnnviz_app.components.still import still
from bnnviz_app.components.widgets import Text, WideColumn, script
from bnnviz_app.theme import SHEETS, styles

_CORRIGENDUM = "https://bnnviz.github.io/bnnviz/corrigendum.html"
_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]*)")
_STYLES = styles(__file__)


class CardHead(JSComponent):
    """Open and close a card by its heading."""

    experiment = param.String()
    place = param.String(doc="Table or figure of the paper.")
    title = param.String()
    comparison = param.String()
    share = param.List([0, 0], doc="Values that agree, and those that agree or differ.")
    known = param.Boolean(True, doc="Whether anything was measured.")
    thumbnail = param.String(doc="Address of a small picture, or nothing.")
    open = param.Boolean(False)
    sought = param.Boolean(False, doc="Whether the address names this card.")

    _esm = script(__file__, "card_head.js")


class Command(JSComponent):
    """Show a command line to copy, and how long it takes."""

    line = param.String()
    message = param.String()

    _esm = script(__file__, "command.js")


class ExperimentCard:
    """Show one experiment; the body is built when the card opens."""

    def __init__(
        self, experiment: Experiment, records: list[Record], sentences: list[str], on_open: Callable[[], None]
    ) -> None:
        self.experiment, self._records, self._sentences, self._on_open = experiment, records, sentences, on_open
        self._dark, self._large, self._flags = False, False, {}
        title, place = heading(experiment)
        self.results = results(experiment, next((record for record in records if not record.part), None))
        verdicts = counts(self.results)
        self._head = CardHead(
            experiment=experiment.name,
            title=title,
            place=place,
            comparison=summary(self.results),
            share=[verdicts[AGREE], verdicts[AGREE] + verdicts[DIFFER]],
            known=self.measured,
            thumbnail=thumbnails.address(experiment.name),
            sizing_mode="stretch_width",
            stylesheets=[_STYLES["head"]],
        )
        self._head.on_msg(self._receive)
        self._body = WideColumn(margin=(0, 20, 16, 20), visible=False)
        self.root = WideColumn(self._head, self._body, margin=(0, 0, 8, 0), stylesheets=[_STYLES["card"]])

    @property
    def open(self) -> bool:
        """Whether its body is seen."""
        return self._head.open

    @property
    def measured(self) -> bool:
        """Whether any of its figures was measured."""
        return bool(self._records)

    def _receive(self, event: Any) -> None:
        """Open or close the card as its heading was pressed."""
        if isinstance(event.data, dict) and isinstance(event.data.get("open"), bool):
            self.turn(event.data["open"], by_reader=True)

    def turn(self, requested: bool, by_reader: bool = False, sought: bool = False) -> None:
        """Open or close it; ``by_reader``: its reader did; ``sought``: the address names it."""
        self._head.param.update(open=requested, sought=sought)
        self._fill()
        if by_reader:
            self._on_open()

    def dress(self, dark: bool, large: bool, flags: Mapping[str, str]) -> None:
        """Turn light or dark, small or large; links keep these flags."""
        self._dark, self._large, self._flags = dark, large, dict(flags)
        if self.open:
            self._fill()

    # ---- the body -----------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Build the body of an open card; a closed one is empty."""
        self._body[:] = self._opened() if self.open else []
        self._body.visible = self.open

    def _opened(self) -> list[Any]:
        e = self.experiment
        problems = "".join(f"<p class='wrong'>{html.escape(sentence)}</p>" for sentence in self._sentences)
        why = f"<p>{_prose(e.why)}</p>" if e.why else ""
        more = f"<p><a href='{_CORRIGENDUM}' target='_blank' rel='noopener'>Errors in the papers</a></p>"
        found = deep_links.together(e)
        race = "" if found is None else f"<p>{link(found, f'Open these samplers in {found.title}', self._flags)}</p>"
        command = Command(
            line=f"bnnviz reproduce {e.name}",
            message=_how_long(e, self._records),
            sizing_mode="stretch_width",
            margin=(2, 0, 8, 0),
            stylesheets=[SHEETS["pills"], _STYLES["command"]],
        )
        shown = [self._text(f"<p>{_prose(e.doc)}</p>{why}{more}{problems}{race}"), command]
        if not self._records:
            shown += self._part(e, None)
        for record in self._records:
            part = e.at(record.part.get("data"), record.part.get("scale")) if record.part else e
            shown += self._part(part, record)
        return shown

    def _part(self, experiment: Experiment, record: Record | None) -> list[Any]:
        """Return the picture and the tables of one part."""
        found, first = results(experiment, record), first_edition(experiment)
        part = "" if record is None or not record.part else f"<h4>{html.escape(heading(experiment)[0])}</h4>"
        links = {case.name: self._link(case.specs[0]) for case in experiment.cases if case.specs}
        tables = f"<p class='where'>{render.KEY}</p><div class='scroll'>{render.html(*render.grid(found), links)}</div>"
        if first:
            tables += f"<h4>First edition</h4><div class='scroll'>{render.html(*render.grid(first))}</div>"
        head = self._text(f"{part}<p class='where'>{_where(record)}</p>")
        from bnnviz import plots  # HoloViews, once a card is opened

        plots.use("bokeh")
        figure = picture(experiment, record, found, dark=self._dark)
        return [head, *([] if figure is None else [still(figure, self._large)]), self._text(tables)]

    def _link(self, spec: Any) -> str:
        """Return a link to the page that runs a spec, or ""."""
        seen = deep_links.deep_link(spec)
        title = "" if seen is None else f"the {seen.title}" if seen.title == "Lab" else seen.title
        return "" if seen is None else link(seen, f"Open in {title}", self._flags)

    def _text(self, text: str) -> Text:
        return Text(text, margin=(2, 0, 6, 0), stylesheets=[_STYLES["text"]])


def picture(experiment: Experiment, record: Record | None, found: list[Result], most: int = 100, **look: Any) -> Any:
    """Return the figure of an experiment with at most so many panels; None where there is none."""
    from bnnviz import plots

    if record is not None and record.panels:
        return plots.panels(record.panels[:most], **look)
    if record is not None and experiment.swept:
        labels = {key: LABELS.get(key, key) for key in experiment.measures[:most]}
        return plots.sweep([row for row in record.rows if "setting" in row], labels, **look)
    printed = {result.measure for result in found if result.paper is not None}
    dots = [result for result in found if result.measure in printed and (result.ours, result.paper) != (None, None)]
    return plots.published(dots, **look) if dots else None


def _how_long(experiment: Experiment, records: Iterable[Record]) -> str:
    """Return the approximate duration of all runs, as declared or as recorded."""
    runs = experiment.runs()
    if not runs:
        return "cannot be run yet"
    minutes = experiment.minutes
    known = next((record for record in records if not record.part and record.runs), None)
    if minutes is None and known is not None:
        minutes = known.seconds / 60 * runs / known.runs
    count = "1 run" if runs == 1 else f"{runs} runs"
    if minutes is None:
        return count
    time = f"about {minutes:.0f} min" if minutes < 90 else f"about {minutes / 60:.0f} h"
    return f"{count}, {'less than a minute' if minutes < 1 else time} on two CPU cores"


def _where(record: Record | None) -> str:
    if record is None:
        return "Not measured yet. The command above measures it."
    who = "Measured on this machine" if record.here else "Measured by the authors of bnnviz"
    runs = sorted({row["runs"] for row in record.rows if row["runs"]}) or [0]
    each = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    errors = {row["error"] for row in record.rows if row.get("error")}
    text = f"{who}, {record.date}, version {record.version}; runs of a case: {each}; {record.device}."
    return html.escape(" ".join([text, *sorted(errors)]))


def _prose(text: str) -> str:
    """Write a text so that the options in it are not broken."""
    return _OPTION.sub(r"<code>\1</code>", html.escape(text))


def link(found: deep_links.DeepLink, text: str, flags: Mapping[str, str]) -> str:
    """Write a link to a page of the dashboard that keeps these flags of the address."""
    return f"<a href='?{html.escape(found.query(flags), quote=True)}'>{html.escape(text)}</a>"

"""Show a paper's experiment on a card: what it is, its picture, and its figures beside the published ones."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from panel.custom import JSComponent

from bnnviz.experiments import LABELS, Experiment
from bnnviz.experiments.comparison import Comparison, Figure, compare, figures
from bnnviz.experiments.editions import CORRECTED, EDITIONS, SECTIONS, first_edition, section_url
from bnnviz.experiments.notes import of_record, with_notes
from bnnviz.experiments.paper import heading
from bnnviz.experiments.results import Record
from bnnviz.views.palette import DARK, LIGHT
from bnnviz_app import deep_links
from bnnviz_app.components.cards.experiment_table import FigureTable, link
from bnnviz_app.components.still import still
from bnnviz_app.components.widgets import script
from bnnviz_app.theme import SHEETS, styles

_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]*)")
_STYLES = styles(__file__)


class CardHead(JSComponent):
    """Open and close a card by its heading."""

    experiment = param.String()
    place = param.String(doc="Table or figure of the paper.")
    title = param.String()
    comparison = param.String()
    share = param.List([0, 0], doc="Figures within two standard errors, and those whose standard error is known.")
    known = param.Boolean(True, doc="Whether anything was measured.")
    open = param.Boolean(False)
    sought = param.Boolean(False, doc="Whether the address names this card.")

    _esm = script(__file__, "card_head.js")


class Command(JSComponent):
    """Show a command line to copy, and how long it takes."""

    line = param.String()
    message = param.String()

    _esm = script(__file__, "command.js")


class ExperimentCard:
    """Show one experiment; what a closed card holds is not made before it is opened."""

    def __init__(
        self,
        experiment: Experiment,
        records: list[Record],
        sentences: list[str],
        on_open: Callable[[], None],
        on_edition: Callable[[str], None],
    ) -> None:
        self.experiment, self._records, self._sentences = experiment, records, sentences
        self._on_open, self.has_editions = on_open, bool(first_edition(experiment))
        self._tables: list[tuple[FigureTable, pn.pane.HTML]] = []
        self._edition, self._switch = CORRECTED, _edition_switch(on_edition) if self.has_editions else None
        self._dark, self._large, self._flags = False, False, {}
        title, place = heading(experiment)
        comparison = self.comparison
        self._head = CardHead(
            experiment=experiment.name,
            title=title,
            place=place,
            comparison=comparison.text,
            share=[comparison.near, comparison.tested],
            known=self.measured,
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[_STYLES["head"]],
        )
        self._head.on_msg(self._hear)
        self._body = pn.Column(sizing_mode="stretch_width", margin=(0, 20, 16, 20), visible=False)
        self.root = pmui.Paper(
            self._head,
            self._body,
            elevation=1,
            margin=(0, 0, 8, 0),
            sizing_mode="stretch_width",
            sx={"overflow": "hidden", "borderRadius": "8px"},
        )

    @property
    def open(self) -> bool:
        """Whether its body is seen."""
        return self._head.open

    @property
    def measured(self) -> bool:
        """Whether any of its figures was measured."""
        return bool(self._records)

    @property
    def comparison(self) -> Comparison:
        """How what was measured compares with what was published."""
        first = next((record for record in self._records if not record.part), None)
        rows = [] if first is None else first.rows
        return compare(figures(self.experiment, rows))

    def _hear(self, event: Any) -> None:
        """Open or close the card as its heading was pressed."""
        if isinstance(event.data, dict) and isinstance(event.data.get("open"), bool):
            self.turn(event.data["open"], by_reader=True)

    def turn(self, wanted: bool, by_reader: bool = False, sought: bool = False) -> None:
        """Open or close it; ``by_reader``: its reader did; ``sought``: the address names it."""
        self._head.param.update(open=wanted, sought=sought)
        self._fill()
        if by_reader:
            self._on_open()

    def show_edition(self, edition: str) -> None:
        """Show the figures of an edition of the paper, one of `EDITIONS`, where there are several."""
        if not self.has_editions or edition == self._edition:
            return
        self._edition = self._switch.value = edition
        self._tables = [(replace(table, edition=edition), pane) for table, pane in self._tables]
        for table, pane in self._tables:
            pane.object = self._written(table)

    def matches(self, text: str) -> bool:
        """Tell whether every word of a text is in what the card says."""
        e = self.experiment
        words = " ".join((e.name, e.title, e.doc, *(case.name for case in e.cases))).casefold()
        return all(word in words for word in text.casefold().split())

    def dress(self, dark: bool, large: bool, flags: Mapping[str, str]) -> None:
        """Turn light or dark, small or large; links keep these flags."""
        self._dark, self._large, self._flags = dark, large, dict(flags)
        if self.open:
            self._fill()

    # ---- the body -----------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Make what an open card shows; a closed one shows nothing."""
        self._tables = []
        self._body[:] = self._opened() if self.open else []
        self._body.visible = self.open

    def _opened(self) -> list[Any]:
        e = self.experiment
        problems = "".join(f"<p class='wrong'>{html.escape(sentence)}</p>" for sentence in self._sentences)
        shown = [self._text(f"<p>{_prose(e.doc)}</p>{problems}{self._together()}"), self._command()]
        shown += [self._text(_corrections(e.name, self.has_editions))] if e.name in SECTIONS else []
        shown += [self._switch] if self.has_editions else []
        if not self._records:
            return [*shown, *self._part(e, None)]
        return [*shown, *(item for record in self._records for item in self._part(_part_of(e, record), record))]

    def _part(self, experiment: Experiment, record: Record | None) -> list[Any]:
        """Return the picture, the table and the notes of one part."""
        rows = [] if record is None else record.rows
        found = figures(experiment, rows)
        picture = self._picture(experiment, record, found)
        part = "" if record is None or not record.part else f"<h4>{html.escape(heading(experiment)[0])}</h4>"
        table = FigureTable(experiment, rows, found, self._edition)
        pane = self._text(self._written(table))
        self._tables.append((table, pane))
        return [
            self._text(f"{part}<p class='where'>{_where(experiment, record)}</p>{picture[0]}"),
            *picture[1:],
            pane,
            self._text(_notes(experiment, rows, "Why they differ" if any(f.paired for f in found) else "Notes")),
        ]

    def _written(self, table: FigureTable) -> str:
        return f"<div class='scroll'>{table.html(self._flags)}</div>{table.key()}"

    def _picture(self, experiment: Experiment, record: Record | None, found: list[Figure]) -> list[Any]:
        """Return the legend and the figure, the recorded one if there is any; an empty legend alone where none is."""
        from bnnviz import plots  # HoloViews, once a card is opened

        plots.use("bokeh")
        if record is not None and record.panels:
            return ["", self._figure(plots.panels(record.panels, dark=self._dark))]
        if record is not None and experiment.swept:
            labels = {key: LABELS.get(key, key) for key in experiment.measures}
            rows = [row for row in record.rows if "setting" in row]
            return ["", self._figure(plots.sweep(rows, labels, dark=self._dark))]
        known = [figure for figure in found if figure.measured is not None or figure.published is not None]
        shown = {figure.measure for figure in known if figure.published is not None}
        dots = [figure for figure in known if figure.measure in shown]
        if not dots:
            return [""]
        key = f"<div class='key'>{_key_of_marks(self._dark, self.has_editions)}</div>" if record is not None else ""
        return [key, self._figure(plots.published(dots, dark=self._dark))]

    def _figure(self, figure: Any) -> pn.pane.Bokeh:
        return still(figure, self._large)

    def _text(self, text: str) -> pn.pane.HTML:
        return pn.pane.HTML(text, sizing_mode="stretch_width", margin=(2, 0, 6, 0), stylesheets=[_STYLES["text"]])

    def _together(self) -> str:
        found = deep_links.together(self.experiment)
        return "" if found is None else f"<p>{link(found, f'Open these samplers in {found.title}', self._flags)}</p>"

    def _command(self) -> Command:
        return Command(
            line=f"bnnviz reproduce {self.experiment.name}",
            message=_how_long(self.experiment, self._records),
            sizing_mode="stretch_width",
            margin=(2, 0, 8, 0),
            stylesheets=[SHEETS["pills"], _STYLES["command"]],
        )


def _edition_switch(on_edition: Callable[[str], None]) -> pmui.RadioButtonGroup:
    """Return the switch between the editions of a paper."""
    made = pmui.RadioButtonGroup(
        options={title: edition for edition, title in EDITIONS.items()},
        value=CORRECTED,
        size="small",
        width=330,
        margin=(2, 0, 8, 0),
        sx={"& button": {"textTransform": "none", "padding": "4px 12px", "whiteSpace": "nowrap"}},
    )
    made.param.watch(lambda event: on_edition(event.new), "value")
    return made


def _corrections(name: str, has_editions: bool) -> str:
    """Say that there are two editions, and where the corrigendum speaks of an experiment."""
    links = ", ".join(
        f"<a href='{section_url(heading)}' target='_blank' rel='noopener'>{html.escape(heading)}</a>"
        for heading in SECTIONS[name]
    )
    editions = (
        "The paper has two editions. Ours are compared with the corrected one; the first one’s figures are as printed. "
        if has_editions
        else ""
    )
    return f"<p>{editions}In the corrigendum: {links}.</p>"


def _part_of(experiment: Experiment, record: Record) -> Experiment:
    """Return the part of an experiment that a record is of."""
    return experiment.at(record.part.get("data"), record.part.get("scale")) if record.part else experiment


def _how_long(experiment: Experiment, records: Iterable[Record]) -> str:
    """Say about how long all runs take, as declared or as the record's runs took."""
    runs = experiment.runs()
    if not runs:
        return "cannot be run yet"
    minutes = experiment.minutes
    known = next((record for record in records if not record.part and record.runs), None)
    if minutes is None and known is not None:
        minutes = known.seconds / 60 * runs / known.runs
    count = "1 run" if runs == 1 else f"{runs} runs"
    return count if minutes is None else f"{count}, {_time(minutes)} on two CPU cores"


def _time(minutes: float) -> str:
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes:.0f} min" if minutes < 90 else f"about {minutes / 60:.0f} h"


def _where(experiment: Experiment, record: Record | None) -> str:
    if record is None:
        return "Nobody has measured this yet: the command above does, and its figures will stand here."
    who = "Measured on this machine" if record.here else "Measured by the authors of bnnviz"
    runs = sorted({row["runs"] for row in record.rows if row["runs"]})
    each = "" if not runs else f"{runs[0]} {'run' if runs[-1] == 1 else 'runs'} of each case"
    each = each if len(runs) < 2 else f"{runs[0]} to {runs[-1]} runs of each case"
    text = f"{who}, {record.date}, version {record.version}: {each}, on {record.device}."
    return html.escape(" ".join([text, *of_record(experiment, record)]))


def _key_of_marks(dark: bool, has_editions: bool) -> str:
    """Say what the marks of figures beside published ones mean."""
    palette = DARK if dark else LIGHT
    marks = (
        ("◇", palette.ink, "published, corrected edition" if has_editions else "published"),
        ("●", palette.blue, "measured, ± 2 standard errors"),
        ("■", palette.magenta, "differs by more than that"),
    )
    return "".join(
        f"<span><i style='color:{colour};font-style:normal' aria-hidden='true'>{mark}</i> {what}</span>"
        for mark, colour, what in marks
    )


def _notes(experiment: Experiment, rows: list[dict[str, Any]], title: str) -> str:
    """Write each comment once, after the cases that it is on."""
    failed = {row["case"]: row.get("note", "") for row in rows if not _measured(experiment, row)}
    cases: dict[str, list[str]] = {}
    for case in with_notes(experiment, rows).cases:
        cases.setdefault(failed.get(case.name) or case.note, []).append(case.name)
    items = "".join(
        f"<li>{_whose(names, len(experiment.cases))}{_prose(note)}</li>" for note, names in cases.items() if note
    )
    return f"<h4>{title}</h4><ul>{items}</ul>" if items else ""


def _prose(text: str) -> str:
    """Write a text so that the options in it are not broken."""
    return _OPTION.sub(r"<code>\1</code>", html.escape(text))


def _whose(names: list[str], count: int) -> str:
    return "" if len(names) == count else f"<b>{html.escape(', '.join(names))}.</b> "


def _measured(experiment: Experiment, row: dict[str, Any]) -> bool:
    return any(row.get(key) is not None for key in experiment.measures)

"""Show a paper's experiment on a card: what it is, its picture, and its figures beside the published ones."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from panel.custom import JSComponent

from bnnviz.experiments import LABELS, Experiment
from bnnviz.experiments.comparison import Comparison, Figure, compare, figures
from bnnviz.experiments.notes import of_record, with_notes
from bnnviz.experiments.paper import heading
from bnnviz.experiments.results import Record
from bnnviz.views.palette import DARK, LIGHT
from bnnviz_app import deep_links
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
    """Show one experiment; what a closed card holds is not made before it is opened.

    Parameters
    ----------
    experiment : Experiment
    records : list of Record
        Of its parts.
    sentences : list of str
        What could not be read of its records.
    on_open : callable
        Called without arguments when its reader opens or closes it.
    """

    def __init__(
        self, experiment: Experiment, records: list[Record], sentences: list[str], on_open: Callable[[], None]
    ) -> None:
        self.experiment, self._records, self._sentences = experiment, records, sentences
        self._on_open = on_open
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
        self._body[:] = self._opened() if self.open else []
        self._body.visible = self.open

    def _opened(self) -> list[Any]:
        e = self.experiment
        problems = "".join(f"<p class='wrong'>{html.escape(sentence)}</p>" for sentence in self._sentences)
        shown = [self._text(f"<p>{_prose(e.doc)}</p>{problems}{self._together()}"), self._command()]
        if not self._records:
            return [*shown, *self._part(e, None)]
        return [*shown, *(item for record in self._records for item in self._part(_part_of(e, record), record))]

    def _part(self, experiment: Experiment, record: Record | None) -> list[Any]:
        """Return the picture, the table and the notes of one part."""
        rows = [] if record is None else record.rows
        found = figures(experiment, rows)
        picture = self._picture(experiment, record, found)
        part = "" if record is None or not record.part else f"<h4>{html.escape(heading(experiment)[0])}</h4>"
        table = _table(experiment, rows, found, self._flags)
        return [
            self._text(f"{part}<p class='where'>{_where(experiment, record)}</p>{picture[0]}"),
            *picture[1:],
            self._text(f"<div class='scroll'>{table}</div>{_key(found)}"),
            self._text(_notes(experiment, rows, "Why they differ" if any(f.paired for f in found) else "Notes")),
        ]

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
        key = f"<div class='key'>{_key_of_marks(self._dark)}</div>" if record is not None else ""
        return [key, self._figure(plots.published(dots, dark=self._dark))]

    def _figure(self, figure: Any) -> pn.pane.Bokeh:
        return still(figure, self._large)

    def _text(self, text: str) -> pn.pane.HTML:
        return pn.pane.HTML(text, sizing_mode="stretch_width", margin=(2, 0, 6, 0), stylesheets=[_STYLES["text"]])

    def _together(self) -> str:
        found = deep_links.together(self.experiment)
        return "" if found is None else f"<p>{_link(found, f'Open these samplers in {found.title}', self._flags)}</p>"

    def _command(self) -> Command:
        return Command(
            line=f"bnnviz reproduce {self.experiment.name}",
            message=_how_long(self.experiment, self._records),
            sizing_mode="stretch_width",
            margin=(2, 0, 8, 0),
            stylesheets=[SHEETS["pills"], _STYLES["command"]],
        )


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


def _key_of_marks(dark: bool) -> str:
    """Say what the marks of figures beside published ones mean."""
    palette = DARK if dark else LIGHT
    marks = (
        ("◇", palette.ink, "published"),
        ("●", palette.blue, "measured, ± 2 standard errors"),
        ("■", palette.magenta, "differs by more than that"),
    )
    return "".join(
        f"<span><i style='color:{colour};font-style:normal' aria-hidden='true'>{mark}</i> {what}</span>"
        for mark, colour, what in marks
    )


# --- the table


def _table(experiment: Experiment, rows: list[dict[str, Any]], found: list[Figure], flags: Mapping[str, str]) -> str:
    """Write the figures: a line for each case, the published figure and ours side by side for each measure."""
    if not experiment.cases:
        return ""
    printed = {figure.measure for figure in found if figure.published is not None}
    groups = [(key, key in printed) for key in experiment.measures]
    heads = "".join(
        f"<th class='group' scope='colgroup' colspan='{1 + both}'>{html.escape(LABELS.get(key, key))}</th>"
        for key, both in groups
    )
    names = "".join(
        "<th class='first' scope='col'>published</th><th scope='col'>measured</th>"
        if both
        else "<th class='first' scope='col'>measured</th>"
        for _, both in groups
    )
    cells = {(figure.case, figure.measure): figure for figure in found}
    runs = {row["case"]: row["runs"] for row in rows}
    lines = []
    for case in experiment.cases:
        figures_of = "".join(_cells(cells[case.name, key], both) for key, both in groups)
        seen = deep_links.deep_link(case.specs[0]) if case.specs else None
        link = "" if seen is None else _link(seen, f"Open in {_the(seen.title)}", flags)
        lines.append(
            f"<tr><td class='case'>{html.escape(case.name)}{link}</td><td>{runs.get(case.name) or '–'}</td>"
            f"{figures_of}</tr>"
        )
    many = "many" if sum(1 + both for _, both in groups) > 8 else ""
    return (
        f"<table class='{many}'><thead><tr><th></th><th></th>{heads}</tr>"
        f"<tr><th class='case' scope='col'>case</th><th scope='col'>runs</th>{names}</tr>"
        f"</thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _the(title: str) -> str:
    """Return a page's name as a sentence says it."""
    return f"the {title}" if title == "Lab" else title


def _cells(figure: Figure, both: bool) -> str:
    published = f"<td class='published first'>{_printed(figure.published)}{_spread(figure.published_sd)}</td>"
    off = figure.off
    kind = ["off"] if figure.differs else []
    kind += [] if both else ["first"]
    why = f" title='{abs(off):.1f} standard errors {'above' if off > 0 else 'below'}'" if off and isfinite(off) else ""
    arrow = "" if not figure.differs else ("▲ " if off > 0 else "▼ ")
    error = "" if figure.error is None else f" <small>± {figure.error:.1g}</small>"
    ours = f"{arrow}{_number(figure.measured)}{error}{_spread(figure.sd)}"
    return f"{published if both else ''}<td class='{' '.join(kind)}'{why}>{ours}</td>"


def _spread(sd: float | None) -> str:
    return "" if not sd else f" <small>({sd:.1g})</small>"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    digits = 4 if abs(value) < 1 else 2 if abs(value) < 100 else 0
    return f"{value:.{digits}f}".replace("-", "\u2212")


def _printed(value: float | None) -> str:
    """Write a published figure with no more digits than it has."""
    return "–" if value is None else f"{value:.6g}".replace("-", "\u2212")


def _link(found: deep_links.DeepLink, text: str, flags: Mapping[str, str]) -> str:
    return f"<a href='?{html.escape(found.query(flags), quote=True)}'>{html.escape(text)}</a>"


def _key(found: list[Figure]) -> str:
    """Explain what stands in the table."""
    meanings = ["± standard error over runs"] if any(figure.error is not None for figure in found) else []
    if any(figure.sd or figure.published_sd for figure in found):
        meanings.append("in brackets the standard deviation over draws")
    if any(figure.differs for figure in found):
        meanings.append("▲ ▼ ours is more than two of its standard errors above or below")
    return f"<p class='where'>{'; '.join(meanings)}.</p>" if meanings else ""


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

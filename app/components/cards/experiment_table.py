"""Write the table of an experiment's figures: a line for each case, ours beside those of each edition of its paper."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from bnnviz.experiments import LABELS, Case, Experiment
from bnnviz.experiments.comparison import Figure
from bnnviz.experiments.editions import CORRECTED, FIRST, first_edition, first_label
from bnnviz_app import deep_links

_MEASURED = "measured"
_MANY = 8  # columns


@dataclass(frozen=True)
class _Group:
    """Name a measure and its columns: of editions, and ours."""

    measure: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class FigureTable:
    """The figures of an experiment, or of a part of one."""

    experiment: Experiment
    rows: list[dict[str, Any]]
    found: list[Figure]
    edition: str = CORRECTED

    def html(self, flags: Mapping[str, str]) -> str:
        """Write the table; links keep these flags of the address."""
        if not self.experiment.cases:
            return ""
        first = first_edition(self.experiment)
        groups = [self._group(measure, first) for measure in self.experiment.measures]
        lines = "".join(self._line(case, groups, first.get(case.name, {}), flags) for case in self.experiment.cases)
        many = "many" if sum(len(group.columns) for group in groups) > _MANY else ""
        return f"<table class='{many}'><thead>{_heads(groups, bool(first))}</thead><tbody>{lines}</tbody></table>"

    def key(self) -> str:
        """Explain what stands in the table."""
        meanings = ["± standard error over runs"] if any(figure.error is not None for figure in self.found) else []
        if any(figure.sd or figure.published_sd for figure in self.found):
            meanings.append("in brackets the standard deviation over draws")
        if self._judged and any(figure.differs for figure in self.found):
            meanings.append("▲ ▼ ours is more than two of its standard errors above or below")
        return f"<p class='where'>{'; '.join(meanings)}.</p>" if meanings else ""

    @property
    def _judged(self) -> bool:
        """Whether what ours are compared with is shown: the corrected edition."""
        return self.edition != FIRST or not first_edition(self.experiment)

    def _group(self, measure: str, first: Mapping[str, Mapping[str, float]]) -> _Group:
        in_first = any(measure in figures for figures in first.values())
        in_corrected = any(f.measure == measure and f.published is not None for f in self.found)
        columns = [FIRST] if in_first and self.edition != CORRECTED else []
        columns += [CORRECTED] if in_corrected and self._judged else []
        return _Group(measure, (*columns, _MEASURED))

    def _line(self, case: Case, groups: Sequence[_Group], first: Mapping[str, float], flags: Mapping[str, str]) -> str:
        figures = {figure.measure: figure for figure in self.found if figure.case == case.name}
        cells = "".join(
            self._cell(column, figures[group.measure], first.get(group.measure), at=place)
            for group in groups
            for place, column in enumerate(group.columns)
        )
        runs = next((row["runs"] for row in self.rows if row["case"] == case.name), 0)
        seen = deep_links.deep_link(case.specs[0]) if case.specs else None
        opens = "" if seen is None else link(seen, f"Open in {_the(seen.title)}", flags)
        return f"<tr><td class='case'>{html.escape(case.name)}{opens}</td><td>{runs or '–'}</td>{cells}</tr>"

    def _cell(self, column: str, figure: Figure, first: float | None, at: int) -> str:
        edge = ["first"] if at == 0 else []
        if column == FIRST:
            return _td(["published", *edge], _printed(first))
        if column == CORRECTED:
            return _td(["published", *edge], _printed(figure.published) + _spread(figure.published_sd))
        return _ours(figure, edge, self._judged)


def _heads(groups: Sequence[_Group], has_editions: bool) -> str:
    """Write the two lines of headings: measures, and below them whose figures."""
    above = "".join(
        f"<th class='group' scope='colgroup' colspan='{len(group.columns)}'>{html.escape(_label(group.measure))}</th>"
        for group in groups
    )
    below = "".join(
        f"<th{' class=first' if place == 0 else ''} scope='col'>{_head(column, group.measure, has_editions)}</th>"
        for group in groups
        for place, column in enumerate(group.columns)
    )
    return (
        f"<tr><th></th><th></th>{above}</tr>"
        f"<tr><th class='case' scope='col'>case</th><th scope='col'>runs</th>{below}</tr>"
    )


def _head(column: str, measure: str, has_editions: bool) -> str:
    if column == _MEASURED:
        return _MEASURED
    if column == CORRECTED:
        return CORRECTED if has_editions else "published"
    before = first_label(measure)
    return html.escape("first edition" if before == _label(measure) else f"first edition, {before}")


def _label(measure: str) -> str:
    return LABELS.get(measure, measure)


def _ours(figure: Figure, classes: Sequence[str], judged: bool) -> str:
    off, differs = figure.off, figure.differs and judged
    says = judged and off and isfinite(off)
    why = f" title='{abs(off):.1f} standard errors {'above' if off > 0 else 'below'}'" if says else ""
    arrow = "" if not differs else ("▲ " if off > 0 else "▼ ")
    error = "" if figure.error is None else f" <small>± {figure.error:.1g}</small>"
    text = f"{arrow}{_number(figure.measured)}{error}{_spread(figure.sd)}"
    return _td([*(["off"] if differs else []), *classes], text, why)


def _td(classes: Sequence[str], text: str, more: str = "") -> str:
    return f"<td class='{' '.join(classes)}'{more}>{text}</td>"


def _the(title: str) -> str:
    """Return a page's name as a sentence says it."""
    return f"the {title}" if title == "Lab" else title


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


def link(found: deep_links.DeepLink, text: str, flags: Mapping[str, str]) -> str:
    """Write a link to a page of the dashboard; it keeps these flags of the address."""
    return f"<a href='?{html.escape(found.query(flags), quote=True)}'>{html.escape(text)}</a>"

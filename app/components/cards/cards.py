"""Define cards: a view or a table under a heading."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import panel as pn

from bnnviz.figures.live.view import DOCUMENT_THEME, View
from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import LINK, Text, WideRow, button, set_changed, set_class
from bnnviz_app.theme import LARGE, SHEETS, styles

MANY, CROWDED = 6, 8  # lines of the table from which on the line height shrinks, in two stages
LINE = 42  # letters of label and figure in a projector's type: cards.css allows a width of 22 times its size
#: Actions in the title of a figure (figures.js).
_ACTIONS = {
    "enlarge": "Enlarge (Esc ends it)",
    "png": "Save as PNG",
    "svg": "Save as SVG",
}
#: Definitions of the table's rows by the beginning of their labels, longest first.
_EXPLANATIONS = json.loads(Path(__file__).with_name("figures.json").read_text(encoding="utf-8"))
#: Recommended limits of rows, by the beginning of their labels.
_LIMITS = {
    "R-hat": "below 1.01",
    "Bulk ESS": "above 400",
    "Tail ESS": "above 400",
    "ESS of functions (minimum)": "above 400",
    "Violations": "at most 1%",
    "Tail of the weights": "below 0.7",
}
_MENU = html.escape(json.dumps(_ACTIONS))
_STYLES = styles(__file__)


class Card(PageComponent):
    """Show a view with its heading."""

    def __init__(
        self,
        view: View,
        tools: Sequence[Any] = (),
        below: Sequence[Any] = (),
        turns: Sequence[Any] = (),
        place: str = "",
        legend: bool = True,
        beside: Sequence[Any] = (),
    ) -> None:
        self.view, self._has_legend = view, legend
        self._title = title_pane((6, 0, 0, 14))
        self._note = Text(margin=(6, 0, 0, 0), stylesheets=[_STYLES["note"], SHEETS["large_card"]])
        sheets = [_STYLES["legend"], SHEETS["large_card"]]
        self._legend = Text(margin=(0, 14, 2, 14), height=None, stylesheets=sheets)
        self.enlarged = [self._title, self._note, self._legend]
        head = WideRow(self._title, *turns, self._note, *tools, height=30)
        body = pn.pane.Bokeh(view.root, theme=DOCUMENT_THEME, sizing_mode="stretch_both", margin=(0, 6, 4, 6))
        if beside:
            body = pn.Row(*beside, body, sizing_mode="stretch_both")
        self.root = surface(head, *below, self._legend, body, area=place or view.needs[0])
        self.root.css_classes = [*self.root.css_classes, "figure-card"]
        self.needs = frozenset(view.needs)
        self.head()

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        self.view.reset(scene)
        self.head()

    def head(self) -> None:
        """Write the heading again: the view's title, legend or colours have changed."""
        self._title.object = self._heading()
        self._note.object = self._noted()
        self._write_legend()

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        self.view.update(frame)
        set_changed(self._note, object=self._noted())
        self._write_legend()
        set_changed(self._title, object=self._heading())

    def _heading(self) -> str:
        """Return the title, which opens the figure's menu."""
        name = html.escape(f"This figure: {self.view.title}")
        return (
            f"<h2><button type='button' data-figure='{self.view.name}' data-actions='{_MENU}'"
            f" aria-label='{name}' title='This figure' aria-haspopup='menu'"
            f" aria-expanded='false'><b>{html.escape(self.view.title)}</b></button></h2>"
        )

    def _noted(self) -> str:
        note = html.escape(self.view.note)
        return f"<span>{note}</span>" if note else ""

    def _write_legend(self) -> None:
        """Show the view's legend, which may know its names from the first frame on only."""
        legend = self.view.legend_html() if self._has_legend else ""
        set_changed(self._legend, object=legend, visible=self._has_legend)

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        super().magnify(large)
        self.view.magnify(LARGE if large else 1.0)

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        self.view.theme(dark)
        self.head()


class TitledCard(PageComponent):
    """Show a pane under a title."""

    def __init__(self, title: str, body: Any, area: str, tools: Sequence[Any] = ()) -> None:
        self._title = title_pane((7, 0 if tools else 14, 5, 14))
        self.enlarged = [body, self._title]
        self.retitle(title)
        head = self._title
        if tools:
            head = WideRow(self._title, pn.Spacer(sizing_mode="stretch_width"), *tools)
        self.root = surface(head, body, area=area)

    def retitle(self, title: str) -> None:
        """Show another title."""
        self._title.object = f"<h2>{title}</h2>"


class ExplainedCard(TitledCard):
    """Show figures under a title; a button switches to their definitions."""

    def __init__(self, title: str, body: Any) -> None:
        self._explaining = False
        self._turn = button(self._turn_label, self._explain, margin=(4, 8, 0, 4), height=24, sx=LINK)
        super().__init__(title, body, "table", [self._turn])

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        super().magnify(large)
        self._turn.sx = {**LINK, "fontSize": "15px"} if large else LINK

    @property
    def _turn_label(self) -> str:
        return "The figures" if self._explaining else "Definitions"

    def _explain(self) -> None:
        """Switch between the figures and their definitions."""
        self._explaining = not self._explaining
        self._turn.label = self._turn_label
        self._show()

    def _show(self) -> None:
        """Show the figures or their definitions."""
        raise NotImplementedError


class FiguresCard(ExplainedCard):
    """Show the current figures as rows of label and text, or their definitions."""

    needs = frozenset({"table"})

    def __init__(self) -> None:
        self._rows = Text(sizing_mode="stretch_both", margin=(0, 14, 6, 14), stylesheets=[_STYLES["table"]])
        self._frame: dict[str, Any] = {"rows": []}
        super().__init__("<b>Summary</b>", self._rows)

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new run."""
        self._frame = {"rows": []}
        self._show()

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        self._frame = frame["table"]
        self._show()

    def _show(self) -> None:
        futures = self._frame.get("futures", ())
        # The reasons for a warning come first: the card may be too low for all rows.
        rows = sorted(self._frame["rows"], key=lambda row: "bad" not in row[2])
        meanings = [self._meaning(label) for label, _, _ in rows]
        if self._explaining:
            reported = [(label, meaning) for (label, _, _), meaning in zip(rows, meanings, strict=True) if meaning]
            lines = "".join(f"<dt>{html.escape(label)}</dt><dd>{html.escape(text)}</dd>" for label, text in reported)
            shown = f"<dl>{lines}</dl>"
        else:
            lines = "".join(
                self._row(label, meaning, *((texts, tones) if futures else ([texts], [tones])))
                for (label, texts, tones), meaning in zip(rows, meanings, strict=True)
            )
            head = f"<tr class='head'><td></td>{self._cells(futures, [''] * len(futures))}</tr>" if futures else ""
            # A row of one figure may take two lines in the largest type.
            wrapped = 0 if futures else sum(len(label) + len(text) > LINE for label, text, _ in rows)
            high = len(rows) + bool(futures) + wrapped
            size = f"--rows: {high}; --across: {14 + 8 * max(len(futures), 1)}"
            shown = f"<table style='{size}'>{head}{lines}</table>"
        self._turn.visible = any(meanings)
        # A row without a name may take two.
        lines_taken = len(rows) + bool(futures) + sum(not label for label, _, _ in rows)
        set_class(self._rows, "many", lines_taken > MANY)
        set_class(self._rows, "crowded", lines_taken > CROWDED)
        set_changed(self._rows, object=shown)

    def _row(self, label: str, meaning: str, texts: Sequence[str], tones: Sequence[str]) -> str:
        """Return a row; one text without a label has all of its width."""
        if not label and len(texts) == 1:
            return f"<tr><td colspan='3' class='figure'>{html.escape(texts[0])}</td></tr>"
        limit = next((text for beginning, text in _LIMITS.items() if label.startswith(beginning)), "")
        cells = f"{self._cells(texts, tones)}<td class='limit'>{limit}</td>"
        return f"<tr><td title='{html.escape(meaning)}'>{html.escape(label)}</td>{cells}</tr>"

    def _cells(self, texts: Sequence[str], tones: Sequence[str]) -> str:
        """Return the cells of a row: one text, or that of each future."""
        cells = zip(texts, tones, strict=True)
        return "".join(f"<td class='{html.escape(tone)} figure'>{html.escape(text)}</td>" for text, tone in cells)

    def _meaning(self, label: str) -> str:
        """Return the definition of a row by its label, or of every row of this table."""
        each = self._frame.get("each", "") if label else ""
        return definition(label) or definition(each)


def definition(label: str) -> str:
    """Return the definition of a row of the figures, or ""."""
    return next((text for beginning, text in _EXPLANATIONS.items() if label.startswith(beginning)), "")


def title_pane(margin: tuple[int, int, int, int]) -> Text:
    """Return the pane of a card's title."""
    return Text(sizing_mode=None, margin=margin, height=20, stylesheets=[_STYLES["title"], SHEETS["large_card"]])


def surface(*objects: Any, area: str) -> pn.Column:
    """Stack objects on a card with a separate area of the stage's grid.

    The card is a plain column: a React component would repeat the layout of its figures whenever a surrounding
    component enters the page.
    """
    return pn.Column(
        *objects,
        css_classes=[f"area-{area}"],
        sizing_mode="stretch_both",
        styles={"grid-area": area, "min-width": "0", "min-height": "0"},
        stylesheets=[_STYLES["surface"]],
    )

"""Show every experiment of the papers on a card, our figures next to the published ones."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import panel as pn
import panel_material_ui as pmui

from bnnviz.experiments import EXPERIMENTS
from bnnviz.experiments.paper import PAPERS, Paper, paper_of
from bnnviz.experiments.record import records
from bnnviz.experiments.table import summary
from bnnviz_app.address import named
from bnnviz_app.components.cards.experiment_card import ExperimentCard
from bnnviz_app.components.widgets import Text, button
from bnnviz_app.pages.base import TextPage
from bnnviz_app.theme import SHEETS, styles

_OPEN, _ALL = "open", "All papers"
_SAID = 3  # most messages on unknown names in the address
_WHOLE = {"flex": "0 0 auto", "max-height": "none"}  # as high as their content
_SHEETS = [SHEETS["text"], styles(__file__)["title"]]


class _Section:
    """Show the cards of one paper under its title."""

    def __init__(self, paper: Paper, cards: Sequence[ExperimentCard]) -> None:
        self.paper, self.cards = paper, cards
        doi = f" doi:{paper.doi}." if paper.doi else ""
        text = f"{html.escape(paper.authors)}.{html.escape(doi)} {html.escape(paper.about)}"
        text = f"<h2>{html.escape(paper.title)}</h2><p>{text}</p>"
        head = Text(text, sizing_mode="stretch_width", margin=(16, 2, 8, 2), stylesheets=_SHEETS)
        self.root = pn.Column(
            head, *(card.root for card in cards), sizing_mode="stretch_width", margin=0, styles=_WHOLE
        )

    def filter(self, paper: str, text: str) -> int:
        """Show the matching cards, and return their number."""
        shown = 0
        for card in self.cards:
            card.root.visible = paper in (_ALL, self.paper.short) and card.matches(text)
            shown += card.root.visible
        self.root.visible = shown > 0
        return shown


class PapersPage(TextPage):
    """Show the papers."""

    name = "papers"

    def __init__(self, dark: bool, flags: Mapping[str, str], opened: Sequence[str]) -> None:
        super().__init__(dark, flags)
        made = {e.name: ExperimentCard(e, *records(e.name), self._readdress) for e in EXPERIMENTS.values()}
        self.cards = list(made.values())
        self._sections = [
            _Section(paper, [card for card in self.cards if paper_of(card.experiment) is paper]) for paper in PAPERS
        ]
        self._about = Text("", sizing_mode="stretch_width", margin=(14, 2, 4, 2), stylesheets=_SHEETS)
        self._found = Text("", margin=(14, 2, 0, 2), stylesheets=_SHEETS, visible=False)
        self._lay_out(self._about, self._filters(), self._found, *(section.root for section in self._sections))
        self._dress()
        wanted = [made[name] for name in opened if name in made]
        for card in wanted:
            card.turn(True, sought=card is wanted[0])
        self._summarize([f"There is no experiment {name[:40]!r}." for name in opened if name not in made])
        self._readdress()

    # ---- helpers ------------------------------------------------------------------------------------------

    def _filters(self) -> pn.Row:
        """Make the field and the buttons that choose among the cards, and the one that opens all of them."""
        self._text = pmui.TextInput(
            label="Search", placeholder="a method, a data set, a table", size="small", width=320, margin=(8, 16, 4, 2)
        )
        self._paper = pmui.RadioButtonGroup(
            options=[_ALL, *(paper.short for paper in PAPERS)],
            value=_ALL,
            size="small",
            max_width=440,
            margin=(10, 16, 4, 2),
            sx={
                "& button": {"textTransform": "none", "padding": "6px 14px", "whiteSpace": "nowrap"},
                "@media (max-width: 760px)": {"& button": {"padding": "6px 7px"}},
            },
        )
        self._close = button("Close all", self._close_all, margin=(10, 2, 4, 2), disabled=True)
        self._text.param.watch(lambda event: self._filter(), "value_input")
        self._paper.param.watch(lambda event: self._filter(), "value")
        return pn.FlexBox(self._text, self._paper, self._close, margin=0, sizing_mode="stretch_width")

    def _filter(self) -> None:
        text = self._text.value_input or ""
        shown = sum(section.filter(self._paper.value, text) for section in self._sections)
        self._found.visible = not shown
        self._found.object = "" if shown else f"<p>No experiment has all of these words: {html.escape(text[:80])}</p>"
        self.narrator.say(f"{shown} experiments")

    def _summarize(self, unknown: Sequence[str]) -> None:
        """Write the heading of the page, the number of measured experiments, and messages on unknown names."""
        measured = sum(card.measured for card in self.cards)
        total = summary([result for card in self.cards for result in card.results])
        text = (
            f"<b>{len(self.cards)}</b> tables and figures, <b>{measured}</b> of them measured. Printed values: {total}."
            " Values agree within two standard errors; z includes the errors of both values. Each card has the command"
            " that repeats its experiment."
        )
        wrong = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in unknown[:_SAID])
        self._about.object = f"<p>{text}</p>{wrong}"

    def _close_all(self) -> None:
        for card in self.cards:
            if card.open:
                card.turn(False)
        self._readdress()

    def _dress(self) -> None:
        super()._dress()
        for card in self.cards:
            card.dress(self.dark, self.large, self.carried)

    def _in_address(self) -> dict[str, str]:
        opened = [card.experiment.name for card in self.cards if card.open]
        self._close.disabled = not opened
        return {_OPEN: ",".join(opened)} if opened else {}


def build(dark: bool) -> PapersPage:
    """Build the page for the current session."""
    flags, opened = named(pn.state.session_args, _OPEN)
    return PapersPage(dark, flags, opened)

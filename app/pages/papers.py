"""Show every experiment of the papers on a card, our figures next to the published ones."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from bnnviz.experiments import EXPERIMENTS
from bnnviz.experiments.paper import PAPERS, Paper, paper_of
from bnnviz.experiments.record import records
from bnnviz.experiments.table import summary
from bnnviz_app.components.cards.experiment_card import ExperimentCard
from bnnviz_app.components.widgets import Text, WideColumn
from bnnviz_app.pages.base import TextPage
from bnnviz_app.theme import SHEETS, styles

_SAID = 3  # most messages on unknown names in the address
_WHOLE = {"flex": "0 0 auto", "max-height": "none"}  # as high as their content
_SHEETS = [SHEETS["text"], styles(__file__)["title"]]


class PapersPage(TextPage):
    """Show the papers."""

    name, listed = "papers", "open"

    def __init__(self, dark: bool, flags: Mapping[str, str], opened: Sequence[str]) -> None:
        super().__init__(dark, flags)
        made = {e.name: ExperimentCard(e, *records(e.name), self._readdress) for e in EXPERIMENTS.values()}
        self.cards = list(made.values())
        self._about = Text(margin=(14, 2, 4, 2), stylesheets=_SHEETS)
        self._lay_out(self._about, *map(self._section, PAPERS))
        self._dress()
        requested = [made[name] for name in opened if name in made]
        for card in requested:
            card.turn(True, sought=card is requested[0])
        self._summarize([f"There is no experiment {name[:40]!r}." for name in opened if name not in made])
        self._readdress()

    def _section(self, paper: Paper) -> WideColumn:
        """Return the cards of a paper under its title."""
        doi = f" doi:{paper.doi}." if paper.doi else ""
        about = html.escape(f"{paper.authors}.{doi} {paper.about}")
        text = f"<h2>{html.escape(paper.title)}</h2><p>{about}</p>"
        head = Text(text, margin=(16, 2, 8, 2), stylesheets=_SHEETS)
        cards = (card.root for card in self.cards if paper_of(card.experiment) is paper)
        return WideColumn(head, *cards, styles=_WHOLE)

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

    def _dress(self) -> None:
        super()._dress()
        for card in self.cards:
            card.dress(self.dark, self.large, self.carried)

    def _in_address(self) -> dict[str, str]:
        opened = [card.experiment.name for card in self.cards if card.open]
        return {self.listed: ",".join(opened)} if opened else {}


build = PapersPage.build

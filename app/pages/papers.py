"""The Papers: every experiment of the papers on a card, our figures beside the published ones."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

import panel as pn
import panel_material_ui as pmui

from bnnviz.experiments import EXPERIMENTS
from bnnviz.experiments.paper import PAPERS, Paper, paper_of
from bnnviz.experiments.results import records
from bnnviz.specs import url
from bnnviz_app.address import Address, named
from bnnviz_app.components.cards.experiment_card import PaperCard
from bnnviz_app.components.guidance.help import Guide
from bnnviz_app.components.guidance.narrator import Narrator
from bnnviz_app.components.run.tools import tool

_NAME, _OPEN, _ALL = "papers", "open", "All papers"
_SAID = 3  # names of the address that there are not
_SIZE = "var(--size, 1)"
_WHOLE = {"flex": "0 0 auto", "max-height": "none"}  # as high as what they hold: the page scrolls
_WORDS = {
    "published, measured": "the paper's figure, and ours: the mean over runs with different seeds or splits",
    "standard error": "of our mean, over the runs; with few runs it is itself a rough guess. What the papers' own is,"
    " they do not say",
    "measured on this machine": "what bnnviz reproduce came to here; it goes before what came with bnnviz",
}
_PAGE = """
:host {height: 100%; min-height: 0; overflow: hidden auto; background: var(--mui-palette-background-default)}
:host(.large) {--size: 1.25}
.scroll-button {display: none !important}
"""
_TITLE = f"""
:host {{color: var(--mui-palette-text-primary); font-size: calc(14.5px * {_SIZE}); line-height: 1.45}}
h1 {{font-size: calc(24px * {_SIZE}); font-weight: 500; margin: 0 0 2px; line-height: 1.25}}
h2 {{font-size: calc(19px * {_SIZE}); font-weight: 500; margin: 0; line-height: 1.3}}
p {{margin: 2px 0 0; color: var(--mui-palette-text-secondary); max-width: 125ch}}
b {{font-weight: 600; color: var(--mui-palette-text-primary)}}
"""


class _Section:
    """The cards of one paper under its title."""

    def __init__(self, paper: Paper, cards: Sequence[PaperCard]) -> None:
        self.paper, self.cards = paper, cards
        text = f"<h2>{html.escape(paper.title)}</h2><p>{html.escape(paper.authors)}. {html.escape(paper.about)}</p>"
        head = pn.pane.HTML(text, sizing_mode="stretch_width", margin=(16, 2, 8, 2), stylesheets=[_TITLE])
        self.root = pn.Column(
            head, *(card.root for card in cards), sizing_mode="stretch_width", margin=0, styles=_WHOLE
        )

    def filter(self, paper: str, text: str) -> int:
        """Show the cards that are asked for, and return how many these are."""
        shown = 0
        for card in self.cards:
            card.root.visible = paper in (_ALL, self.paper.short) and card.matches(text)
            shown += card.root.visible
        self.root.visible = shown > 0
        return shown


class PapersPage:
    """The page of one session.

    Parameters
    ----------
    dark : bool
        Whether it begins dark.
    flags : dict of str
        Parameters of the address that stay in it.
    opened : sequence of str
        The experiments whose cards are open.
    """

    def __init__(self, dark: bool, flags: Mapping[str, str], opened: Sequence[str]) -> None:
        self._flags, self._dark = dict(flags), dark
        self.large = self._flags.get("projector", "0") not in ("0", "")
        self.on_large: Callable[[], None] = lambda: None  # told when the projector is switched on or off
        self.guide, self.narrator, self.address = Guide(None, _WORDS), Narrator(), Address()
        made = {e.name: PaperCard(e, *records(e.name), self._turned) for e in EXPERIMENTS.values()}
        self.cards = list(made.values())
        self._sections = [
            _Section(paper, [card for card in self.cards if paper_of(card.experiment) is paper]) for paper in PAPERS
        ]
        self._made_of = pn.pane.HTML("", sizing_mode="stretch_width", margin=(14, 2, 4, 2), stylesheets=[_TITLE])
        self._found = pn.pane.HTML("", margin=(14, 2, 0, 2), stylesheets=[_TITLE], visible=False)
        self.column = pn.Column(
            self._made_of,
            self._filters(),
            self._found,
            *(section.root for section in self._sections),
            sizing_mode="stretch_width",
            margin=(0, 24, 30, 24),
            styles=_WHOLE,
        )
        hidden = (self.guide.root, self.address, self.narrator.root)
        self._outer = pn.Column(self.column, *hidden, sizing_mode="stretch_both", margin=0, stylesheets=[_PAGE])
        self.main, self.sidebar = [self._outer], []
        self.tools = pn.Row(tool("Projector", lambda event: self._project()), margin=0, align="center")
        self._dress()
        wanted = [made[name] for name in opened if name in made]
        for card in wanted:
            card.turn(True, sought=card is wanted[0])
        self._summary([name for name in opened if name not in made])
        self._readdress()

    def theme(self, dark: bool) -> None:
        """Turn light or dark."""
        self._dark = dark
        self._flags |= {"theme": "dark" if dark else "default"}
        self.guide.theme(dark)
        self._dress()
        self._readdress()

    def close(self) -> None:
        """End what the page runs, which is nothing."""

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
            width=440,
            margin=(10, 16, 4, 2),
            sx={"& button": {"textTransform": "none", "padding": "6px 14px", "whiteSpace": "nowrap"}},
        )
        self._closed = pmui.Button(label="Close all", variant="text", size="small", margin=(10, 2, 4, 2), disabled=True)
        self._text.param.watch(lambda event: self._filter(), "value_input")
        self._paper.param.watch(lambda event: self._filter(), "value")
        self._closed.on_click(lambda event: self._close_all())
        return pn.Row(self._text, self._paper, self._closed, margin=0, sizing_mode="stretch_width")

    def _filter(self) -> None:
        text = self._text.value_input or ""
        shown = sum(section.filter(self._paper.value, text) for section in self._sections)
        self._found.visible = not shown
        self._found.object = "" if shown else f"<p>No experiment has all of these words: {html.escape(text[:80])}</p>"
        self.narrator.say(f"{shown} experiments")

    def _summary(self, unknown: Sequence[str]) -> None:
        """Say what the page is, how much of it is measured, and what of the address there is not."""
        comparisons = [card.comparison for card in self.cards]
        near, tested = sum(c.near for c in comparisons), sum(c.tested for c in comparisons)
        measured = sum(card.measured for card in self.cards)
        text = (
            f"<b>{len(self.cards)}</b> tables and figures, <b>{measured}</b> of them measured; of {tested:,} figures"
            f" that can be compared, <b>{near:,}</b> are within two standard errors of the published ones. Each card"
            " says why the others differ, and has the command that runs it."
        )
        wrong = "".join(
            f"<p>There is no experiment {html.escape(repr(name[:40]))}; its card was left out.</p>"
            for name in unknown[:_SAID]
        )
        self._made_of.object = f"<h1>The papers’ figures, beside ours</h1><p>{text}</p>{wrong}"

    def _turned(self, card: PaperCard) -> None:
        self._readdress()

    def _close_all(self) -> None:
        for card in self.cards:
            if card.open:
                card.turn(False)
        self._readdress()

    def _dress(self) -> None:
        self._outer.css_classes = ["large"] if self.large else []
        kept = {name: self._flags[name] for name in ("theme", "projector") if name in self._flags}
        for card in self.cards:
            card.dress(self._dark, self.large, kept)

    def _project(self) -> None:
        """Turn projector mode on or off."""
        self.large = not self.large
        self._flags = {name: text for name, text in self._flags.items() if name != "projector"}
        self._flags |= {"projector": "1"} if self.large else {}
        self._dress()
        self._readdress()
        self.on_large()

    def _readdress(self) -> None:
        opened = [card.experiment.name for card in self.cards if card.open]
        self._closed.disabled = not opened
        said = {_OPEN: ",".join(opened)} if opened else {}
        self.address.query = url.query_text({"page": _NAME, **said, **self._flags})


def build(dark: bool) -> PapersPage:
    """Build the page for the current session."""
    flags, opened = named(pn.state.session_args, _OPEN)
    return PapersPage(dark, flags | ({"theme": "dark"} if dark else {}), opened)

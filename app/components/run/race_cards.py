"""Show the samplers of a race: their cards and grid, and a transport bar with the budget."""

from __future__ import annotations

import html
import math
from typing import Any

from bnnviz.figures.base import Figure
from bnnviz.figures.listing import of_entry
from bnnviz.figures.live.view import View
from bnnviz.numerals import count
from bnnviz_app.components.cards.cards import Card
from bnnviz_app.components.run.transport import Cell, StepTransport, rate
from bnnviz_app.components.widgets import Text, WideRow, set_changed
from bnnviz_app.session import Session
from bnnviz_app.theme import entry_colour, styles

TITLES = {"path": "Trajectories", "prediction": "Predictions"}
LEAST_HEIGHT = 80  # pixels
# Heights in pixels: the table without its rows, a row, and the largest table, whose rows are closer.
_TABLE = 52, 27, "27vh"
_LARGE_TABLE = 66, 32, "29vh"  # the same for a projector
_STYLES = styles(__file__)


def grid(entries: int, large: bool = False) -> str:
    """Return the CSS grid template: the samplers, the curves at their side, and the table below."""
    table, row_height, most = _LARGE_TABLE if large else _TABLE
    if entries == 3:
        # The curves are the fourth of four.
        rows = [["entry0"] * 3 + ["entry1"] * 3, ["entry2"] * 3 + ["curves"] * 3]
        columns = "minmax(0, 1fr) " * 6
    else:
        across = 2 if entries in (2, 4) else 3
        beside = [list(range(i, min(i + across, entries))) for i in range(0, entries, across)]
        rows = [[f"entry{number}" for number in row for _ in range(6 // len(row))] + ["curves"] for row in beside]
        columns = "minmax(0, 1fr) " * 6 + "minmax(0, 2.6fr)"
    wide = len(rows[0])
    lines = [(["caption"] * wide, "auto"), *((row, "minmax(0, 1fr)") for row in rows)]
    lines.append((["table"] * wide, f"min({table + row_height * entries}px, {most})"))
    # A template that names areas takes no repeat().
    return "\n" + "\n".join(f'"{" ".join(areas)}" {height}' for areas, height in lines) + f" / {columns}\n"


class EntryCard(Card):
    """Show one picture of one sampler, with its colour, its spent budget and its divergence."""

    def __init__(self, picture: type[Figure], number: int, name: str, dark: bool) -> None:
        self.name, self.number, self.part = name, number, picture.needs[0]
        self._spent, self._badge = 0.0, ""
        view = View(of_entry(picture, number, name), dark=dark)
        view.root.min_height = LEAST_HEIGHT
        super().__init__(view, place=f"entry{number}", legend=False)
        self._title.stylesheets = [*self._title.stylesheets, _STYLES["entry"]]

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new race; with a known density, all samplers keep its window."""
        super().reset(scene)
        self.view.follow = scene["entries"][self.number]["plane"]["contour"] is None

    def stand(self, entry: dict[str, Any], budget: int, chains: int) -> None:
        """Show the progress of the sampler."""
        self._spent = entry["spent"] / budget
        self._badge = "diverged" if entry["diverged"] else f"{entry['lost']} of {chains} lost" if entry["lost"] else ""
        set_changed(self._title, object=self._heading())

    def _heading(self) -> str:
        colour = entry_colour(self.number)
        share = f"{100 * self._spent:.0f}"
        spent = f"<i style='width:{share}%; background:{colour}'></i>"
        bar = f"<span class='bar' title='{share}% of its budget spent'>{spent}</span>"
        badge = f"<span class='lost'>{html.escape(self._badge)}</span>" if self._badge else ""
        chip = f"<span class='chip' style='background:{colour}'></span>"
        return f"<h2>{chip}<b>{html.escape(self.name)}</b>{bar}{badge}</h2>"


class RaceTransport(StepTransport):
    """Show buttons for a race, and the budget where a run has its timeline."""

    def __init__(self, session: Session, pictures: Any = None) -> None:
        self._budget = Text(height=36, margin=(0, 14), stylesheets=[_STYLES["budget"]])
        middle = [self._budget] if pictures is None else [pictures, self._budget]
        super().__init__(session, middle=WideRow(*middle))

    def update(self, frame: dict[str, Any]) -> None:
        """Show a frame."""
        super().update(frame)
        status = frame["status"]
        spent, budget = max(entry["spent"] for entry in status["entries"]), status["budget"]
        share = f"{100 * status['progress']:.1f}"
        self._budget.object = (
            f"<div class='budget'><span class='track' role='progressbar' aria-label='Budget' aria-valuenow='{share}'>"
            f"<i style='width:{share}%'></i></span><span>{spent:,} of {budget:,} gradients each</span></div>"
        )

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin a new race."""
        super().reset(scene)
        self._budget.object = ""

    def _phase(self, status: dict[str, Any]) -> str:
        return super()._phase(status | {"phase": "preparing"} if status["phase"] == "start" else status)

    def _figures(self, status: dict[str, Any]) -> list[Cell]:
        return [
            (84, "step", count(status["step"]), "steps"),
            (130, "gradients", rate(status, "gradients_per_s"), "gradients/s"),
            (150, "spent", count(max(entry["spent"] for entry in status["entries"])), "gradients each"),
        ]

    def _cells(self, status: dict[str, Any]) -> list[Cell]:
        return [*super()._cells(status), (0, "reference", html.escape(_reference_text(status["reference"])), "")]


def _reference_text(reference: dict[str, Any] | None) -> str:
    """Show the progress of the reference."""
    if reference is None or reference["error"]:
        return ""
    if reference["finished"]:
        quality = f", R-hat {reference['rhat']:.2f}" if math.isfinite(reference["rhat"]) else ""
        return f"reference: {reference['title']}, {reference['draws']:,} draws{quality}"
    sampled = f"{reference['draws']:,} of {reference['goal']:,} draws"
    return f"reference: {reference['title']}, {sampled if reference['phase'] == 'sampling' else reference['phase']}"

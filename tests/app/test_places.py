"""Figures that share a place of the Lab's stage, and the chip that opens the diagnostics."""

from __future__ import annotations

import pytest

from bnnviz.figures.places import shared_out
from bnnviz_app.components.cards.chip import FEWEST, Chip, judged
from bnnviz_app.heartbeat import Heartbeat

NETWORK = frozenset(
    {"path", "acf", "envelope", "weights", "marginal", "ratios", "trace", "graph", "prediction", "table"}
)


def test_every_part_has_one_place_and_without_events_the_path_is_seen_beside_the_prediction() -> None:
    shares = shared_out(NETWORK)
    assert sorted(part for parts in shares.values() for part in parts) == sorted(NETWORK)
    assert shares["main"] == ["prediction", "path", "graph"] and shares["why"] == ["envelope"]
    shares = shared_out(NETWORK - {"envelope"})
    assert shares["main"] == ["prediction", "graph"] and shares["why"] == ["path"]
    assert shared_out({"path", "trace"})["main"] == ["path"]


ROWS = [["R-hat", "1.4", "bad"], ["ESS of the energy U", "30", ""]]


@pytest.mark.parametrize(
    "draws, warning, rows, colour",
    [
        (FEWEST - 1, "", ROWS, "default"),
        (FEWEST, "", ROWS, "danger"),
        (FEWEST, "", ROWS[1:], "success"),
        (0, "The envelope was exceeded.", [], "danger"),
    ],
)
def test_the_chip_has_the_colour_of_the_worst_diagnostic(draws: int, warning: str, rows: list, colour: str) -> None:
    assert judged(draws, {"warning": warning}, rows)[0] == colour


def test_the_chip_judges_the_followed_branch_of_a_fork() -> None:
    reasons: list[str] = []
    chip = Chip(lambda: None, reasons.append, Heartbeat(str))
    status = {"playing": False, "chains": 4, "ess": 9.0, "draws": FEWEST, "futures": [{"letter": "A"}, {"letter": "B"}]}
    table = {"rows": [["R-hat of functions", ("1.00", "2.49"), ("good", "bad")]], "futures": ["B", "A"]}
    for followed, colour in ((0, "danger"), (1, "success")):
        chip.update({"caption": {"warning": ""}, "table": table, "status": status | {"followed": followed}})
        assert chip.root.button_type == colour
    assert "R-hat of functions: 2.49." in reasons[0]

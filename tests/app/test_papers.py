"""The Papers page without a browser: a card for each experiment, its table, its links and its figures."""

from __future__ import annotations

import dataclasses
import html
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from bokeh.models import Plot

from bnnviz import paths
from bnnviz.experiments import EXPERIMENTS, Case, Experiment, record
from bnnviz.experiments.published import Printed
from bnnviz.figures.palette import DARK
from bnnviz.specs.race import ImageRaceSpec
from bnnviz.specs.run import Spec
from bnnviz.specs.wells import WellsSpec
from bnnviz_app import deep_links
from bnnviz_app.components.cards.experiment_card import ExperimentCard
from bnnviz_app.pages import PAGES
from bnnviz_app.pages.papers import PapersPage

NAME = "pdmp-table1"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Keep this machine's records in a folder of the test."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    return paths.results()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what puts an experiment that takes no time in the place of a real one."""

    def put(**changes: Any) -> Experiment:
        target = {"data": "toy_c", "hidden": "2", "points": [[-0.2, 0.1], [0.2, 0.3]]}
        specs = tuple(Spec("network", target, "bps", {"mode_steps": 20}, 1, 8, 2, seed) for seed in range(2))
        cases = (Case("one", specs, {"rmse": Printed(0.5, 0.01, 0.01)}), Case("two", specs))
        made = Experiment(NAME, "Small (PDMP paper, Table 1)", "Little.", ("rmse", "grad_evals"), cases, why="Why.")
        made = dataclasses.replace(made, **changes)
        monkeypatch.setitem(EXPERIMENTS, NAME, made)
        return made

    return put


def opened(*names: str) -> list[Any]:
    return [card for card in PapersPage(False, {}, names or [NAME]).cards if card.open]


def texts(card: Any) -> str:
    return " ".join(str(item.object) for item in card._body if isinstance(getattr(item, "object", None), str))


def drawn(card: Any) -> Any:
    (found,) = [item.object for item in card._body if hasattr(item, "object") and not isinstance(item.object, str)]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_card_opens(experiment: Experiment) -> None:
    card = ExperimentCard(experiment, *record.records(experiment.name), lambda: None)
    assert len(card._body) == 0
    card.turn(True)
    assert all(html.escape(case.name) in texts(card) for case in experiment.cases)
    assert f"bnnviz reproduce {experiment.name}" in [getattr(item, "line", "") for item in card._body]
    card.turn(False)
    assert len(card._body) == 0


def test_a_sweep_is_drawn_from_its_rows(small: Any, folder: Path) -> None:
    at = [{"setting": "rate", "value": value, "sampler": "bps"} for value in (1.0, 2.0)]
    cases = tuple(dataclasses.replace(case, at=where) for case, where in zip(small().cases, at, strict=True))
    made = small(cases=cases)
    done = [{"rmse": 0.9, "grad_evals": 10}, {"rmse": 0.8, "grad_evals": 12}]
    record.write(made, {"one": done, "two": done}, 3.0, folder)
    (card,) = [card for card in PapersPage(True, {}, [NAME]).cards if card.open]
    found = list(drawn(card).select({"type": Plot}))
    assert len(found) == 2 and {plot.background_fill_color for plot in found} == {DARK.surface}


def test_predictions_are_drawn_from_their_record(small: Any, folder: Path) -> None:
    x = np.linspace(0, 1, 5)
    part = {"x": x, "mean": x, "lo50": x - 1, "hi50": x + 1, "lo95": x - 2, "hi95": x + 2}
    data = {"x": x, "y": x, "x_range": [0.0, 1.0], "y_range": [-1.0, 1.0], "x_label": "x", "y_label": "y"}
    cases = [dataclasses.replace(case, at={"data": "toy_a", "sampler": case.name}) for case in small().cases]
    made = small(cases=tuple(cases), bands=True)
    done = [{"rmse": 0.5, "grad_evals": 10, "band": {"part": part, "data": data}}] * 2
    record.write(made, {"one": done, "two": done[:1]}, 1.0, folder)
    (card,) = opened()
    assert {plot.title.text for plot in drawn(card).select({"type": Plot})} == {"one, toy_a", "two, toy_a"}


# --- links


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_links_of_an_experiment_open_what_it_runs(experiment: Experiment) -> None:
    for case in experiment.cases:
        found = deep_links.deep_link(case.specs[0])
        if found is None:
            continue
        given = parse_qs(found.query())
        (page,) = given.pop("page")
        assert page in PAGES
        spec, sentences = type(found.spec)().read_query(given)
        assert (spec, sentences) == (case.specs[0].checked(), [])


def test_populations_wells_and_images_open_on_their_pages(small: Any) -> None:
    assert deep_links.deep_link(Spec("network", {"data": "toy_c"}, "pmcnet_light")).page == "population"
    assert deep_links.deep_link(WellsSpec({"seed": 2})).query({"theme": "dark"}) == "page=wells&seed=2&theme=dark"
    target = {"data": "mnist", "network": "lenet5", "train_rows": 100, "test_rows": 50}
    cases = tuple(Case(name, (Spec("images", target, name, {}, 1, 10, 2),)) for name in ("bps", "sgld"))
    found = deep_links.together(small(cases=cases))
    given = parse_qs(found.query())
    assert given.pop("page") == ["uncertainty"]
    spec, sentences = found.spec.read_query(given)
    assert sentences == [] and isinstance(spec, ImageRaceSpec)
    assert [entry.sampler for entry in spec.entries] == ["bps", "sgld"]
    assert deep_links.deep_link(cases[0].specs[0]) is None
    assert deep_links.together(small(cases=cases[:1])) is None

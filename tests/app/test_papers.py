"""The Papers page without a browser: which records count, comparisons, links, a card for each experiment."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from bokeh.models import Plot, Toolbar

from bnnviz import experiments, plots
from bnnviz.cli.main import main
from bnnviz.errors import BnnvizError
from bnnviz.experiments import Case, Experiment, results
from bnnviz.experiments.comparison import Figure, compare, figures
from bnnviz.experiments.editions import first_edition
from bnnviz.experiments.paper import PAPERS, heading, paper_of
from bnnviz.specs import url
from bnnviz.specs.demo import DoubleWellSpec
from bnnviz.specs.race import ImageRaceSpec
from bnnviz.specs.run import Spec
from bnnviz.version import VERSION
from bnnviz.views import DARK
from bnnviz_app import address, deep_links
from bnnviz_app.components.still import still
from bnnviz_app.pages import PAGES
from bnnviz_app.pages.papers import PapersPage

ALL = list(experiments.EXPERIMENTS.values())
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
named = pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Path]:
    """Have this machine's records in a folder of the test's own, and name both folders."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    return {"own": results.user_folder(), "shipped": results.SHIPPED}


class Told(Experiment):
    """An experiment that has its summaries without a run."""

    def reproduce(
        self, repetitions: int | None = None, cluster: None = None
    ) -> Iterator[tuple[Case, int, dict[str, Any]]]:
        """Yield what is told."""
        for case in self.cases:
            for i, _ in enumerate(case.specs[:repetitions]):
                yield case, i, {"rmse": 1 / (3 + i), "grad_evals": 10}


def small(name: str = "pdmp-table1", **changes: Any) -> Experiment:
    """Return an experiment that takes no time."""
    target = {"data": "toy_c", "hidden": "2", "points": [[-0.2, 0.1], [0.2, 0.3]]}
    specs = tuple(Spec("network", target, "bps", {"mode_steps": 20}, 1, 8, 2, seed) for seed in range(2))
    cases = (Case("one", specs, {"rmse": 0.5}, "Why."), Case("two", specs, {}))
    made = Experiment(name, "Small (PDMP paper, Table 1)", "Little.", ("rmse", "grad_evals"), cases)
    return dataclasses.replace(made, **changes)


def summaries(*values: float) -> list[dict[str, Any]]:
    return [{"rmse": value, "grad_evals": 10} for value in values]


def record(folder: Path, *values: float) -> Path:
    """Write a record of the small experiment."""
    return results.write(small(), {"one": summaries(*values), "two": summaries(*values)}, 3.0, folder)


def run_here(line: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    return ended.value.code


# --- records


@named
def test_what_comes_with_bnnviz_is_a_record_of_cases_that_there_are(experiment: Experiment) -> None:
    found, sentences = results.records(experiment.name)
    assert sentences == []
    for one in found:
        part = experiment.at(one.part.get("data"), one.part.get("scale")) if one.part else experiment
        assert not one.here
        assert DATE.fullmatch(one.date)
        assert one.device
        assert one.seconds > 0
        assert {row["case"] for row in one.rows} <= {case.name for case in part.cases}
        assert all(len(json.dumps(panel)) <= results.MOST_BYTES for panel in one.panels)
        for row in one.rows:
            case = next(case for case in part.cases if case.name == row["case"])
            assert row["runs"] <= len(case.specs)
            printed = {key: row.get(f"{key}_published") for key in part.measures}
            assert printed == {key: case.published.get(key) for key in part.measures}


def test_files_that_come_with_bnnviz_are_of_experiments_that_there_are() -> None:
    names = {path.name.removesuffix(".json").split(",")[0] for path in results.SHIPPED.iterdir()}
    assert names
    assert names <= set(experiments.EXPERIMENTS)


def test_a_record_says_what_was_measured_and_where(tmp_path: Path) -> None:
    path = record(tmp_path, 0.4, 0.6)
    one = results.read(path, "pdmp-table1", here=False)
    assert (one.version, one.seconds, one.part, one.runs, one.panels) == (VERSION, 3.0, {}, 4, [])
    assert one.row("one")["rmse"] == pytest.approx(0.5)
    assert one.row("one")["rmse_se"] == pytest.approx(0.1)
    assert one.row("none") is None


def test_this_machine_s_record_goes_before_what_came_with_bnnviz(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "SHIPPED", tmp_path / "shipped")
    assert results.records("pdmp-table1") == ([], [])
    record(tmp_path / "shipped", 0.3)
    ((shipped,), _) = results.records("pdmp-table1")
    assert (shipped.here, shipped.row("one")["rmse"]) == (False, pytest.approx(0.3))
    record(folders["own"], 0.9)
    ((own,), _) = results.records("pdmp-table1")
    assert (own.here, own.row("one")["rmse"]) == (True, pytest.approx(0.9))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"format": 1}', '{"format": 99, "experiment": "pdmp-table1"}', "\x00\xff"],
)
def test_a_file_that_is_no_record_is_a_sentence_and_the_next_one_counts(
    text: str, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "SHIPPED", tmp_path / "shipped")
    record(tmp_path / "shipped", 0.3)
    folders["own"].mkdir(parents=True)
    (folders["own"] / "pdmp-table1.json").write_text(text, encoding="latin-1")
    found, (sentence,) = results.records("pdmp-table1")
    assert [one.here for one in found] == [False]
    assert "pdmp-table1.json" in sentence
    assert sentence.endswith("write it again with: bnnviz reproduce pdmp-table1.")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("experiment", "pdmp-fig3"),
        ("rows", [{"case": "one"}]),
        ("rows", [{"case": "one", "runs": 1, "rmse": "low", "rmse_se": None}]),
        ("rows", "none"),
        ("seconds", "long"),
        ("panels", [["heading"]]),
        ("part", None),
    ],
)
def test_a_record_that_was_changed_is_refused(key: str, value: Any, tmp_path: Path) -> None:
    path = record(tmp_path, 0.4)
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(BnnvizError, match=r"install bnnviz again\.$"):
        results.read(path, "pdmp-table1", here=False)


def test_reproduce_keeps_its_rows_and_a_longer_record_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Told(**{field.name: getattr(small(), field.name) for field in dataclasses.fields(Experiment)})
    monkeypatch.setitem(experiments.EXPERIMENTS, "pdmp-table1", told)
    assert run_here("reproduce pdmp-table1 --json") == 0
    printed = json.loads(capsys.readouterr().out)
    ((kept,), sentences) = results.records("pdmp-table1")
    assert (kept.here, sentences, kept.runs) == (True, [], 4)
    for ours, theirs in zip(kept.rows, printed, strict=True):
        assert ours["case"] == theirs["case"]
        assert ours["rmse"] == pytest.approx(theirs["rmse"], rel=1e-4)
        assert ours["rmse_se"] == pytest.approx(theirs["rmse_se"], rel=1e-4)
    assert run_here("reproduce pdmp-table1 --repetitions 1") == 0
    assert results.records("pdmp-table1")[0][0].runs == 4


def test_the_maintainers_command_writes_a_record_of_real_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "SHIPPED", tmp_path)
    monkeypatch.setitem(experiments.EXPERIMENTS, "pdmp-table1", small())
    assert results.main(["pdmp-table1", "--repetitions", "1"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "pdmp-table1.json")
    assert results.records("pdmp-table1")[0][0].runs == 2
    assert results.main(["nothing"]) == 2
    assert "choose one of" in capsys.readouterr().err


def test_a_large_picture_is_left_out_and_what_is_no_number_is_nothing(tmp_path: Path) -> None:
    class Drawn(Experiment):
        def panels(self, done: Any) -> list[Any]:
            return [("One", "roc", {"values": done["one"][0]["values"]})]

    made = Drawn(**{field.name: getattr(small(), field.name) for field in dataclasses.fields(Experiment)})
    for count, kept in ((10, 1), (results.MOST_BYTES, 0)):
        done = {"one": [{"rmse": math.nan, "values": [math.inf, *[1 / 3] * count]}]}
        one = results.read(results.write(made, done, 1.0, tmp_path), made.name, here=False)
        assert one.row("one")["rmse"] is None
        assert len(one.panels) == kept
        assert not kept or one.panels[0][2]["values"][:2] == [None, 0.33333]


# --- what they come to


def test_a_figure_is_off_by_its_standard_errors() -> None:
    def figure(ours: float | None, error: float | None, theirs: float | None) -> Figure:
        return Figure("case", "rmse", ours, error, theirs)

    assert figure(1.2, 0.1, 1.0).off == pytest.approx(2.0)
    assert not figure(1.19, 0.1, 1.0).differs
    assert figure(0.7, 0.1, 1.0).differs
    assert [figure(*known).off for known in ((None, None, 1.0), (1.0, None, 1.0), (1.0, 0.1, None))] == [None] * 3
    assert (figure(1.0, 0.0, 1.0).off, figure(1.0, 0.0, 2.0).off) == (0.0, -math.inf)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((), "not measured yet"),
        ((0.4,), "1 published figures beside a single run each"),
        ((0.45, 0.55), "1 of 1 within two standard errors"),
        ((0.9, 0.91), "0 of 1 within two standard errors"),
    ],
)
def test_the_comparison_counts_what_can_be_judged(values: tuple[float, ...], text: str) -> None:
    made = small()
    rows = [made.row(case, summaries(*values)) for case in made.cases] if values else []
    assert compare(figures(made, rows)).text == text


def test_published_figures_are_the_experiment_s_not_the_record_s() -> None:
    made = small()
    rows = [made.row(case, summaries(0.4)) | {"rmse_published": 9.0} for case in made.cases]
    assert [f.published for f in figures(made, rows) if f.measure == "rmse"] == [0.5, None]


@named
def test_every_experiment_is_of_a_paper(experiment: Experiment) -> None:
    assert paper_of(experiment) in PAPERS
    what, place = heading(experiment)
    assert what
    assert place
    assert "paper" not in place


def test_a_title_without_a_paper_stays_whole() -> None:
    assert heading(small(title="Small")) == ("Small", "")
    assert paper_of(small("mine")) is None


def test_the_first_edition_is_as_printed() -> None:
    found = first_edition(experiments.find("pdmp-table1"))
    assert (
        found["BPS, all rows"] == found["BPS, Algorithm 2, all rows"] == {"nll": 51.26, "rmse": 3.81, "ess_pc1": 2.73}
    )
    assert "rmse" not in found.get("SGLD", {})
    images = experiments.find("pdmp-table2")
    assert first_edition(images)["SGLD"] == {"accuracy": 0.99, "nll": 6.1, "ece": 0.09}
    assert first_edition(images.at("cifar100", None))["SGLD"]["accuracy"] == 0.64
    assert {e.name for e in ALL if first_edition(e)} == {"pdmp-table1", "pdmp-table2"}


# --- links


@named
def test_links_of_an_experiment_open_what_it_runs(experiment: Experiment) -> None:
    for case in experiment.cases:
        found = deep_links.deep_link(case.specs[0]) if case.specs else None
        if found is None:
            continue
        given = parse_qs(found.query())
        (page,) = given.pop("page")
        assert page in PAGES
        spec, sentences = type(found.spec)().read_query(given)
        assert sentences == []
        assert spec == case.specs[0].checked()


def test_what_a_link_cannot_hold_has_none() -> None:
    network = Spec("network", {"data": "toy_c"}, "bps")
    assert deep_links.deep_link(network).page == "lab"
    assert deep_links.deep_link(network.replace(chains=url.MOST_CHAINS + 1)) is None
    assert deep_links.deep_link(network.replace(target_settings={"data": "toy_c", "hidden": "2000-2000"})) is None
    assert deep_links.deep_link(network.replace(settings={"refresh_rate": -1})) is None


def test_a_population_and_the_wells_open_on_pages_of_their_own() -> None:
    assert deep_links.deep_link(Spec("network", {"data": "toy_c"}, "pmcnet_light")).page == "population"
    assert deep_links.deep_link(DoubleWellSpec({"seed": 2})).query({"theme": "dark"}) == "page=wells&seed=2&theme=dark"


def test_samplers_on_images_open_side_by_side() -> None:
    target = {"data": "mnist", "network": "lenet5", "train_rows": 100, "test_rows": 50}
    case = [Case(name, (Spec("images", target, name, {}, 1, 10, 2),), {}) for name in ("bps", "sgld")]
    found = deep_links.together(small(cases=tuple(case)))
    given = parse_qs(found.query())
    assert given.pop("page") == ["uncertainty"]
    spec, sentences = found.spec.read_query(given)
    assert sentences == []
    assert isinstance(spec, ImageRaceSpec)
    assert [lane.sampler for lane in spec.lanes] == ["bps", "sgld"]
    assert deep_links.deep_link(case[0].specs[0]) is None
    assert deep_links.together(small(cases=tuple(case[:1]))) is None
    assert deep_links.together(small()) is None


# --- the page


def texts(card: Any) -> str:
    """Return what the body of a card says."""
    return " ".join(str(item.object) for item in card._body if hasattr(item, "object") and isinstance(item.object, str))


@pytest.mark.slow
def test_every_experiment_has_a_card_that_opens() -> None:
    shown = PapersPage(False, {}, [])
    assert [card.experiment for card in shown.cards] == ALL
    for card in shown.cards:
        assert len(card._body) == 0
        card.turn(True)
        said = texts(card)
        assert all(html.escape(case.name) in said for case in card.experiment.cases)
        assert f"bnnviz reproduce {card.experiment.name}" in [getattr(item, "line", "") for item in card._body]
        (who,) = {"Nobody has measured", "by the authors of bnnviz"} & set(
            re.findall("Nobody has measured|by the authors of bnnviz", said)
        )
        assert card.measured == (who != "Nobody has measured")
        card.turn(False)
        assert len(card._body) == 0


def test_the_address_opens_cards_and_follows_them() -> None:
    flags, opened = address.named({"open": [b"pdmp-table1,nope,func-wells"], "projector": [b"1"]}, "open")
    shown = PapersPage(True, flags | {"theme": "dark"}, opened)
    assert shown.large
    assert [card.experiment.name for card in shown.cards if card.open] == ["pdmp-table1", "func-wells"]
    assert "&#x27;nope&#x27;" in shown._about.object
    assert shown.address.query == "page=papers&open=pdmp-table1,func-wells&projector=1&theme=dark"
    shown._close_all()
    assert shown.address.query == "page=papers&projector=1&theme=dark"


def test_words_and_papers_choose_among_the_cards() -> None:
    shown = PapersPage(False, {}, [])
    shown._text.value_input = "double WELL"
    assert [card.experiment.name for card in shown.cards if card.root.visible] == ["func-wells"]
    shown._paper.value = PAPERS[0].short
    assert not any(card.root.visible for card in shown.cards)
    assert "No experiment has all of these words" in shown._found.object
    shown._text.value_input = ""
    assert {card.experiment.name for card in shown.cards if card.root.visible} == {
        e.name for e in ALL if paper_of(e) is PAPERS[0]
    }


def columns(card: Any) -> dict[str, list[str]]:
    """Return the columns of a card's table by the headings above them."""
    (table,) = re.findall("<thead>(.*?)</thead>", texts(card))
    above = re.findall(r"colspan='(\d+)'>(.*?)</th>", table)
    below = iter(re.findall(r"<th[^>]*>(.*?)</th>", table.split("<tr>")[2])[2:])
    return {html.unescape(name): [next(below) for _ in range(int(width))] for width, name in above}


def test_a_switch_shows_the_editions_of_a_table() -> None:
    shown = PapersPage(False, {}, ["pdmp-table1", "func-wells"])
    table, wells = (next(c for c in shown.cards if c.experiment.name == name) for name in ("pdmp-table1", "func-wells"))
    (switch,) = [item for item in table._body if getattr(item, "options", None)]
    assert not any(getattr(item, "options", None) for item in wells._body)
    assert columns(table)["test RMSE"] == ["corrected", "measured"]
    switch.value = "both"
    assert columns(table)["test RMSE"] == ["first edition, test MSE", "corrected", "measured"]
    assert columns(table)["variance off by (share)"] == ["measured"]
    assert "<td class='published first'>51.26</td><td class='published'>0.96</td>" in texts(table)
    assert shown.address.query == "page=papers&open=pdmp-table1,func-wells&edition=both"
    switch.value = "first"
    assert columns(table)["ESS of PC1"] == ["first edition", "measured"]
    switch.value = "corrected"
    assert columns(table)["test RMSE"] == ["corrected", "measured"]
    assert "#what-the-corrections-did-to-the-papers-tables'" in texts(table)
    assert "#which-double-well'" in texts(wells)


def test_the_address_names_an_edition_and_one_that_there_is_not_is_said() -> None:
    shown = PapersPage(False, {}, ["pdmp-table2"], "both")
    (card,) = [c for c in shown.cards if c.open]
    assert columns(card)["ECE"] == ["first edition", "corrected", "measured"]
    shown._close_all()
    card.turn(True)
    assert columns(card)["ECE"] == ["first edition", "corrected", "measured"], "it was forgotten"
    assert "There is no edition &#x27;third&#x27;" in PapersPage(False, {}, [], "third")._about.object


def test_figures_beside_the_first_edition_are_not_judged(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = small()
    cases = (dataclasses.replace(made.cases[0], name="BPS"), made.cases[1])
    made = dataclasses.replace(made, cases=cases)
    monkeypatch.setitem(experiments.EXPERIMENTS, made.name, made)
    results.write(made, {"BPS": summaries(0.9, 0.91), "two": summaries(0.9)}, 3.0, folders["own"])
    (card,) = [c for c in PapersPage(False, {}, [made.name]).cards if c.open]
    assert "▲ 0.9050" in texts(card)
    card._switch.value = "first"
    assert "3.81" in texts(card) and "0.9050" in texts(card)
    assert "▲" not in texts(card).partition("<table")[2]


def test_a_sweep_is_drawn_from_its_rows(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    at = [{"setting": "rate", "value": value, "sampler": "bps"} for value in (1.0, 2.0)]
    cases = [dataclasses.replace(case, at=where) for case, where in zip(small().cases, at, strict=True)]
    made = small(cases=tuple(cases))
    monkeypatch.setitem(experiments.EXPERIMENTS, "pdmp-table1", made)
    results.write(made, {"one": summaries(0.9, 0.91), "two": summaries(0.8, 0.7)}, 3.0, folders["own"])
    (card,) = [c for c in PapersPage(True, {}, ["pdmp-table1"]).cards if c.open]
    (drawn,) = [item.object for item in card._body if hasattr(item, "object") and not isinstance(item.object, str)]
    assert len(list(drawn.select({"type": Plot}))) == 2  # a panel for each measure
    assert {plot.background_fill_color for plot in drawn.select({"type": Plot})} == {DARK.surface}


def test_predictions_are_drawn_from_their_record(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(0, 1, 5)
    part = {"x": x, "mean": x, "lo50": x - 1, "hi50": x + 1, "lo95": x - 2, "hi95": x + 2, "more": x}
    data = {"x": x, "y": x, "x_range": [0.0, 1.0], "y_range": [-1.0, 1.0], "x_label": "x", "y_label": "y"}
    cases = [dataclasses.replace(case, at={"data": "toy_a", "sampler": case.name}) for case in small().cases]
    made = small(cases=tuple(cases), bands=True)
    monkeypatch.setitem(experiments.EXPERIMENTS, "pdmp-table1", made)
    done = [{"rmse": 0.5, "grad_evals": 10, "band": {"part": part, "data": data}}] * 2
    path = results.write(made, {"one": done, "two": done[:1]}, 1.0, folders["own"])
    one = results.read(path, "pdmp-table1", here=True)
    assert [set(each) for each in one.panels[0][2]["parts"]] == [set(part) - {"more"}, {"x", "mean"}]
    (card,) = [c for c in PapersPage(False, {}, ["pdmp-table1"]).cards if c.open]
    (drawn,) = [item.object for item in card._body if hasattr(item, "object") and not isinstance(item.object, str)]
    assert {plot.title.text for plot in drawn.select({"type": Plot})} == {"one, toy_a", "two, toy_a"}


def test_the_wheel_moves_the_page_and_zooms_in_no_figure() -> None:
    part = {"matrix": [[8, 2], [1, 9]], "classes": ["cat", "dog"]}
    plots.use("bokeh")
    shown = still(plots.panels([("HMC", "confusion", part), ("SGLD", "confusion", part)])).object
    assert [toolbar.active_scroll for toolbar in shown.select({"type": Toolbar})] == [None] * 3


def test_this_machine_s_figures_say_so_and_what_cannot_be_read_too(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(experiments.EXPERIMENTS, "pdmp-table1", small())
    path = record(folders["own"], 0.9, 0.91)
    (card,) = [c for c in PapersPage(False, {}, ["pdmp-table1"]).cards if c.open]
    assert f"Measured on this machine, {results.records('pdmp-table1')[0][0].date}" in texts(card)
    assert "▲ 0.9050" in texts(card)
    assert "<h4>Why they differ</h4><ul><li><b>one.</b> Why.</li></ul>" in texts(card)
    path.write_text("{")
    monkeypatch.setattr(results, "SHIPPED", folders["own"] / "none")
    (card,) = [c for c in PapersPage(False, {}, ["pdmp-table1"]).cards if c.open]
    assert "cannot be read" in texts(card)
    assert "Nobody has measured this yet" in texts(card)

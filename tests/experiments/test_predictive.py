"""Experiments over draws: the published figures, what is kept on disk, what is told, and what is drawn."""

from __future__ import annotations

import dataclasses
import json
import shlex

import numpy as np
import pytest

from bnnviz import experiments
from bnnviz.cli.main import main
from bnnviz.data import files
from bnnviz.experiments import Case, predictive, predictive_run, published
from bnnviz.experiments.pmcnet.image_tables import PMCNET_IMAGES, PredictiveImages
from bnnviz.experiments.pmcnet.tables import PMCNET, prior_sd
from bnnviz.experiments.predictive import PredictiveExperiment
from bnnviz.specs import catalogue
from bnnviz.specs.run import Spec

pytest.importorskip("sklearn")
IMAGES = ("rotated_mnist", "svhn_grey", "cifar10")
FIGURES = {"auc", "auc_weighted", "precision", "recall", "specificity", "accuracy", "f1", "mse", "seconds", "test_ms"}
NAMES = {f"pmcnet-table{k}" for k in (2, 3, 6, 7, 9, 10, 11, 12)} | {f"pmcnet-fig{k}" for k in range(1, 12)}


def run_here(line: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    return ended.value.code


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path) -> PredictiveExperiment:
    """An experiment of two methods that takes no time, under the name of a real one, kept in a folder of its own."""
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path / "home"))
    target = {"data": "control_50", "hidden": "2"}
    light = {"draws_each": 10, "sigma0": 0.5, "start": "random"}
    whole = tuple(Spec("network", target, "pmcnet_light", light, 4, 30, 0, seed) for seed in range(2))
    chain = tuple(Spec("network", target, "sgld", {"start": "random"}, 1, 12, 2, seed) for seed in range(2))
    made = PredictiveExperiment(
        name="pmcnet-fig3",
        title="Small",
        doc="",
        measures=("auc", "accuracy"),
        cases=(Case("light", whole, {"auc": 0.9, "auc_sd": 0.01}, "Note."), Case("chain", chain, {"auc": 0.8})),
        pictures=("roc", "history", "confusion", "chances"),
        followed=("accuracy",),
    )
    monkeypatch.setitem(experiments.EXPERIMENTS, made.name, made)
    monkeypatch.setattr(predictive_run, "_PILOT_S", 0.05)
    return made


def test_all_tables_and_figures_of_the_paper_are_listed():
    paper = (*PMCNET, *PMCNET_IMAGES)
    assert {each.name for each in paper} == NAMES
    assert {entry["name"] for entry in experiments.describe()} >= NAMES
    known = {item["name"] for item in catalogue.load()["samplers"]}
    for each in paper:
        assert {spec.sampler for case in each.cases for spec in case.specs} <= known
        assert each.doc.endswith(".")
        published = set().union(*(case.published for case in each.cases)) if each.cases else set()
        assert published <= {f"{name}{end}" for name in FIGURES for end in ("", "_sd")}


def test_published_figures_are_the_papers():
    known = {case.name: case.published for case in experiments.find("pmcnet-table6").cases}
    assert (known["PMCnet"]["accuracy"], known["PMCnet"]["accuracy_sd"]) == (0.9246, 0.0283)
    assert known["ADAM-MLE"]["specificity"] == 0.8980
    assert "accuracy_sd" not in known["BBP"]
    images = {case.name: case.published for case in experiments.find("pmcnet-table9").cases}
    assert images["PMCnet-light"]["accuracy"] == 0.9914
    assert sum(len(published.read("pmcnet-table9", data)) for data in IMAGES) == 21
    grey = {case.name: case.published for case in experiments.find("pmcnet-table9").at("svhn_grey", None).cases}
    assert grey["PMCnet-light"]["auc"] == 0.9880
    times = {case.name: case.published for case in experiments.find("pmcnet-table12").cases}
    assert times == published.read("pmcnet-table12", "rotated_mnist")
    assert times["SAE"] == {"seconds": 2100, "test_ms": 261}
    assert prior_sd(0.0774) == pytest.approx(2.5416)
    for case in experiments.find("pmcnet-table6").cases[-2:]:
        (spec, *_) = case.specs
        # M = 50 proposals, K = 100 draws, of the last of T = 50 iterations.
        assert (spec.chains, spec.draws, spec.warmup, spec.settings["draws_each"]) == (50, 100, 4900, 100)


def brief(experiment: PredictiveImages) -> PredictiveImages:
    """Return it with runs that end at once, on a small network and few images."""

    def short(spec: Spec) -> Spec:
        target = spec.target_settings | {"data": "mnist", "network": "mlp", "train_rows": 60, "test_rows": 40}
        settings = spec.settings | {name: 20 for name in ("mode_steps", "steps") if name in spec.settings}
        settings |= {"every": 2, "step_size": 1e-6} if "every" in settings else {}
        light = (
            {"chains": 3, "draws": 20, "warmup": 20} if spec.sampler == "pmcnet_light" else {"draws": 4, "warmup": 2}
        )
        return spec.replace(settings=settings, target_settings=target, **light)

    cases = tuple(dataclasses.replace(case, specs=tuple(map(short, case.specs))) for case in experiment.cases)
    return dataclasses.replace(experiment, cases=cases)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize("data", IMAGES)
@pytest.mark.parametrize("name", [each.name for each in PMCNET_IMAGES])
def test_parts_on_images_can_be_run(name: str, data: str, scale: str):
    part = experiments.find(name).at(data, scale)
    assert {each.data for each in (part, part.at(None, None))} == {data}
    assert ("Reduced" in part.doc) == (scale == "small")
    for case in part.cases:
        assert len(case.specs) == (1 if scale == "small" else 5)
        assert all(spec.checked().draws for spec in case.specs)
        assert all(spec.target_settings["data"] == data for spec in case.specs)


@pytest.mark.slow
def test_table_figure_and_times_on_images_are_of_the_same_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    table, times, figure = (brief(experiments.find(each.name)) for each in PMCNET_IMAGES)
    done = {case.name: [found] for case, _, found in table.reproduce()}
    monkeypatch.setattr(PredictiveImages, "result", lambda *_: pytest.fail("it ran again"))
    rows = {case.name: table.row(case, done[case.name]) for case in table.cases}
    assert all(0 <= row["accuracy"] <= 1 and row["accuracy_published"] > 0.9 for row in rows.values())
    assert rows["PMCnet-light"]["weights_ess"] >= 1
    assert all(found["figures"]["test_ms"] > 0 for _, _, found in times.reproduce())
    shown = figure.panels({case.name: [found] for case, _, found in figure.reproduce()})
    assert [view for _, view, _ in shown] == ["confusion"] * 7


def test_images_that_are_not_here_name_their_stand_in(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    assert run_here("reproduce pmcnet-table9 --data svhn_grey") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.endswith("Or take what is here: --data rotated_mnist.\n")


def test_what_is_reduced_is_said_before_it_starts(capsys, small: PredictiveExperiment, monkeypatch):
    monkeypatch.setitem(experiments.EXPERIMENTS, small.name, dataclasses.replace(small, doc="Reduced: much."))
    monkeypatch.setattr(PredictiveExperiment, "reproduce", lambda *_: pytest.fail("it started"))
    with pytest.raises(pytest.fail.Exception):
        main(["reproduce", small.name])
    assert "Reduced: much." in capsys.readouterr().err


@pytest.mark.slow
def test_a_row_has_the_figures_of_draws_beside_the_published(small: PredictiveExperiment):
    done: dict[str, list] = {}
    for case, _, found in small.reproduce():
        done.setdefault(case.name, []).append(found)
    row = small.row(small.cases[0], done["light"])
    assert row["runs"] == 2
    assert row["auc"] == pytest.approx(np.mean([one["figures"]["auc"] for one in done["light"]]))
    assert row["auc_sd"] == pytest.approx(np.mean([one["sds"]["auc"] for one in done["light"]]))
    assert (row["auc_published"], row["auc_published_sd"]) == (0.9, 0.01)
    assert row["auc_averaged"] is not None
    assert 1 <= row["weights_ess"] <= 40
    assert small.row(small.cases[1], done["chain"])["weights_ess"] is None
    history = done["light"][0]["pictures"]["history"]
    # The figures are those of the last iteration.
    assert history["iteration"] == [1, 2, 3]
    assert history["accuracy"]["mean"][-1] == pytest.approx(done["light"][0]["figures"]["accuracy"])


@pytest.mark.slow
def test_runs_are_kept_and_an_interrupted_experiment_goes_on(
    small: PredictiveExperiment, monkeypatch, capsys, tmp_path
):
    ran = []
    whole = PredictiveExperiment.result

    def counted(self, spec):
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(spec.sampler)
        return whole(self, spec)

    monkeypatch.setattr(PredictiveExperiment, "result", counted)
    assert run_here("reproduce pmcnet-fig3") == 130
    err = capsys.readouterr().err
    assert "4 runs, 0 of them kept from before" in err
    assert "The others take about 1 min here" in err
    assert "stopped; 3 runs are kept, and the same command goes on with the others" in err
    monkeypatch.setattr(PredictiveExperiment, "result", whole)
    out = tmp_path / "drawn.html"
    assert run_here(f"reproduce pmcnet-fig3 --json --out {out}") == 0
    told = capsys.readouterr()
    assert "3 of them kept" in told.err
    rows = json.loads(told.out)
    assert [row["case"] for row in rows] == ["light", "chain"]
    assert ran == ["pmcnet_light", "pmcnet_light", "sgld"]
    assert "predicted class" in out.read_text()
    assert run_here("reproduce pmcnet-fig3") == 0
    told = capsys.readouterr()
    assert "take about" not in told.err
    assert "published" in told.out
    assert "Note." in told.out


def test_another_spec_version_or_picture_is_another_place(small: PredictiveExperiment, monkeypatch):
    spec = small.cases[0].specs[0]
    place = small._place(spec)
    assert place != small._place(spec.replace(seed=9))
    assert place != dataclasses.replace(small, pictures=("roc",))._place(spec)
    monkeypatch.setattr(predictive.cache, "VERSION", "0.0.0")
    assert place != small._place(spec)
    place.parent.mkdir(parents=True)
    place.write_text("{ half a fi")
    assert predictive.cache.read(place) is None


@pytest.mark.slow
def test_pictures_of_all_kinds_reach_their_views(small: PredictiveExperiment):
    from bnnviz import plots

    done = {}
    for case, _, found in small.reproduce(1):
        done.setdefault(case.name, []).append(found)
    shown = small.panels(done)
    assert [view for _, view, _ in shown] == ["roc"] * 2 + ["history"] + ["confusion"] * 2 + ["chances"] * 8
    together = dataclasses.replace(small, together=True).panels(done)
    assert [curve["name"] for curve in together[0][2]["curves"]] == ["light", "chain"]
    assert plots.page(plots.panels(shown), "All kinds")


def test_a_run_that_fails_is_told_in_its_row(small: PredictiveExperiment):
    row = small.row(small.cases[0], [{"error": "All chains met nan.", "figures": {}, "sds": {}, "averaged": {}}])
    assert row["auc"] is None
    assert row["note"] == "Note. All chains met nan."

"""Figures of what a posterior is good for, and the outputs that a run keeps for them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz import data as datasets
from bnnviz import experiments, plots
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.experiments import uncertainty_run
from bnnviz.experiments.pdmp.figures1_2_4 import FrameExperiment
from bnnviz.experiments.uncertainty import UncertaintyExperiment
from bnnviz.specs.run import Spec

FIGURES_OF_FRAMES = [
    experiment for experiment in experiments.EXPERIMENTS.values() if isinstance(experiment, FrameExperiment)
]
JUDGED = [
    experiment for experiment in experiments.EXPERIMENTS.values() if isinstance(experiment, UncertaintyExperiment)
]
DRAWS = 6


def brief(experiment: UncertaintyExperiment) -> UncertaintyExperiment:
    """Return it with two short runs of its first two cases that end on a small network."""

    def short(spec: Spec) -> Spec:
        target = spec.target_settings | {"data": "mnist", "network": "mlp", "train_rows": 60, "test_rows": 40}
        settings = spec.settings | ({"mode_steps": 20} if "mode_steps" in spec.settings else {})
        settings |= {"warmup_events": 20} if "warmup_events" in settings else {}
        settings |= {"smoothing": 0.5} if "rld" in spec.sampler else {}
        settings |= {"every": 2, "step_size": 1e-6} if "every" in settings else {}
        return spec.replace(draws=DRAWS, warmup=2, settings=settings, target_settings=target)

    cases = [case for case in experiment.cases if "printed" not in case.name]
    few = tuple(dataclasses.replace(case, specs=tuple(map(short, case.specs[:2]))) for case in cases[:2])
    return dataclasses.replace(experiment, cases=few, ood="notmnist")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))


# --- experiments


@pytest.mark.parametrize("experiment", JUDGED, ids=lambda experiment: experiment.name)
def test_its_specs_can_be_run(experiment):
    for case in experiment.cases:
        for spec in case.specs:
            assert spec.checked().draws == spec.draws


@pytest.mark.slow
@pytest.mark.parametrize("experiment", JUDGED, ids=lambda experiment: experiment.name)
def test_its_runs_are_figures_rows_and_pictures(experiment):
    short, done = brief(experiment), {}
    for case, _, summary in short.reproduce(1):
        done.setdefault(case.name, []).append(summary)
    rows = [short.row(case, done[case.name]) for case in short.cases]
    assert all(np.isfinite(row[key]) for row in rows for key in short.measures if not key.startswith("ess"))
    assert short.title.split("(")[0] in plots.page(plots.panels(short.panels(done)), short.title)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", FIGURES_OF_FRAMES, ids=lambda experiment: experiment.name)
def test_what_the_lab_draws_stands_on_a_page_without_it(experiment):
    def short(spec):
        learnt = {"warmup_events": 20} if "warmup_events" in spec.settings else {}
        steps = {"mode_steps": 20} if "mode_steps" in spec.settings else {}
        hidden = {"hidden": "5"} if "hidden" in spec.target_settings else {}
        return spec.replace(
            draws=100, warmup=5, settings=spec.settings | learnt | steps, target_settings=spec.target_settings | hidden
        )

    cases = tuple(dataclasses.replace(case, specs=tuple(map(short, case.specs))) for case in experiment.cases[:2])
    brief = dataclasses.replace(experiment, cases=cases)
    done = {case.name: [summary] for case, _, summary in brief.reproduce()}
    again = {case.name: [summary] for case, _, summary in brief.reproduce()}  # as they are kept
    found = brief.panels(again)
    assert len(found) == len(brief.panels(done)) == 2 * len(experiment.pictures)
    assert plots.page(plots.panels(found), experiment.title)
    assert all(np.isfinite(brief.row(case, done[case.name])[experiment.measures[0]]) for case in cases)


@pytest.mark.slow
def test_its_figures_are_those_of_the_runs_draws():
    short = brief(experiments.find("func-fig2"))
    spec = short.cases[0].specs[0]
    figures = next(iter(short.reproduce(1)))[2]["figures"]
    run = ViewedRun(spec)
    while not run.finished:
        run.advance(0.5)
    said = bnnviz.uncertainty(run, ood="notmnist")["summary"]
    attacked = bnnviz.attack(run, eps=(0.1, 0.3), rows=200)
    assert figures["nll"] == said["nll"]
    assert figures["auroc"] == said["detection"]["auroc"]
    assert figures["accuracy_attacked"] == attacked["accuracy"][0]
    assert figures["entropy_attacked"] == pytest.approx(attacked["entropy"][1])


@pytest.mark.slow
def test_two_figures_of_the_same_runs_run_them_once(monkeypatch):
    first, second = (brief(experiments.find(name)) for name in ("func-fig2", "func-fig3"))
    assert len(list(first.reproduce(1))) == 2
    monkeypatch.setattr(UncertaintyExperiment, "result", lambda *_: pytest.fail("it ran again"))
    assert second.kept(1) == 2
    assert len(list(second.reproduce(1))) == 2


def test_a_run_that_fails_is_a_row_with_its_reason():
    short = brief(experiments.find("func-fig2"))
    case = short.cases[0]
    far = case.specs[0].replace(settings=case.specs[0].settings | {"step_size": 100.0})
    case = dataclasses.replace(case, specs=(far,))
    summaries = [summary for _, _, summary in dataclasses.replace(short, cases=(case,)).reproduce()]
    row = short.row(case, summaries)
    assert "not finite" in row["note"]
    assert short.panels({case.name: summaries}) == [] or row["accuracy"] is not None


def test_other_images_stand_in():
    other = experiments.find("func-fig2").at("rotated_mnist", "paper")
    assert {spec.target_settings["data"] for case in other.cases for spec in case.specs} == {"rotated_mnist"}
    assert "all images, 5,000 moves, and five draws or functionals" in other.doc
    assert {case.specs[0].target_settings["network"] for case in other.cases} == {"lenet5"}
    assert {case.specs[0].draws for case in other.cases} == {2, 5, 25}
    for part in (other, experiments.find("func-fig2")):
        moves = {}
        for case in part.cases:
            spec = case.specs[0]
            each = 5 if spec.sampler == "sgfuncrld" else 1
            moves[case.name] = spec.draws // each * spec.settings.get("every", 0)
        assert len({count for count in moves.values() if count}) == 1, "as many moves of each"
    experiments.find("func-fig2").at("rotated_mnist", "small").check()
    signs = experiments.find("func-table1")
    assert {case.name for case in signs.cases if case.published} == {"SGFuncRLD", "pSGLD", "SGHMC", "SGLD"}
    assert not any(case.published for case in signs.at("cifar10", None).cases)


@pytest.mark.parametrize("name", [experiment.name for experiment in JUDGED])
def test_images_from_elsewhere_fit_the_network(name):
    first = experiments.find(name)
    for data in first.parts:
        part = first.at(data, None)
        shapes = {tuple(datasets.describe(each)["shape"]) for each in (data, part.ood)}
        assert len(shapes) == 1
        assert data != part.ood


def test_figures_are_of_the_tables_runs_at_either_scale():
    for data, scale in (("mnist", "small"), ("svhn", "paper")):
        runs = {case.name: case.specs for case in experiments.find("pdmp-table2").at(data, scale).cases}
        for number in (5, 6, 7):
            figure = experiments.find(f"pdmp-fig{number}").at(data, scale)
            assert all(case.specs == runs[case.name] and not case.published for case in figure.cases)
            assert (figure.data, figure.scale) == (data, scale)


@pytest.mark.parametrize(
    ("name", "data", "scale", "words"),
    [
        ("func-fig2", "bananas", None, "func-fig2 has no part 'bananas'; choose one of mnist"),
        ("func-wells", None, "paper", "func-wells has one scale only"),
        ("pdmp-table2", "notmnist", None, "pdmp-table2 has no part 'notmnist'; choose one of mnist"),
        ("pdmp-table2", None, "large", "There is no scale 'large'; choose one of small, paper."),
        ("pdmp-table1", "mnist", None, "pdmp-table1 has one data only; leave out --data."),
    ],
)
def test_a_part_that_is_not_there_gets_a_sentence(name, data, scale, words):
    with pytest.raises(BnnvizError, match=words):
        experiments.find(name).at(data, scale)


@pytest.mark.parametrize("name", ["pdmp-fig5", "pdmp-table2"])
def test_images_that_are_not_here_get_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.setenv("BNNVIZ_DATA", str(tmp_path))
    with pytest.raises(BnnvizError) as caught:
        experiments.find(name).at("svhn", None).check()
    assert caught.value.sentence.endswith(".")


def test_images_from_elsewhere_that_are_not_here_cost_only_their_figures(monkeypatch):
    short = brief(experiments.find("pdmp-table2"))
    case = dataclasses.replace(short.cases[0], specs=short.cases[0].specs[:1])
    short = dataclasses.replace(short, cases=(case,), ood="svhn")
    with monkeypatch.context() as m:
        m.setattr(uncertainty_run, "_available", lambda _: None)
        done = {case.name: [summary] for case, _, summary in short.reproduce()}
    row = short.row(case, done[case.name])
    assert 0 <= row["accuracy"] <= 1
    assert done[case.name][0]["figures"]["auroc"] is None
    assert [view for _, view, _ in short.panels(done)] == ["reliability"]


@pytest.mark.slow
def test_mixing_is_of_several_chains_and_of_functions():
    whole = experiments.find("pdmp-mixing")
    assert all(spec.chains == 4 for case in whole.cases for spec in case.specs)
    case = whole.cases[1]
    spec = case.specs[0].replace(draws=30, warmup=5)
    case = dataclasses.replace(case, specs=(spec,))
    short = dataclasses.replace(whole, cases=(case,))
    (summary,) = [found for _, _, found in short.reproduce()]
    run = ViewedRun(spec)
    while not run.finished:
        run.advance(0.5)
    assert summary["figures"]["ess_pc1"] == run.summary()["ess_pc1"]
    assert summary["figures"]["ess_per_million"] == pytest.approx(1e6 * run.summary()["ess_pc1"] / run.gradients)
    ess = bnnviz.uncertainty(run)["summary"]["function_ess"]["median"]
    assert summary["figures"]["function_ess_per_million"] == pytest.approx(1e6 * ess / run.gradients)
    assert [view for _, view, _ in short.panels({case.name: [summary]})] == ["trace"]


def test_table_2_names_its_part_and_what_it_reduces():
    part = experiments.find("pdmp-table2").at("cifar10", "small")
    assert "ResNet-20 on CIFAR-10" in part.title
    assert "100 training and 200 test rows" in part.doc
    assert len(part.cases) == 9
    assert part.cases[0].published["ess_pc1"] == 2.70
    whole = experiments.find("pdmp-table2").at("fashion_mnist", "paper")
    assert all(len(case.specs) == 5 and case.specs[0].draws == 200 for case in whole.cases)


# --- answers


IMAGES = {"data": "mnist", "network": "mlp", "train_rows": 40, "test_rows": 30}
SETTINGS = {"batch_size": 20, "every": 2, "step_size": 1e-6, "mode_steps": 10}


def sampled(draws: int | None = DRAWS, chains: int = 2, sampler: str = "sgld") -> ViewedRun:
    run = ViewedRun(Spec("images", IMAGES, sampler, SETTINGS, chains=chains, draws=draws, warmup=2))
    while run.store.common(run.alive) < DRAWS:
        run.advance(0.01)
    return run


def outputs(run: ViewedRun) -> torch.Tensor:
    rows, _ = run.target.held_out()
    return run.target.outputs(run.store.view(run.alive).flatten(0, 1), rows)


def test_answers_are_what_the_draws_put_out():
    run = sampled()
    assert torch.allclose(run.test_outputs(), outputs(run), atol=1e-5)
    assert run.test_outputs().shape == (2 * DRAWS, 30, 10)


def test_each_draw_is_asked_once(monkeypatch):
    run, asked = sampled(None), []
    real = run.target.outputs
    monkeypatch.setattr(run.target, "outputs", lambda theta, x: asked.append(len(theta)) or real(theta, x))
    before = len(run.test_outputs())
    assert sum(asked) == before
    run.summary(), bnnviz.measure(run), bnnviz.uncertainty(run)
    asked.clear()
    run.test_outputs(), bnnviz.measure(run)
    assert not asked
    while run.store.common(run.alive) < before:
        run.advance(0.01)
    new = len(run.test_outputs()) - before
    assert sum(asked) == new > 0
    assert torch.allclose(run.test_outputs(), outputs(run), atol=1e-5)


def test_other_draws_are_asked_anew():
    run = sampled()
    first = run.test_outputs().clone()
    run.change({"step_size": 1e-5})
    while run.store.common(run.alive) < DRAWS:
        run.advance(0.01)
    assert torch.allclose(run.test_outputs(), outputs(run), atol=1e-5)
    assert not torch.allclose(run.test_outputs(), first, atol=1e-5)


def test_figures_are_the_same_with_and_without_kept_answers(monkeypatch):
    run = sampled()
    kept = bnnviz.measure(run), bnnviz.uncertainty(run, ood="notmnist", rows=[0, 3])["summary"]
    monkeypatch.setattr(type(run), "test_outputs", lambda self: None)
    anew = bnnviz.measure(run), bnnviz.uncertainty(run, ood="notmnist", rows=[0, 3])["summary"]
    assert kept[0]["averaged"]["nll"] == pytest.approx(anew[0]["averaged"]["nll"], rel=1e-5)
    assert kept[0]["confusion"] == anew[0]["confusion"]
    assert kept[1]["function_ess"]["median"] == pytest.approx(anew[1]["function_ess"]["median"], rel=1e-3)
    assert kept[1]["test"]["mutual"] == pytest.approx(anew[1]["test"]["mutual"], rel=1e-4)
    assert kept[1]["detection"]["auroc"] == pytest.approx(anew[1]["detection"]["auroc"], abs=1e-4)


def test_draws_with_weights_and_densities_keep_none():
    assert ViewedRun(Spec("banana", {}, "bps", {}, chains=2, draws=5)).test_outputs() is None

"""Figures of what a posterior is good for, and the outputs that a run keeps for them."""

from __future__ import annotations

import pytest
import torch

import bnnviz
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.specs.run import Spec


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))


# --- experiments


# --- answers


IMAGES = {"data": "mnist", "network": "mlp", "train_rows": 40, "test_rows": 30}
SETTINGS = {"batch_size": 20, "thin": 2, "step_size": 1e-6, "mode_steps": 10}


DRAWS = 6


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


@pytest.mark.slow
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


@pytest.mark.slow
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

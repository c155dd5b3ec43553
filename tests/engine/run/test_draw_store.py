"""Draws of large networks: they lie in a file, and are looked at without a copy."""

from __future__ import annotations

import numpy as np
import psutil
import pytest
import torch

from bnnviz.diagnostics.geometry import pca
from bnnviz.engine.run import draw_store
from bnnviz.engine.run.draw_store import DrawStore
from bnnviz.errors import BnnvizError
from bnnviz.samplers.observers import Draws

CPU = torch.device("cpu")


def rows(chain: int, index: int, x: torch.Tensor) -> Draws:
    return Draws(torch.tensor([chain]), torch.tensor([index]), x[None])


def filled(limit: int | None, dim: int, count: int) -> DrawStore:
    store = DrawStore(2, dim, limit, 1, CPU, torch.float32, capacity=8)
    for index in range(count):
        for chain in range(2):
            store.add(rows(chain, index, torch.full((dim,), 100.0 * chain + index)))
    return store


@pytest.mark.parametrize("limit", [6, None])
def test_a_file_holds_what_memory_does(monkeypatch: pytest.MonkeyPatch, tmp_path, limit: int | None) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    alive = np.array([True, True])
    plain = filled(limit, 50, 20)
    monkeypatch.setattr(draw_store, "_IN_MEMORY", 100)
    monkeypatch.setattr(draw_store, "_UNWRITTEN", 500)
    mapped = filled(limit, 50, 20)
    assert (tmp_path / "draws").is_dir() and not list((tmp_path / "draws").iterdir())
    assert torch.equal(plain.view(alive), mapped.view(alive))
    again = DrawStore(2, 50, limit, 1, CPU, torch.float32, capacity=8)
    again.load(mapped.save())
    assert torch.equal(again.view(alive), plain.view(alive))


def test_most_of_many_draws_is_not_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    dim, count = 250_000, 600
    before = psutil.Process().memory_info().rss
    store = DrawStore(1, dim, count, 0, CPU, torch.float32)
    for index in range(count):
        store.add(rows(0, index, torch.full((dim,), float(index))))
    grown = psutil.Process().memory_info().rss - before
    assert grown < 0.35 * 4 * dim * count
    assert torch.equal(store.view(np.array([True]))[0, :, -1], torch.arange(count, dtype=torch.float32))


def test_a_disk_that_is_too_small_is_stated_so(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("BNNVIZ_HOME", str(tmp_path))
    with pytest.raises(BnnvizError, match="keep fewer draws") as caught:
        draw_store._mapped(1 << 60)
    assert caught.value.field == "draws"


def test_axes_of_few_draws_are_those_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    found = rng.standard_normal((40, 900)) * np.linspace(3, 0.1, 900)
    found[:, 5] *= 8
    exact = pca.principal_axes(found)
    monkeypatch.setattr(pca, "_WIDE", 100)
    monkeypatch.setattr(pca, "_PIECE", 70)
    quick = pca.principal_axes(found.astype(np.float32))
    assert np.abs(quick.axes - exact.axes).max() < 1e-4
    assert np.abs(quick.centre - exact.centre).max() < 1e-5
    assert (pca.principal_axes(np.ones((4, 900), np.float32)).axes == np.eye(900, 2)).all()

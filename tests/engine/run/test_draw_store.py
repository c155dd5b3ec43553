"""The store of draws."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnnviz import memory
from bnnviz.diagnostics.geometry import pca
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
def test_a_loaded_store_has_the_same_draws(limit: int | None) -> None:
    alive, store = np.array([True, True]), filled(limit, 50, 20)
    again = DrawStore(2, 50, limit, 1, CPU, torch.float32, capacity=8)
    again.load(store.save())
    assert store.common(alive) > 0 and torch.equal(again.view(alive), store.view(alive))


def test_more_draws_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1 << 29)
    with pytest.raises(BnnvizError) as caught:
        DrawStore(4, 1_000_000, 1000, 0, CPU, torch.float32)
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

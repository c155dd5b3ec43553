"""The benchmark of a GPU, on whatever is here, with its sizes cut."""

from __future__ import annotations

import sys

import pytest

from bnnviz.benchmarks.suites import cuda


@pytest.mark.parametrize("case", ["floor", "peak"])
def test_rows_say_which_device_they_are_of(case: str) -> None:
    rows = list(cuda.SUITE.run(case, 0.01, lambda sentence: None))
    assert rows
    assert all(row["device"] == cuda._name() and row["value"] > 0 for row in rows)


@pytest.mark.parametrize("sampler", cuda.SAMPLERS)
def test_steps_are_measured_eager_and_several_at_once(sampler: str) -> None:
    rows = list(cuda._steps(sampler, 2, False, 1e12, 0.01, lambda sentence: None))
    ways = ["eager", "captured", *(f"graph_{steps}" for steps in cuda.UNROLLED)]
    assert [row.metric for row in rows] == [f"{sampler}_2_{way}" for way in ways]
    assert all(row.value > 0 and 0 < row.more["peak_share"] < 1 for row in rows)


def test_a_live_run_is_asked_for_frames() -> None:
    rate, late = cuda._pulled(0.3, watched=True)
    assert rate > 0
    assert all(seconds > 0 for seconds in late)


def test_without_jax_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    said: list[str] = []
    assert list(cuda._beside_jax((1,), 0.01, said.append)) == []
    assert "pip install 'bnnviz[bench]'" in said[0]

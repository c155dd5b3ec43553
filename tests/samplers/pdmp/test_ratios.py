"""Ratios rate / envelope: what the statistics say of them, and their box plot."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import bnnviz
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.pdmp.draw_collector import RatioStats
from bnnviz.samplers.pdmp.thinning import BOUNCE


def counted(*ratios: np.ndarray) -> RatioStats:
    """Return statistics that has counted proposals with these ratios, one block of one chain for each array."""
    sampler_stats = RatioStats()
    for values in ratios:
        infos = [SimpleNamespace(kind=torch.tensor([BOUNCE]), ratio=torch.tensor([float(v)])) for v in values]
        sampler_stats.add(StepBatch([], infos, None, 0), np.array([True]))
    return sampler_stats


def test_a_box_holds_the_quantiles_to_within_a_cell():
    values = np.random.default_rng(0).gamma(3.0, 0.3, size=900)
    found = counted(values[:400], values[400:]).box()
    assert (found["least"], found["most"]) == pytest.approx((values.min(), values.max()), rel=1e-6)
    for name, share in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
        assert found[name] == pytest.approx(np.quantile(values, share), abs=0.02)
    assert found["q99"] == pytest.approx(np.quantile(values, 0.99), rel=0.08)
    assert found["violation_share"] == pytest.approx((values > 1).mean()) and found["proposals"] == 900


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_envelope_equal_to_the_rate_is_not_violated_by_rounding(dtype: str) -> None:
    """On an isotropic Gaussian the line through two rates is the rate itself."""
    settings = {"bound": "interpolated", "alpha": 1.0, "refresh_rate": 0.3, "metric": "unit"}
    run = bnnviz.sample(
        "gaussian", "bps", settings=settings, target_settings={"correlation": 0.0}, draws=50, warmup=0, dtype=dtype
    )
    figures = run.summary()
    assert figures["proposals"] > 100 and figures["violation_share"] == 0

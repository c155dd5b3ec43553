"""Ratios rate / envelope: what the statistics say of them, and their box plot."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from example_frames import example_scene

from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.samplers.observers import StepBatch
from bnnviz.samplers.pdmp.draw_collector import RatioStats
from bnnviz.samplers.pdmp.thinning import BOUNCE, PROBE
from bnnviz.specs.run import Spec
from bnnviz.views.chain.rate_ratios import EDGE, FARTHEST, RateRatiosView

NAMES = ("least", "q25", "median", "q75", "q99", "most")


def counted(*ratios: np.ndarray) -> RatioStats:
    """Return statistics that has counted proposals with these ratios, one block of one chain for each array."""
    sampler_stats = RatioStats()
    for values in ratios:
        infos = [SimpleNamespace(kind=torch.tensor([BOUNCE]), ratio=torch.tensor([float(v)])) for v in values]
        sampler_stats.add(StepBatch([], infos, None, 0), np.array([True]))
    return sampler_stats


def box(**changes: float) -> dict:
    part = dict(zip(NAMES, (0.1, 0.4, 0.6, 0.8, 0.95, 0.99), strict=True))
    return part | {"proposals": 500, "violation_share": 0.0} | changes


def test_a_box_holds_the_quantiles_to_within_a_cell():
    values = np.random.default_rng(0).gamma(3.0, 0.3, size=900)
    found = counted(values[:400], values[400:]).box()
    assert (found["least"], found["most"]) == pytest.approx((values.min(), values.max()), rel=1e-6)
    for name, share in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
        assert found[name] == pytest.approx(np.quantile(values, share), abs=0.02)
    assert found["q99"] == pytest.approx(np.quantile(values, 0.99), rel=0.08)
    assert found["violation_share"] == pytest.approx((values > 1).mean()) and found["proposals"] == 900


def test_a_box_of_one_ratio_is_a_point_and_without_proposals_there_is_none():
    found = counted(np.full(9, 0.123)).box()
    assert [found[name] for name in NAMES] == pytest.approx([0.123] * 6)
    assert RatioStats().box() == {}
    probes = RatioStats()
    probes.add(StepBatch([], [SimpleNamespace(kind=torch.tensor([PROBE]), ratio=torch.tensor([0.0]))], None, 0), [True])
    assert probes.box() == {}


def test_a_ratio_without_an_envelope_is_infinite_and_one_that_is_no_number_counts_for_nothing():
    found = counted(np.array([0.5, math.inf, math.nan, 0.7])).box()
    assert found["most"] == math.inf and found["least"] == 0.5


def test_a_tally_that_goes_on_from_a_checkpoint_has_the_same_box():
    one = counted(np.array([0.2, 0.9, 1.4]))
    other = RatioStats()
    other.load(one.save())
    assert other.box() == one.box()


def test_a_run_gives_its_box():
    run = ViewedRun(Spec(target="banana", sampler="bps", settings={"bound": "interpolated"}, draws=None).checked())
    run.prepare()
    while run.steps < 200:
        run.take(8)
    run.frame([])  # at rest nothing is left out
    part = run.frame(["ratios"])["ratios"]
    assert "ratios" in run.scene()["emits"]
    assert [part[name] for name in NAMES] == sorted(part[name] for name in NAMES)
    assert part["proposals"] == run.sampler_stats.proposals


# ---- the view ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [37.0, math.inf])
def test_what_lies_beyond_the_axis_is_marked_at_its_end(most):
    view = RateRatiosView(example_scene("banana"))
    view.update({"ratios": box(q99=9.0, most=most, violation_share=0.02)})
    right = view.root.x_range.end
    assert FARTHEST <= right < 1.5 * FARTHEST
    assert np.nanmax(view.source.data["over_most"]) == pytest.approx(EDGE * right, rel=1e-6)
    assert np.nanmax(view.source.data["over_x"]) <= right

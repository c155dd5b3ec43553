"""The figures of how sure predictions are: what they draw of several samplers, and what they say."""

from __future__ import annotations

import numpy as np
import pytest
from example_parts import example_parts

pytest.importorskip("sklearn")

from bnnviz.views import BY_NAME as VIEWS

PARTS = example_parts()


def shown(name: str, number: int, dark: bool = False):
    view = VIEWS[name]({}, dark)
    view.update({name: PARTS[name][number]})
    return view


def finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


def test_reliability_draws_points_intervals_and_shares():
    lane, view = PARTS["reliability"][0]["lanes"][0], shown("reliability", 0)
    packed, known = view.packed_columns[0].data, lane["count"] > 0
    np.testing.assert_allclose(finite(packed["x"]), lane["confidence"][known], rtol=1e-6)
    np.testing.assert_allclose(finite(packed["y"]), lane["accuracy"][known], rtol=1e-6)
    ends = finite(packed["line_y"]).reshape(-1, 2)
    np.testing.assert_allclose(ends, np.stack([lane["low"], lane["high"]], -1)[known], rtol=1e-5, atol=1e-7)
    assert finite(packed["bar_y"]).sum() == pytest.approx(1.0)
    assert view.note == f"ECE {lane['ece']:.3f}"
    many = shown("reliability", 1)
    bars = np.stack([finite(packed.data["bar_x"]) for packed in many.packed_columns[:6]])
    # Six bars beside each other inside of their bin.
    assert many._bars[0].width == pytest.approx(0.08 / 6)
    assert (np.abs(bars - np.linspace(0.05, 0.95, 10)) <= 0.04).all()
    np.testing.assert_allclose(np.diff(bars, axis=0), 0.08 / 6, rtol=1e-3)
    assert many.note.count(";") == 5


def test_attacks_are_drawn_against_the_step_with_their_bands():
    for name, figure in (("attack", "accuracy"), ("attack_entropy", "entropy")):
        view, lanes = shown(name, 0), PARTS[name][0]["lanes"]
        for packed, lane in zip(view.packed_columns, lanes, strict=False):
            np.testing.assert_allclose(packed.data["x"], lane["eps"], rtol=1e-6)
            np.testing.assert_allclose(packed.data["y"], lane[figure], rtol=1e-6)
            assert (packed.data["low"] < packed.data["y"]).all()
            assert (packed.data["y"] < packed.data["high"]).all()
        assert view.note.startswith(f"at 0.3: BPS {lanes[0][figure][-1]:.3f}; ")
        assert view.x_label == PARTS[name][0]["label"]
    assert view.y_label == "entropy (nats)"
    assert view.root.y_range.end == pytest.approx(np.log(10))


def test_of_many_classes_the_likeliest_and_the_observed_are_shown():
    part, view = PARTS["digit"][1], shown("digit", 1)
    names = list(view.root.xaxis[0].major_label_overrides.values())
    assert len(names) == 12
    assert part["classes"][40] in names
    for lane in part["lanes"]:
        best = part["classes"][int(np.argmax(lane["mean"]))]
        place = names.index(best)
        number = [each["name"] for each in part["lanes"]].index(lane["name"])
        packed = view.packed_columns[number].data
        assert finite(packed["y"])[place] == pytest.approx(lane["mean"].max())
        assert abs(finite(packed["x"])[place] - place) < 0.33
    band = finite(view.shade.data["x"])
    assert band.tolist() == [names.index(part["classes"][40]) + side for side in (-0.5, 0.5)]
    assert view.note == "observed Speed limit 40; the likeliest for 0 of 6; 12 of 43 classes"

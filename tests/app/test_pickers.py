"""Choices among components, coordinates, blocks and planes, without a browser."""

from __future__ import annotations

from example_frames import example_scene

from bnnviz_app.components.controls import pickers


def test_a_component_is_asked_for_by_name_and_a_coordinate_by_number() -> None:
    asked: list[dict] = []
    picker = pickers.ComponentPicker(asked.append)
    picker.reset(example_scene("network1d"))
    assert picker.root.visible and asked == []
    picker.root.value = "last PC"
    picker.root.value = "16: 2.weight[0, 4]"
    picker.root.value = ""
    picker.choose(4)
    assert picker.root.value == "4: 0.weight[4, 0]"
    first = [{"kind": "pc", "number": -1}, *({"kind": "coordinate", "i": i} for i in (16, 4))]
    assert asked == first
    # A reset is asked for the same again; another target begins anew, in two dimensions with its coordinates alone.
    picker.reset(example_scene("network1d"))
    assert asked == [*first, first[-1]]
    picker.reset(example_scene("banana"))
    assert asked[3:] == [first[-1]] and picker.root.options == ["0: x1", "1: x2"]
    picker.choose(5000)
    assert asked[-1] == {"kind": "coordinate", "i": 5000} and picker.root.value == "0: x1"

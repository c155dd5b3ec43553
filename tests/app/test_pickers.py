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


def test_a_sample_statistic_is_asked_for_by_its_name() -> None:
    asked: list[dict] = []
    picker = pickers.ComponentPicker(asked.append)
    scene = example_scene("banana")
    picker.reset(scene | {"sample_stats": ["acceptance_rate", "n_steps"]})
    assert picker.root.options == ["0: x1", "1: x2", "acceptance_rate", "n_steps"]
    picker.root.value = "acceptance_rate"
    assert asked == [{"kind": "stat", "name": "acceptance_rate"}]
    # Another sampler on the same target: what it has too is followed on, what it has not is left.
    picker.reset(scene | {"sample_stats": ["acceptance_rate"]})
    assert asked[1:] == asked[:1]
    picker.reset(scene | {"sample_stats": []})
    assert picker.root.value == "0: x1" and len(asked) == 2


def test_a_block_is_asked_for_by_its_place() -> None:
    asked: list[int] = []
    picker = pickers.BlockPicker(asked.append)
    scene = example_scene("network1d")
    picker.reset({**scene, "blocks": scene["blocks"][:1]})
    assert not picker.root.visible and asked == []
    scene = {**scene, "blocks": [{"label": name, "first": 0, "count": 2} for name in ("a", "b", "c")]}
    picker.reset(scene)
    picker.root.value = "c"
    picker.reset(scene)
    assert picker.root.visible and asked == [2, 2]


def test_canonical_planes_are_offered_where_there_are_units_and_come_with_a_caution() -> None:
    asked: list[dict] = []
    picker = pickers.PlanePicker(asked.append)
    picker.reset(example_scene("banana"))
    assert pickers.CANONICAL not in picker.kind.options
    picker.reset(example_scene("network1d"))
    assert not picker.note.visible
    picker.kind.value = pickers.CANONICAL
    assert picker.note.visible and picker.note.object == example_scene("network1d")["canonical"]
    assert asked == [{"kind": "pca", "canonical": True}]
    picker.kind.value = pickers.COORDINATES
    assert asked[-1] == {"kind": "coordinates", "i": 0, "j": 1} and not picker.note.visible

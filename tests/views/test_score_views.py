"""The figures of how well test rows are predicted: what they push, their colours, and that a browser draws them."""

from __future__ import annotations

import numpy as np
import pytest
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from colours import contrast
from example_parts import example_parts

pytest.importorskip("sklearn")


from bnnviz.views import BY_NAME as VIEWS
from bnnviz.views import views_for

PARTS = example_parts()
EACH = [(name, number) for name, found in PARTS.items() for number in range(len(found))]


def shown(name: str, number: int, dark: bool = False):
    view = VIEWS[name]({}, dark)
    assert view.update({name: PARTS[name][number]}) is True
    return view


def held(view) -> list:
    return [{name: np.asarray(values) for name, values in source.data.items()} for source in view.sources]


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_appears_where_its_part_is_emitted(name):
    assert name in [view.name for view in views_for({"emits": [VIEWS[name].needs[0]]})]
    built = VIEWS[name]()
    assert built.update({"seq": 0}) is False
    document = Document()
    document.add_root(built.root)
    assert serialize_json(document.to_json())


@pytest.mark.parametrize(("name", "number"), EACH)
def test_an_unchanged_part_is_not_pushed_again_and_a_reset_forgets(name, number):
    view = shown(name, number)
    assert view.update({name: PARTS[name][number]}) is False
    assert view.description
    view.reset({})
    assert view.note == ""
    for old, new in zip(held(view), held(VIEWS[name]({})), strict=True):
        for key in new:
            np.testing.assert_array_equal(old[key], new[key])
    assert view.update({name: PARTS[name][number]}) is True


def test_one_methods_curve_has_nested_envelopes_and_several_have_one_each():
    one, many = shown("roc", 0), shown("roc", 1)
    nested = one.nested.data
    assert (nested["low0"] <= nested["low2"]).all()
    assert (nested["high0"] >= nested["high2"]).all()
    assert one.note.startswith("AUC 0.")
    assert not many.nested.data["x"].size
    # Only methods whose draws differ have an envelope.
    assert [bool(np.isfinite(each.data["low"]).any()) for each in many.packed_columns[:7]] == [False] * 3 + [True] * 4
    assert many.note.count("±") == 4
    assert many.legend_html().count("<svg") == 7


def test_the_numbers_of_a_confusion_matrix_can_be_read_on_their_cells():
    for dark in (False, True):
        for number in range(3):
            cells = shown("confusion", number, dark).cells.data
            assert min(map(contrast, cells["ink"], cells["colour"])) >= 4.5
    view = shown("confusion", 0)
    assert view.cells.data["text"] == [str(n) for n in PARTS["confusion"][0]["matrix"].ravel()]
    assert view.root.yaxis[0].major_label_overrides == {0: "bad", 1: "good"}
    half = {"matrix": np.array([[1.5, 0.5], [0.01, 2.0]]), "classes": ["a", "b"]}
    view.update({"confusion": half})
    assert view.cells.data["text"] == ["1.5", "0.5", "0", "2.0"]
    assert view.root.yaxis[0].major_label_overrides == {0: "a", 1: "b"}

"""Labels of axes: what has no room is left out whole."""

from __future__ import annotations

import pytest
from bokeh.models import Label
from example_frames import example_scene

from bnnviz.views.base import text_width
from bnnviz.views.chain.thinning import ThinningView


def test_a_label_has_the_room_that_it_needs_and_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    # In sizes of the type, measured in Chromium with Roboto; capitals are wider than small letters.
    for text, measured in {
        "RMSE": 2.89,
        "ACF": 2.0,
        "ACF (PC 1)": 5.17,
        "Falsch-Positiv-Rate": 8.67,
        "W": 0.94,
    }.items():
        assert measured <= text_width(text) <= 1.25 * measured
    view = ThinningView(example_scene("banana"))
    for size, labels in (
        ((400, 300), ("time since the last event (path time)", "RMSE (nats)")),
        ((180, 45), ("time since the last event", "RMSE")),
        ((180, 35), ("time since the last event", "")),
        ((100, 35), ("", "")),
    ):
        monkeypatch.setattr(ThinningView, "frame_size", size)
        view.y_label = "RMSE (nats)"
        texts = [view.root.xaxis[0].axis_label, *(model.text for model in view.root.center if isinstance(model, Label))]
        assert "".join(texts) == labels[0] and view.root.yaxis[0].axis_label == labels[1]

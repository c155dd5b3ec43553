"""Show the selected test image, and rotate it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import param
from panel.custom import JSComponent

from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import ReaderChoice, script, set_changed
from bnnviz_app.theme import styles

_STYLES = styles(__file__)


class ImageInput(JSComponent):
    """Show an image, and take an angle."""

    shape = param.List([1, 28, 28], doc="Channels, height and width.")
    shown = param.Dict({}, doc="data, the bytes of the image as base64, and words, its description.")
    angle = param.Number(0.0, bounds=(-180, 180), doc="In degrees, counter-clockwise.")

    _esm = script(__file__, "image_input.js")


class ImageQuestion(PageComponent):
    """Show the selected image, and select another one or another angle."""

    needs = frozenset({"digit"})

    def __init__(self, on_image: Callable[[dict[str, Any]], None]) -> None:
        self._on_image = on_image
        self.root = ImageInput(
            width=176,
            sizing_mode="stretch_height",
            margin=(0, 4, 6, 12),
            css_classes=["asker"],
            stylesheets=[_STYLES["input"]],
        )
        self.enlarged = [self.root]
        self._angle = ReaderChoice((self.root,), lambda event: on_image({"angle": float(event.new)}), "angle")

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin with images of a shape."""
        set_changed(self.root, shape=scene["shape"])
        self._straighten()

    def update(self, frame: dict[str, Any]) -> None:
        """Show the image as the networks see it."""
        part = frame["digit"]
        words = f"true class {part['classes'][part['observed']]}, turned by {part['angle']:g} degrees"
        set_changed(self.root, shown={"data": part["pixels"]["data"], "words": words})

    def pick(self, index: int) -> None:
        """Ask about a test image."""
        self._straighten()
        self._on_image({"index": index, "angle": 0.0})

    def _straighten(self) -> None:
        with self._angle.setting():
            self.root.angle = 0.0

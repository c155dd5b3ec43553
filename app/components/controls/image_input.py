"""Ask about an image: one of the test images, one that is drawn, or one of the user's own, turned as they like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import param
from panel.custom import JSComponent

from bnnviz_app.components.component import PageComponent
from bnnviz_app.components.widgets import ReaderChoice, script, set_changed, set_class
from bnnviz_app.theme import styles

_STYLES = styles(__file__)


class ImageInput(JSComponent):
    """Take an image by a pen or from a file, and an angle."""

    shape = param.List([1, 28, 28], doc="Channels, height and width.")
    shown = param.Dict({}, doc="data, the bytes of the image as base64, and words, its description.")
    drawn = param.List(
        item_type=(int, float), doc="Bytes of the drawn or opened image, channel by channel, row by row."
    )
    angle = param.Number(0.0, bounds=(-180, 180), doc="In degrees, counter-clockwise.")
    taken = param.Integer(0, doc="Grows when a test image replaces the drawing.")
    complaint = param.List(doc="[name, when] of a file that is not a picture.")

    _esm = script(__file__, "image_input.js")


class ImageQuestion(PageComponent):
    """Show the selected image, and select another one."""

    needs = frozenset({"digit"})

    def __init__(self, on_image: Callable[[dict[str, Any]], None], on_complaint: Callable[[str], None]) -> None:
        self._on_image = on_image
        self.root = ImageInput(
            width=176,
            sizing_mode="stretch_height",
            margin=(0, 4, 6, 12),
            css_classes=["asker"],
            stylesheets=[_STYLES["input"]],
        )
        self.root.param.watch(self._draw, "drawn")
        self._angle = ReaderChoice((self.root,), lambda event: on_image({"angle": float(event.new)}), "angle")
        self._on_complaint = on_complaint
        self.root.param.watch(self._complain, "complaint")

    def reset(self, scene: dict[str, Any]) -> None:
        """Begin with images of a shape."""
        set_changed(self.root, shape=scene["shape"])
        self._straighten()

    def update(self, frame: dict[str, Any]) -> None:
        """Show the image as the networks see it."""
        part = frame["digit"]
        own = part["observed"]
        words = "your own image" if own is None else f"true class {part['classes'][own]}"
        shown = {"data": part["pixels"]["data"], "words": f"{words}, turned by {part['angle']:g} degrees"}
        set_changed(self.root, shown=shown)

    def magnify(self, large: bool) -> None:
        """Take the type of the projector, or put it down."""
        set_class(self.root, "large", large)

    def pick(self, index: int) -> None:
        """Ask about a test image."""
        self._straighten()
        self.root.taken += 1
        self._on_image({"index": index, "angle": 0.0})

    def _straighten(self) -> None:
        with self._angle.setting():
            self.root.angle = 0.0

    def _complain(self, event: Any) -> None:
        name = str(event.new[0])[:100] if event.new else "That file"
        self._on_complaint(f"{name} is not a picture that this browser reads; choose a PNG or JPEG.")

    def _draw(self, event: Any) -> None:
        pixels = np.array(event.new, dtype=float)
        if pixels.size == np.prod(self.root.shape):
            self._on_image({"pixels": pixels.reshape(self.root.shape).tolist(), "angle": 0.0})

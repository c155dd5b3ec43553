"""An image to ask about: one of the test images, one that is drawn, or one of the user's own, turned as they like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import param
from panel.custom import JSComponent

_STYLE = """
:host {color: var(--mui-palette-text-primary); font-size: 12.5px}
.asking {display: flex; flex-direction: column; gap: 6px; height: 100%; align-items: center}
canvas {width: min(100%, 146px); aspect-ratio: 1; image-rendering: pixelated; border-radius: 6px; cursor: crosshair;
  touch-action: none; background: #000}
canvas:focus-visible {outline: 2px solid var(--mui-palette-primary-main); outline-offset: 2px}
.tools {display: flex; gap: 6px}
button {border: 1px solid var(--mui-palette-divider); border-radius: 6px; padding: 3px 9px; background: none;
  cursor: pointer; color: inherit; font: inherit}
button:hover {border-color: var(--mui-palette-primary-main)}
button:focus-visible {outline: 2px solid var(--mui-palette-primary-main)}
label {display: flex; gap: 6px; align-items: center; width: 164px}
input[type=range] {flex: 1; min-width: 0; accent-color: var(--mui-palette-primary-main)}
output {width: 38px; text-align: right; font-variant-numeric: tabular-nums}
"""


class Asker(JSComponent):
    """The image, a pen, a file and an angle."""

    shape = param.List([1, 28, 28], doc="Channels, height and width.")
    shown = param.Dict({}, doc="data, the bytes of the image as base64, and told, what it is in words.")
    drawn = param.List(doc="Bytes of what was drawn or opened, channel by channel, row by row.")
    angle = param.Number(0.0, doc="In degrees, counter-clockwise.")
    taken = param.Integer(0, doc="Grows when a test image takes the place of what was drawn.")
    complaint = param.List(doc="[name, when] of a file that is no picture.")

    _esm = "image_input.js"


class ImageAsker:
    """The image beside its answers.

    Parameters
    ----------
    on_image : callable
        Called with what `ImageRace.watch` takes as an image.
    on_complaint : callable
        Called with a sentence about a file that cannot be used.
    """

    def __init__(self, on_image: Callable[[dict[str, Any]], None], on_complaint: Callable[[str], None]) -> None:
        self._on_image, self._silent = on_image, False
        self.root = Asker(width=176, sizing_mode="stretch_height", margin=(0, 4, 6, 12), stylesheets=[_STYLE])
        self.root.param.watch(self._drawn, "drawn")
        self.root.param.watch(self._turned, "angle")
        self.root.param.watch(
            lambda event: on_complaint(f"{event.new[0]} is no picture that this browser reads; choose a PNG or JPEG."),
            "complaint",
        )

    def reset(self, shape: list[int]) -> None:
        """Begin with images of a shape."""
        if shape != self.root.shape:
            self.root.shape = shape
        self._straighten()

    def show(self, part: dict[str, Any]) -> None:
        """Show the image as the networks see it."""
        own = part["observed"]
        told = "your own image" if own is None else f"true class {part['classes'][own]}"
        shown = {"data": part["pixels"]["data"], "told": f"{told}, turned by {part['angle']:g} degrees"}
        if shown != self.root.shown:
            self.root.shown = shown

    def pick(self, index: int) -> None:
        """Ask about a test image."""
        self._straighten()
        self.root.taken += 1
        self._on_image({"index": index, "angle": 0.0})

    def _straighten(self) -> None:
        self._silent = True
        self.root.angle = 0.0
        self._silent = False

    def _drawn(self, event: Any) -> None:
        pixels = np.array(event.new, dtype=float)
        if pixels.size == np.prod(self.root.shape):
            self._on_image({"pixels": pixels.reshape(self.root.shape).tolist(), "angle": 0.0})

    def _turned(self, event: Any) -> None:
        if not self._silent:
            self._on_image({"angle": float(event.new)})

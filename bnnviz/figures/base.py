"""Define the base class of figures, which turn data into a `Drawing`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from bnnviz.figures.marks import WIDE, Axis, Drawing, Mark

NOTHING: dict[str, Any] = {"kind": "none"}
#: An axis of shares: a mark at 0 or 1 is seen whole.
SHARES = (-0.07, 1.07)


class Figure:
    """Turn the parts of a frame into marks; `draw` depends only on its part, the scene and the reader's choices."""

    name: ClassVar[str]
    title: str = ""
    needs: ClassVar[tuple[str, ...]]  # the parts of a frame that it reads
    x: Axis = Axis("", (0.0, 1.0), "exact")  # the axes, where a drawing has no others
    y: Axis = Axis("", (0.0, 1.0), "exact")
    always: Sequence[Mark] = ()  # under all other marks
    size: ClassVar[tuple[int, int]] = WIDE
    of_draws: ClassVar[bool] = False  # begins again where the draws do
    place: ClassVar[int] = 99  # among the figures of a run
    touch: ClassVar[dict[str, bool] | None] = None  # actions of the pointer, see `Pointer`
    bare: ClassVar[bool] = False  # a strip without axes
    tools: ClassVar[bool] = False  # whether the figure is panned and zoomed
    left: ClassVar[int] = 58  # pixels for the numbers at the left, wide enough that the frame does not move

    def __init__(self) -> None:
        self.scene: dict[str, Any] = {}
        self.selection = NOTHING
        self.frame_size: tuple[int, int] | None = None  # pixels, where a page has laid the figure out

    def begin(self, scene: dict[str, Any]) -> None:
        """Take the scene of a new run."""
        self.scene = scene

    def blank(self) -> Drawing:
        """Return the drawing before the first frame."""
        return self.drawing()

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Return the drawing of a part of a frame."""
        raise NotImplementedError

    def drawing(self, marks: Sequence[Mark] = (), **rest: Any) -> Drawing:
        """Return these marks on the axes of the figure, or on others."""
        return Drawing([*self.always, *marks], **{"x": self.x, "y": self.y, "size": self.size} | rest)

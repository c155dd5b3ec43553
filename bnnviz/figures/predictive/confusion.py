"""Draw test rows by observed and predicted class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import Axis, Drawing, Image, Text

SMALLEST, LARGEST = 9, 16  # pixels of the numbers' type
RAMP = ("grid", "blue")
_CELL, _LETTERS = 68, 40  # pixels; letters of all names in one row


def _axis(label: str, names: Sequence[str], down: bool = False) -> Axis:
    ends = (len(names) - 0.5, -0.5) if down else (-0.5, len(names) - 0.5)
    turned = not down and sum(map(len, names)) > _LETTERS
    return Axis(label, ends, "exact", ticks=dict(enumerate(names)), grid=False, turned=turned)


class Confusion(Figure):
    """Plot the confusion matrix."""

    name, title = "confusion", "Confusion matrix"
    needs = ("confusion",)
    x, y = _axis("predicted class", ["0", "1"]), _axis("observed class", ["0", "1"], down=True)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``matrix`` (observed, predicted) of ``classes``."""
        matrix, names = np.asarray(part["matrix"], dtype=float), [str(name) for name in part["classes"]]
        count, total, of_class = len(names), matrix.sum(), matrix.sum(1, keepdims=True)
        shares = np.divide(matrix, of_class, out=np.zeros_like(matrix), where=of_class > 0)
        y, x = np.indices(matrix.shape)
        whole = np.allclose(matrix, matrix.round())
        side = max(260, min(520, count * _CELL))
        look = {"blended": False, "label": "share of the class", "ends": ("0", "1")}
        image = Image(shares, (0, count - 1, 0, count - 1), count, RAMP, **look)
        texts = tuple(f"{n:.0f}" if whole or n < 0.05 else f"{n:.1f}" for n in matrix.ravel())
        size = float(np.clip(110 / max(count, 1), SMALLEST, LARGEST))
        over = tuple(f"over {share:.2f}" for share in shares.ravel())
        return Drawing(
            [image, Text(x.ravel(), y.ravel(), texts, size, over)],
            x=_axis("predicted class", names),
            y=_axis("observed class", names, down=True),
            note=f"{100 * np.trace(matrix) / total:.1f}% of {total:.0f} rows right" if total else "",
            size=(side, side),
        )


def confusion(source: Any, observed: Any = None, *, classes: Sequence[str] | None = None) -> Drawing:
    """Plot the confusion matrix of the test rows, coloured by the proportion of each observed class.

    Parameters
    ----------
    source : Run, Recording, path, array or dict
        A classification network; probabilities (rows, classes) or (draws, rows, classes); or the part ``confusion`` of
        a frame: ``matrix`` (observed, predicted), and ``classes``.
    observed : array_like, shape (rows,), optional
        Observed classes. Required if ``source`` contains probabilities.
    classes : sequence of str, optional
        Names of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from bnnviz import plots
    >>> rng = np.random.default_rng(0)
    >>> observed = np.arange(300) % 3
    >>> probabilities = rng.dirichlet([1, 1, 1], size=300) + np.eye(3)[observed]
    >>> plots.confusion(probabilities / 2, observed, classes=["cat", "dog", "owl"])
    :Overlay...
    """
    if isinstance(source, Mapping) and "matrix" in source:
        matrix, names = np.asarray(source["matrix"], dtype=float), list(classes or source["classes"])
    else:
        found = parts.class_predictions(source, observed, classes)
        names = found.classes
        matrix = diagnostics.confusion(found.mean.argmax(1), found.observed, len(names)).astype(float)
    if matrix.ndim != 2 or matrix.shape != (len(names), len(names)):
        raise BnnvizError(f"A matrix of the shape {matrix.shape} does not fit {len(names)} classes.", "classes")
    return Confusion().draw({"matrix": matrix, "classes": names})

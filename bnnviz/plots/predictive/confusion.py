"""Draw which classes are taken for which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import holoviews as hv
import numpy as np

from bnnviz import diagnostics
from bnnviz.errors import BnnvizError
from bnnviz.plots import parts, style
from bnnviz.views.palette import Palette
from bnnviz.views.predictive.confusion import LARGEST, SMALLEST, cell_ink, cell_text

_MARGIN, _CELL = 120, 34  # pixels


def confusion(
    source: Any,
    observed: Any = None,
    *,
    classes: Sequence[str] | None = None,
    dark: bool = False,
) -> hv.Overlay:
    """Draw test rows by observed and predicted class; a cell is the darker, the larger its share of the observed.

    Parameters
    ----------
    source : Run, Recording, path, array or dict
        A network with classes; probabilities (rows, classes) or (draws, rows, classes); or the part ``confusion`` of a
        frame: ``matrix`` (observed, predicted), and ``classes``.
    observed : array_like, shape (rows,), optional
        Class numbers, where probabilities are given.
    classes : sequence of str, optional
        Names of the classes.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the source is no classifier, or what is given does not fit.

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
        matrix, labels = np.asarray(source["matrix"], dtype=float), list(classes or source["classes"])
    else:
        found = parts.class_predictions(source, observed, classes)
        labels = found.classes
        matrix = diagnostics.confusion(found.mean.argmax(1), found.observed, len(labels)).astype(float)
    if matrix.ndim != 2 or matrix.shape != (len(labels), len(labels)):
        raise BnnvizError(f"A matrix of the shape {matrix.shape} does not fit {len(labels)} classes.", "classes")
    return _drawn(matrix, [str(label) for label in labels], style.palette_of(dark))


def _drawn(matrix: np.ndarray, labels: list[str], palette: Palette) -> hv.Overlay:
    count = len(labels)
    of_class = matrix.sum(1, keepdims=True)
    shares = np.divide(matrix, of_class, out=np.zeros_like(matrix), where=of_class > 0)
    x, y = hv.Dimension(("predicted", "predicted class")), hv.Dimension(("observed", "observed class"))
    share = hv.Dimension(("share", "share of the observed class"))
    bounds = (-0.5, -0.5, count - 0.5, count - 0.5)
    picture = hv.Image(shares[::-1], [x, y], share, bounds=bounds)
    drawn = [style.image(picture, palette, [palette.grid, palette.blue], (0.0, 1.0), "share of the class")]
    down, across = np.indices(matrix.shape)
    whole = np.allclose(matrix, matrix.round())
    inks = np.array([cell_ink(palette, value) for value in shares.ravel()])
    texts = np.array([cell_text(value, whole) for value in matrix.ravel()], dtype=object)
    size = float(np.clip(110 / count, SMALLEST, LARGEST))
    for ink in dict.fromkeys(inks):
        own = inks == ink
        labelled = hv.Labels((across.ravel()[own], down.ravel()[own], texts[own]), [x, y], "rows")
        drawn.append(style.words(labelled, palette, ink, size))
    total = matrix.sum()
    title = f"{100 * np.trace(matrix) / total:.1f} % of {total:.0f} rows right" if total else ""
    side = max(260, min(520, count * _CELL * 2))
    ticks = list(enumerate(labels))
    turned = 35 if sum(map(len, labels)) > 40 else 0
    how = {"invert_yaxis": True, "xticks": ticks, "yticks": ticks, "xrotation": turned}
    figure = style.finish(hv.Overlay(drawn), palette, title=title, size=(side + _MARGIN, side), **how)
    return style.apply(figure, show_grid=False)

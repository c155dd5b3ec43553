"""Parse networks written as text, without torch."""

from __future__ import annotations

import re
from reprlib import repr as short_repr

from bnnviz.errors import BnnvizError

ACTIVATIONS = ("tanh", "relu", "softplus", "silu")
"""Names of the activations of `bnnviz.models.mlp` (silu is also called swish)."""

IMAGE_NETWORKS = ("lenet5", "lenet5_swish", "resnet20", "gtsrb", "small_cnn", "mlp")
"""Names of the networks of `bnnviz.models.image_network`."""

MAX_LAYERS = 8
MAX_WIDTH = 1024
_WIDTHS = re.compile(r"\s*[0-9]{1,4}(\s*-\s*[0-9]{1,4})*\s*")


def parse_hidden(text: str) -> tuple[int, ...]:
    """Parse the widths of the hidden layers.

    Parameters
    ----------
    text : str
        Widths joined by hyphens: ``"50"``, ``"25-10"``.

    Returns
    -------
    tuple of int
        One width per hidden layer, from input to output.

    Raises
    ------
    BnnvizError
        If the text is invalid, or the network would be too large.

    Examples
    --------
    >>> from bnnviz import models
    >>> models.parse_hidden("25-10")
    (25, 10)
    """
    widths: tuple[int, ...] = ()
    if isinstance(text, str) and _WIDTHS.fullmatch(text):
        widths = tuple(int(width) for width in text.split("-"))
    if not 1 <= len(widths) <= MAX_LAYERS or not all(1 <= width <= MAX_WIDTH for width in widths):
        raise BnnvizError(
            f"The hidden layers {short_repr(text)} cannot be read: write 1 to {MAX_LAYERS} widths from 1 to"
            f" {MAX_WIDTH} joined by hyphens, such as 50 or 25-10.",
            field="hidden",
        )
    return widths

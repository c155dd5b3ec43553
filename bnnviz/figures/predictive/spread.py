"""Draw how far the draws of a network disagree, on a map of two inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SQUARE, Axis, Drawing
from bnnviz.figures.predictive.prediction import MAP, map_of, network

if TYPE_CHECKING:
    import holoviews as hv

MOST = 0.5  # the standard deviation of a probability cannot be larger


class Spread(Figure):
    """Draw the standard deviation of the probability of class 1 over the draws."""

    name = "spread"
    title = "Its sd over the draws"
    needs = ("spread",)
    place = 4

    def blank(self) -> Drawing:
        """Return the axes of the scene's inputs."""
        data = self.scene.get("data")
        if data is None or data["kind"] != MAP:
            exact = {"ends": (-1.0, 1.0), "follow": "exact"}
            return Drawing(x=Axis("x1", **exact), y=Axis("x2", **exact))
        axes = {a: Axis(data[f"{a}_label"], tuple(map(float, data[f"{a}_range"])), follow="exact") for a in "xy"}
        return Drawing(size=SQUARE, **axes)

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``sd`` on the grid of the scene."""
        blank, sd = self.blank(), np.asarray(part["sd"])
        image = map_of(self.scene["data"], sd, ("surface", "purple"), MOST, "sd")
        return Drawing([image], x=blank.x, y=blank.y, note=f"largest {sd.max():.2f}", size=SQUARE)


def spread(source: Any, *, dark: bool = False) -> hv.Overlay:
    """Draw how far the draws of a network differ on a map: the standard deviation of the probability of class 1.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A network with two inputs and two classes; or the part ``spread`` of a frame, with its scene under ``scene``.
    dark : bool, default False

    Returns
    -------
    hv.Overlay

    Raises
    ------
    BnnvizError
        If the source is not such a network, or has no draws.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> network = {"data": "moons", "hidden": "3"}
    >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=20, warmup=10, chains=2)
    >>> plots.spread(run)
    :Overlay...
    """
    from bnnviz.figures.still.render import overlay

    if isinstance(source, Mapping):
        scene, part = parts.part(source, "spread", "a map")
        data, sd = scene.get("data"), part.get("sd")
    else:
        predictor, theta = network(source)
        data, sd = predictor.scene(), predictor.spread_of(theta).get("sd")
    if data is None or data["kind"] != MAP or sd is None:
        raise BnnvizError("A map of the spread needs a network with two inputs and two classes.", "source")
    figure = Spread()
    figure.begin({"data": data})
    return overlay(figure.draw({"sd": sd}), dark)

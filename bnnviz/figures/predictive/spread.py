"""Draw how far the draws of a network disagree, on a map of two inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bnnviz.errors import BnnvizError
from bnnviz.figures import parts
from bnnviz.figures.base import Figure
from bnnviz.figures.marks import SQUARE, Axis, Drawing
from bnnviz.figures.predictive.prediction import MAP, axes_of, map_of, network

MOST = 0.5  # the standard deviation of a probability cannot be larger


class Spread(Figure):
    """Draw the standard deviation of the probability of class 1 over the draws."""

    name, title = "spread", "Its sd over the draws"
    needs = ("spread",)
    place = 4
    x, y, size = Axis("x1", (-1.0, 1.0), "exact"), Axis("x2", (-1.0, 1.0), "exact"), SQUARE

    def begin(self, scene: dict[str, Any]) -> None:
        """Take the inputs of the new run."""
        super().begin(scene)
        if (scene.get("data") or {}).get("kind") == MAP:
            self.x, self.y = axes_of(scene["data"]).values()

    def draw(self, part: dict[str, Any]) -> Drawing:
        """Draw ``sd`` on the grid of the scene."""
        sd = np.asarray(part["sd"])
        image = map_of(self.scene["data"], sd, ("surface", "purple"), MOST, "sd")
        return self.drawing([image], note=f"largest {sd.max():.2f}")


def spread(source: Any) -> Drawing:
    """Plot the standard deviation over draws of the probability of class 1 as a function of two inputs.

    Parameters
    ----------
    source : Run, Recording, path or dict
        A network with two inputs and two classes, or the part ``spread`` of a frame, with its scene under ``scene``.

    Examples
    --------
    >>> import bnnviz
    >>> from bnnviz import plots
    >>> network = {"data": "moons", "hidden": "3"}
    >>> run = bnnviz.sample("network", "hmc", target_settings=network, draws=20, warmup=10, chains=2)
    >>> plots.spread(run)
    :Overlay...
    """
    if isinstance(source, Mapping):
        scene, part = parts.part(source, "spread", "a map")
        data, sd = scene.get("data"), part.get("sd")
    else:
        predictor, theta = network(source)
        data, sd = predictor.scene(), predictor.part_of("spread", theta, theta).get("sd")
    if data is None or data["kind"] != MAP or sd is None:
        raise BnnvizError("The spread can only be plotted for a network with two inputs and two classes.", "source")
    figure = Spread()
    figure.begin({"data": data})
    return figure.draw({"sd": sd})

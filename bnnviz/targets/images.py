"""Define the posterior of a network on images, with a categorical likelihood (see `bnnviz.targets.bnn`)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from bnnviz import data as datasets
from bnnviz import settings
from bnnviz.models import IMAGE_NETWORKS, image_network
from bnnviz.targets.base import REGISTRY
from bnnviz.targets.bnn import BNN
from bnnviz.targets.modules.calls import CallRules

_TRAINABLE = [name for name in datasets.names("images") if datasets.describe(name)["trainable"]]
_LEVELS = 255  # of a byte


@REGISTRY.add
class ImageNetwork(BNN):
    """Posterior of a convolutional network or multilayer perceptron for image classification.

    Images are stored as bytes, and each batch is standardised per channel. Large batches are processed in chunks. The
    networks have no batch normalisation, because the likelihood must factorise over rows.

    Parameters
    ----------
    values
        Settings by name.

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.ImageNetwork(network="mlp", train_rows=20, test_rows=20).examples
    20
    """

    registered = "images"
    title = "Network on images"
    # As many as in the papers' batches of images, at a rate suitable for deep networks.
    descent_rows = 100
    descent_rate = 3e-3

    data = settings.Choice(_TRAINABLE[0], objects=_TRAINABLE, doc="The data set.")
    network = settings.Choice(
        IMAGE_NETWORKS[0],
        objects=list(IMAGE_NETWORKS),
        doc="lenet5: conv6-conv16-120-84 with ReLU (61,706 weights for 28 x 28 pixels); lenet5_swish: conv6-conv16-"
        "conv120-84 with swish, from the PDMP paper (545,546); resnet20: 16-32-64 channels, filter-response"
        " normalisation and swish; gtsrb: conv6-conv16-128, from the functional paper; small_cnn: conv4-conv8 (2,202),"
        " for teaching; mlp: 100-100 with ReLU.",
    )
    train_rows = settings.Integer(
        1000,
        bounds=(1, 1_000_000),
        scale="log",
        allow_None=True,
        unit="rows",
        empty="all rows",
        label="Training rows",
        doc="Number of training rows, balanced over classes if possible. Empty: all rows.",
    )
    test_rows = settings.Integer(
        1000,
        bounds=(1, 1_000_000),
        scale="log",
        unit="rows",
        label="Test rows",
        doc="Number of test rows for predictions and scores, balanced over classes if possible.",
    )
    prior_sd = settings.Number(
        1.0, bounds=(0.01, 100.0), scale="log", doc="Standard deviation of the normal prior of the weights."
    )

    def __init__(self, **values: Any) -> None:
        chosen = settings.fill(settings.describe(type(self)), values, self.title)
        images = datasets.load(chosen["data"]).chosen(chosen["train_rows"], chosen["test_rows"])
        module = image_network(chosen["network"], images.shape, images.classes)
        # A multilayer perceptron has a separate kernel, which reads rows of numbers.
        self._flat = isinstance(module[0], nn.Flatten)
        self._shift, self._factor = self._scales(images)
        super().__init__(module[1:] if self._flat else module, images, "categorical", chosen["prior_sd"])
        self.param.update(**chosen)

    def _try_module(self) -> CallRules:
        """Return no special rules, as for all modules of `bnnviz.models`."""
        return CallRules()

    def _scales(self, images: datasets.ImageSet) -> tuple[Tensor, Tensor]:
        """Return the offset and factor that standardise an image's bytes."""
        channels, height, width = images.shape
        mean, sd = (torch.tensor(values, dtype=torch.float64)[:, None, None] for values in (images.mean, images.sd))
        pair = _LEVELS * mean, 1 / (_LEVELS * sd)
        return tuple(part.expand(channels, height, width).flatten() if self._flat else part for part in pair)

    def _rows_of(self, data: datasets.ImageSet, part: str) -> tuple[Any, Any]:
        """Return bytes and classes of a part of the images."""
        x = getattr(data, f"x_{part}")
        return x.reshape(len(x), -1) if self._flat else x, getattr(data, f"y_{part}")

    def _kept(self, x: Tensor) -> Tensor:
        """Return bytes unchanged."""
        return x

    def seen(self, x: Tensor) -> Tensor:
        """Return standardised images for bytes, and other numbers unchanged."""
        x = x.flatten(-3) if self._flat and x.shape[-3:] == self.data_set.shape else x
        return x if x.is_floating_point() else ((x - self._shift) * self._factor)

    def describe_value(self) -> str:
        """Describe data and network in one line."""
        return f"{self.data_set.name}, {len(self.x):,} rows, {self.network}, {self.dim:,} weights"

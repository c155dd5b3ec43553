"""Find the networks for images by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn

from bnnviz.errors import BnnvizError
from bnnviz.models.convolutional import gtsrb, lenet5, lenet5_swish, small_cnn
from bnnviz.models.layers import IMAGE_NETWORKS
from bnnviz.models.perceptron import mlp
from bnnviz.models.resnet20 import resnet20
from bnnviz.models.shapes import check_images

_HIDDEN = (100, 100)


def image_mlp(shape: Sequence[int] = (1, 28, 28), classes: int = 10) -> nn.Sequential:
    """Make a network that reads an image's pixels row by row: 100 - 100 - classes, with ReLU; 89,610 parameters."""
    channels, height, width = check_images(shape, classes, "The multilayer perceptron", 1)
    return nn.Sequential(nn.Flatten(), *mlp(channels * height * width, _HIDDEN, classes, "relu"))


_MAKERS: dict[str, Callable[[Sequence[int], int], nn.Sequential]] = {
    "lenet5": lenet5,
    "lenet5_swish": lenet5_swish,
    "resnet20": resnet20,
    "gtsrb": gtsrb,
    "small_cnn": small_cnn,
    "mlp": image_mlp,
}


def image_network(name: str, shape: Sequence[int], classes: int) -> nn.Sequential:
    """Create a network for images by name.

    Parameters
    ----------
    name : str
        One of `bnnviz.models.IMAGE_NETWORKS`.
    shape : sequence of int
        Channels, height and width of an image.
    classes : int
        Number of outputs, one logit each.

    Returns
    -------
    torch.nn.Sequential
        Network with the default initial weights of torch, drawn from its global generator. The networks have no batch
        normalisation, because the likelihood must factorise over rows.

    Raises
    ------
    BnnvizError
        If the name is unknown or the network does not support images of this shape.

    Examples
    --------
    >>> from bnnviz import models
    >>> sum(p.numel() for p in models.image_network("lenet5", (1, 28, 28), 10).parameters())
    61706
    """
    if name not in _MAKERS:
        raise BnnvizError(
            f"There is no network for images {name!r}; choose one of {', '.join(IMAGE_NETWORKS)}.", "network"
        )
    return _MAKERS[name](shape, classes)

"""Build networks of 5 x 5 convolutions, pooling and linear layers: two LeNet-5, for traffic signs, and a small one.

Pooling is the maximum of 2 x 2 pixels. `bnnviz.models.image_network` describes parameters and errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import nn

from bnnviz.models.shapes import check_images

_SIZE = 5  # of a convolution's kernel, in pixels


class Convolution(NamedTuple):
    """A 5 x 5 convolution with its activation: output channels, padding, whether it is pooled."""

    channels: int
    padding: int
    pooled: bool


def lenet5(shape: Sequence[int] = (1, 28, 28), classes: int = 10) -> nn.Sequential:
    """Make the classic LeNet-5: conv6 - pool - conv16 - pool - 120 - 84 - classes, with ReLU, from 12 x 12 pixels.

    The first convolution preserves the image size and the second does not, which gives the counts of the PMCnet paper
    (Huang, Chouzenoux, Elvira and Pesquet 2023, table 8): 61,706 parameters for 28 x 28 grey pixels, 82,826 for 32 x
    32. LeCun et al. 1998 use other activations and a pooling with weights.
    """
    convolutions = Convolution(6, 2, True), Convolution(16, 0, True)
    return _network(check_images(shape, classes, "LeNet-5", 12), classes, convolutions, (120, 84), nn.ReLU)


def lenet5_swish(shape: Sequence[int] = (1, 28, 28), classes: int = 10) -> nn.Sequential:
    """Make the LeNet-5 of the PDMP paper: conv6 - pool - conv16 - pool - conv120 - 84 - classes, with swish.

    All convolutions preserve the size, so the last one passes 120 images of 7 x 7 to the layer of 84 units, which has
    most of the 545,546 parameters. The paper's code applies swish to the logits too, an error that is not reproduced
    here. The paper does not specify the pooling.
    """
    convolutions = Convolution(6, 2, True), Convolution(16, 2, True), Convolution(120, 2, False)
    return _network(check_images(shape, classes, "LeNet-5 with swish", 4), classes, convolutions, (84,), nn.SiLU)


def gtsrb(shape: Sequence[int] = (1, 32, 32), classes: int = 43) -> nn.Sequential:
    """Make the network for traffic signs: conv6 - pool - conv16 - pool - 128 - classes, with ReLU; 59,447 parameters.

    Source: the functional-BNN paper, section 6.1, which gives only the layers. Convolutions without padding, ReLU and
    the pooling are usual in LeNet-5 code for this data set, whose images are grey in the paper.
    """
    convolutions = Convolution(6, 0, True), Convolution(16, 0, True)
    sizes = check_images(shape, classes, "The network for traffic signs", 16)
    return _network(sizes, classes, convolutions, (128,), nn.ReLU)


def small_cnn(shape: Sequence[int] = (1, 28, 28), classes: int = 10) -> nn.Sequential:
    """Make a small network for teaching: conv4 - pool - conv8 - pool - classes, with ReLU; 2,202 parameters."""
    convolutions = Convolution(4, 0, True), Convolution(8, 0, True)
    sizes = check_images(shape, classes, "The small convolutional network", 16)
    return _network(sizes, classes, convolutions, (), nn.ReLU)


def _network(
    sizes: tuple[int, int, int],
    classes: int,
    convolutions: Sequence[Convolution],
    hidden: Sequence[int],
    activation: type[nn.Module],
) -> nn.Sequential:
    """Make a network of convolutions and hidden layers with one activation."""
    channels, height, width = sizes
    layers: list[nn.Module] = []
    for convolution in convolutions:
        layers += [nn.Conv2d(channels, convolution.channels, _SIZE, padding=convolution.padding), activation()]
        lost, halves = _SIZE - 1 - 2 * convolution.padding, 2 if convolution.pooled else 1
        channels, height, width = convolution.channels, (height - lost) // halves, (width - lost) // halves
        layers += [nn.MaxPool2d(2)] if convolution.pooled else []
    layers.append(nn.Flatten())
    units = channels * height * width
    for width_of_layer in hidden:
        layers += [nn.Linear(units, width_of_layer), activation()]
        units = width_of_layer
    return nn.Sequential(*layers, nn.Linear(units, classes))

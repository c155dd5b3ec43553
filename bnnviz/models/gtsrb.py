"""The network of the functional paper for traffic signs."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from bnnviz.models.shapes import check_images


def gtsrb(shape: Sequence[int] = (1, 32, 32), classes: int = 43) -> nn.Sequential:
    """Make the network for traffic signs: conv6 - pool - conv16 - pool - 128 - classes, with ReLU.

    Parameters
    ----------
    shape : sequence of int, default (1, 32, 32)
        Channels, height and width of an image; at least 16 x 16 pixels. The paper's are grey.
    classes : int, default 43
        Number of outputs, one logit each.

    Returns
    -------
    torch.nn.Sequential
        59,447 parameters for 32 x 32 grey pixels and 43 classes, 59,747 for colours.

    Raises
    ------
    BnnvizError
        If images of this shape do not fit.

    Notes
    -----
    Source: the functional-BNN paper, section 6.1, which gives the layers and no more: convolutions of 5 x 5 without
    padding, ReLU and the maximum of 2 x 2 pixels are what LeNet-5 in code for this data set has.
    """
    channels, height, width = check_images(shape, classes, "The network for traffic signs", 16)
    units = 16 * (((height - 4) // 2 - 4) // 2) * (((width - 4) // 2 - 4) // 2)
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(units, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )

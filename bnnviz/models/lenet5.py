"""LeNet-5 as two papers use it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from bnnviz.models.shapes import check_images


def lenet5(shape: Sequence[int] = (1, 28, 28), classes: int = 10) -> nn.Sequential:
    """Make the classic LeNet-5: conv6 - pool - conv16 - pool - 120 - 84 - classes, with ReLU.

    Parameters
    ----------
    shape : sequence of int, default (1, 28, 28)
        Channels, height and width of an image; at least 12 x 12 pixels.
    classes : int, default 10
        Number of outputs, one logit each.

    Returns
    -------
    torch.nn.Sequential
        61,706 parameters for 28 x 28 grey pixels and 10 classes, 82,826 for 32 x 32.

    Raises
    ------
    BnnvizError
        If images of this shape do not fit.

    Notes
    -----
    Convolutions are 5 x 5, the first keeps an image's size and the second does not, which gives the counts of the
    PMCnet paper for both sizes (Huang, Chouzenoux, Elvira and Pesquet 2023, table 8). LeCun et al. 1998 have other
    activations and a pooling with weights; ReLU and the maximum of 2 x 2 pixels are what is meant by the name today.
    """
    channels, height, width = check_images(shape, classes, "LeNet-5", 12)
    units = 16 * ((height // 2 - 4) // 2) * ((width // 2 - 4) // 2)
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(units, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )


def lenet5_swish(shape: Sequence[int] = (1, 28, 28), classes: int = 10) -> nn.Sequential:
    """Make the LeNet-5 of the PDMP paper: conv6 - pool - conv16 - pool - conv120 - 84 - classes, with swish.

    Parameters
    ----------
    shape : sequence of int, default (1, 28, 28)
        Channels, height and width of an image; at least 4 x 4 pixels.
    classes : int, default 10
        Number of outputs, one logit each.

    Returns
    -------
    torch.nn.Sequential
        545,546 parameters for 28 x 28 grey pixels and 10 classes.

    Raises
    ------
    BnnvizError
        If images of this shape do not fit.

    Notes
    -----
    All convolutions are 5 x 5 and keep the size, so the last one hands 120 images of 7 x 7 to the layer of 84 units,
    where most of the weights are. The paper's code has swish on the logits too, which is an error: not here. It does
    not say which pooling is meant; the maximum of 2 x 2 pixels is ours.
    """
    channels, height, width = check_images(shape, classes, "LeNet-5 with swish", 4)
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=2),
        nn.SiLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5, padding=2),
        nn.SiLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 120, 5, padding=2),
        nn.SiLU(),
        nn.Flatten(),
        nn.Linear(120 * (height // 4) * (width // 4), 84),
        nn.SiLU(),
        nn.Linear(84, classes),
    )

"""Build ResNet-20 for a posterior: filter-response normalisation and swish."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bnnviz.models.shapes import check_images

_WIDTHS, _BLOCKS = (16, 32, 64), 3


class FilterResponseNorm(nn.Module):
    """Filter-response normalisation: each channel of each image over the root of its mean square, then an affine map.

    Parameters
    ----------
    channels : int
    eps : float, default 1e-6
        Added to the mean square.

    Notes
    -----
    y = gamma x / sqrt(mean(x^2) + eps) + beta, the mean over the pixels of one channel of one image (Singh and
    Krishnan 2020, equations 1 to 4). Nothing passes between images, so a row has a likelihood of its own: with batch
    normalisation it would depend on the rest of its batch, and log p(D | w) would be no sum over rows. The paper's
    thresholded unit, max(y, tau), is left out: swish follows.
    """

    def __init__(self, channels: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Return images (rows, channels, height, width) normalised."""
        scale = self.gamma[:, None, None] * torch.rsqrt(x.square().mean((-2, -1), keepdim=True) + self.eps)
        return x * scale + self.beta[:, None, None]


class ResidualBlock(nn.Module):
    """Two normalised convolutions around which the input passes: as it is, or through one of 1 x 1 of its own.

    Parameters
    ----------
    before, channels : int
        Channels that it reads and gives.
    stride : int
        Of the first convolution and of the one of 1 x 1.
    """

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = _convolution(before, channels, 3, stride)
        self.second = _convolution(channels, channels, 3, 1)
        same = before == channels and stride == 1
        self.shortcut = nn.Identity() if same else _convolution(before, channels, 1, stride)
        self.activation = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's images."""
        return self.activation(self.shortcut(x) + self.second(self.activation(self.first(x))))


def resnet20(shape: Sequence[int] = (3, 32, 32), classes: int = 10) -> nn.Sequential:
    """Make ResNet-20 with 16, 32 and 64 channels, filter-response normalisation and swish.

    Parameters and errors as of `bnnviz.models.image_network`, for images of at least 8 x 8 pixels.

    Returns
    -------
    torch.nn.Sequential
        273,258 parameters for 32 x 32 pixels in colours and 10 classes, whatever the size.

    Notes
    -----
    As Wenzel et al. 2020 have it, whom the PDMP paper follows: convolutions with biases, and where the size changes a
    normalised convolution of 1 x 1 around the block. With a threshold tau for each of the 784 normalised channels it
    would have the 274,042 parameters of Izmailov et al. 2021; swish has none. The 269,722 of the PMCnet paper are those
    with batch normalisation, without biases of convolutions, and with shortcuts that have no weights (He et al. 2016).
    """
    channels, _, _ = check_images(shape, classes, "ResNet-20", 8)
    layers: list[nn.Module] = [_convolution(channels, _WIDTHS[0], 3, 1), nn.SiLU()]
    before = _WIDTHS[0]
    for width in _WIDTHS:
        for number in range(_BLOCKS):
            layers.append(ResidualBlock(before, width, 2 if number == 0 and width != _WIDTHS[0] else 1))
            before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


def _convolution(before: int, channels: int, size: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, channels, size, stride=stride, padding=size // 2), FilterResponseNorm(channels)
    )

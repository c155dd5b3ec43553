"""Build ResNet-20 for a posterior: filter-response normalisation and swish."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bnnviz.models.shapes import check_images

_WIDTHS, _BLOCKS = (16, 32, 64), 3


class FilterResponseNorm(nn.Module):
    """Filter-response normalisation: y = gamma x / sqrt(mean(x^2) + eps) + beta, for each channel of each image.

    The mean is over pixels (Singh and Krishnan 2020, equations 1 to 4). Images do not interact, so each row has a
    likelihood; with batch normalisation log p(D | w) would not be a sum over rows. The paper's thresholded unit,
    max(y, tau), is omitted, because swish follows.
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
    """Two normalised convolutions with a shortcut: the identity, or a 1 x 1 convolution with the same stride."""

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
    """Make ResNet-20 with 16, 32 and 64 channels, filter-response normalisation and swish, for 8 x 8 pixels or more.

    As in Wenzel et al. 2020, which the PDMP paper follows: convolutions with biases, and a normalised 1 x 1 convolution
    around each block that changes the size. It has 273,258 parameters for colour images and 10 classes. With a
    threshold tau for each of the 784 normalised channels it would have the 274,042 of Izmailov et al. 2021. The 269,722
    of the PMCnet paper are those with batch normalisation, without biases, and with shortcuts without weights (He et
    al. 2016).
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

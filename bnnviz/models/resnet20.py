"""Build ResNet-20 for a posterior: filter-response normalisation and swish."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bnnviz.models.shapes import check_images

_WIDTHS, _BLOCKS = (16, 32, 64), 3


class FilterResponseNorm(nn.Module):
    """Filter-response normalisation: each channel of each image over the root of its mean square, then an affine map.

    Notes
    -----
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
    """Two normalised convolutions around which the input passes: as it is, or through one of 1 x 1 of its own."""

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

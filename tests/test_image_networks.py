"""Networks for images and their posteriors: sizes, normalisation, gradients, pieces of rows, every sampler."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from bnnviz.errors import BnnvizError
from bnnviz.models import IMAGE_NETWORKS, image_network
from bnnviz.models.resnet20 import FilterResponseNorm

# --- the networks


@pytest.mark.parametrize(
    ("name", "shape", "classes", "count"),
    [
        ("lenet5", (1, 28, 28), 10, 61_706),  # PMCnet paper, table 8
        ("lenet5", (1, 32, 32), 10, 82_826),  # PMCnet paper, table 8
        ("lenet5_swish", (1, 28, 28), 10, 545_546),  # PDMP paper
        ("gtsrb", (1, 32, 32), 43, 156 + 2416 + 400 * 128 + 128 + 129 * 43),
        ("gtsrb", (3, 32, 32), 43, 59_747),
        ("mlp", (1, 28, 28), 10, 785 * 100 + 101 * 100 + 101 * 10),
    ],
)
def test_parameter_counts(name, shape, classes, count):
    network = image_network(name, shape, classes)
    assert sum(p.numel() for p in network.parameters()) == count
    assert network(torch.zeros(2, *shape)).shape == (2, classes)


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28)])
def test_the_residual_network_has_twenty_layers_and_the_count_of_its_parts(shape):
    network = image_network("resnet20", shape, 10)
    parts = [child for child in network.modules() if isinstance(child, nn.Conv2d | nn.Linear)]
    assert len([child for child in parts if getattr(child, "kernel_size", None) != (1, 1)]) == 20
    weights = 9 * (shape[0] * 16 + 6 * 16 * 16 + 16 * 32 + 5 * 32 * 32 + 32 * 64 + 5 * 64 * 64)
    channels = 7 * 16 + 6 * 32 + 6 * 64 + 32 + 64  # with those of the two shortcuts
    expected = weights + 16 * 32 + 32 * 64 + 3 * channels + 650
    assert sum(p.numel() for p in network.parameters()) == expected
    assert expected == (273_258 if shape[0] == 3 else 272_970)
    # With the thresholds of the published one, tau of every normalised channel, it has its count.
    assert shape[0] == 1 or expected + channels == 274_042
    assert network(torch.zeros(2, *shape)).shape == (2, 10)


@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_an_image_knows_nothing_of_the_others_in_its_batch(name):
    torch.manual_seed(0)
    network, x = image_network(name, (3, 32, 32), 4).double(), torch.randn(3, 3, 32, 32, dtype=torch.float64)
    network.train()
    assert torch.allclose(network(x)[:1], network(x[:1]), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "shape", "classes", "words"),
    [
        ("lenet5", (1, 8, 8), 10, "at least 12 x 12 pixels, and these have 8 x 8"),
        ("lenet5_swish", (1, 3, 28), 10, "at least 4 x 4"),
        ("gtsrb", (3, 28, 15), 43, "at least 16 x 16"),
        ("resnet20", (3, 4, 4), 10, "at least 8 x 8"),
        ("mlp", (13,), 3, r"a shape \(channels, height, width\)"),
        ("lenet5", (0, 28, 28), 10, r"a shape \(channels, height, width\)"),
        ("lenet5", (1, 28.0, 28), 10, "three whole numbers"),
        ("lenet5", (1, 28, 28), 1, "at least 2 of them"),
        ("lenet4", (1, 28, 28), 10, "choose one of lenet5,"),
    ],
)
def test_what_does_not_fit_is_refused(name, shape, classes, words):
    with pytest.raises(BnnvizError, match=words) as caught:
        image_network(name, shape, classes)
    assert caught.value.field == "network"


@pytest.mark.parametrize(
    ("name", "least"), [("lenet5", 12), ("lenet5_swish", 4), ("gtsrb", 16), ("resnet20", 8), ("mlp", 1)]
)
def test_the_smallest_images_that_are_allowed_can_be_read(name, least):
    assert image_network(name, (1, least, least), 3)(torch.zeros(2, 1, least, least)).shape == (2, 3)


def test_names_of_networks_need_no_torch():
    code = "import sys; from bnnviz.models import IMAGE_NETWORKS; assert 'torch' not in sys.modules and IMAGE_NETWORKS"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_filter_response_normalisation_is_its_formula():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, 5, 4, dtype=torch.float64, generator=generator)
    layer = FilterResponseNorm(3).double()
    assert torch.allclose(layer(x).square().mean((2, 3)), torch.ones(2, 3, dtype=torch.float64), atol=1e-4)
    assert torch.allclose(layer(100 * x), layer(x), atol=1e-4)  # the scale of the inputs is gone
    assert not torch.allclose(layer(x + 1), layer(x), atol=0.1)  # their mean is not: nothing is subtracted
    with torch.no_grad():
        layer.gamma.copy_(torch.tensor([1.0, 2.0, -3.0]))
        layer.beta.copy_(torch.tensor([0.5, 0.0, 1.0]))
    one = x[1, 2] / (x[1, 2].square().mean() + 1e-6).sqrt()
    assert torch.allclose(layer(x)[1, 2], 1 - 3 * one)

"""Networks for images and their posteriors: sizes, normalisation, gradients, pieces of rows, every sampler."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import bnnviz
from bnnviz import data, samplers, settings, targets
from bnnviz.engine.evaluation.predictions import scores
from bnnviz.engine.run.initialization import Descent
from bnnviz.engine.viewed_run import ViewedRun
from bnnviz.errors import BnnvizError
from bnnviz.models import image_network
from bnnviz.models.resnet20 import FilterResponseNorm
from bnnviz.specs.run import Spec
from bnnviz.targets import bnn_curvature
from tests.driven import finished

# --- the networks


@pytest.mark.parametrize(
    ("name", "shape", "classes", "count"),
    [
        ("lenet5", (1, 28, 28), 10, 61_706),  # PMCnet paper, table 8
        ("lenet5", (1, 32, 32), 10, 82_826),  # PMCnet paper, table 8
        ("lenet5_swish", (1, 28, 28), 10, 545_546),  # PDMP paper
        ("gtsrb", (1, 32, 32), 43, 156 + 2416 + 400 * 128 + 128 + 129 * 43),
        ("gtsrb", (3, 32, 32), 43, 59_747),
        ("small_cnn", (1, 28, 28), 10, 4 * 26 + 8 * 101 + 10 * 129),
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


@pytest.mark.parametrize(
    ("name", "shape", "classes", "words"),
    [
        ("lenet5", (1, 8, 8), 10, "at least 12 x 12 pixels, but these have 8 x 8"),
        ("lenet5_swish", (1, 3, 28), 10, "at least 4 x 4"),
        ("gtsrb", (3, 28, 15), 43, "at least 16 x 16"),
        ("resnet20", (3, 4, 4), 10, "at least 8 x 8"),
        ("mlp", (13,), 3, r"shape \(channels, height, width\)"),
        ("lenet5", (0, 28, 28), 10, r"shape \(channels, height, width\)"),
        ("lenet5", (1, 28.0, 28), 10, "three positive integers"),
        ("lenet5", (1, 28, 28), 1, "at least 2 classes"),
        ("lenet4", (1, 28, 28), 10, "choose one of lenet5,"),
    ],
)
def test_what_does_not_fit_is_refused(name, shape, classes, words):
    with pytest.raises(BnnvizError, match=words) as caught:
        image_network(name, shape, classes)
    assert caught.value.field == "network"


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


# --- their posteriors

ROWS, TEST_ROWS, SIDE, CLASSES = 40, 20, 12, 3


def images(rows: int = ROWS) -> data.ImageSet:
    """Return images of noise, each class with a bright bar of its own."""
    rng = np.random.default_rng(0)
    parts = {}
    for part, count in (("train", rows), ("test", TEST_ROWS)):
        y = np.arange(count) % CLASSES
        x = rng.integers(0, 120, (count, 1, SIDE, SIDE), dtype=np.uint8)
        for k in range(CLASSES):
            x[y == k, :, 4 * k : 4 * k + 4] += 120
        parts |= {f"x_{part}": x, f"y_{part}": y}
    return data.ImageSet(name="bars", title="Bars", doc="", class_names=("a", "b", "c"), **parts)


@pytest.fixture
def bars(monkeypatch):
    """Have every data set be the same small images."""
    monkeypatch.setattr(data, "load", lambda *_: images())


def target_of(network: str, dtype: torch.dtype = torch.float64) -> targets.ImageNetwork:
    return targets.ImageNetwork(network=network).to("cpu", dtype)


def states(target: targets.BNN, chains: int = 2) -> torch.Tensor:
    return target.initial(chains, torch.Generator().manual_seed(1))


@pytest.mark.parametrize("network", ["lenet5", "lenet5_swish", "resnet20", "mlp"])
def test_bytes_are_seen_as_the_data_set_scales_them(bars, network):
    target = target_of(network, torch.float32)
    assert target.x.dtype == torch.uint8 and len(target.x) == ROWS
    for kept, part in ((target.x, "train"), (target.held_out()[0], "test")):
        scaled = torch.as_tensor(target.data_set.scaled(part)[0])
        assert torch.allclose(target.seen(kept), scaled.view(kept.shape), atol=1e-5)


@pytest.mark.parametrize("network", ["lenet5", "lenet5_swish", "resnet20", "mlp"])
def test_potential_and_gradient_are_those_of_plain_pytorch(bars, network):
    target = target_of(network, torch.float32)
    theta = states(target)
    potential, gradient = target.gradient(theta)
    module, (x, y) = target.module, target.data_set.scaled("train")
    x, y = torch.as_tensor(x).view(ROWS, *target.x.shape[1:]), torch.as_tensor(y)
    for k, flat in enumerate(theta):
        torch.nn.utils.vector_to_parameters(flat.clone(), module.parameters())
        module.zero_grad()
        penalty = sum(p.square().sum() for p in module.parameters()) / 2
        loss = nn.functional.cross_entropy(module(x), y, reduction="sum") + penalty
        loss.backward()
        expected = torch.cat([p.grad.flatten() for p in module.parameters()])
        assert float((gradient[k] - expected).norm() / expected.norm()) < 1e-5
        assert float(potential[k]) == pytest.approx(float(loss.detach()), rel=1e-5)


@pytest.mark.parametrize("network", ["lenet5", "mlp"])
def test_rows_in_pieces_give_what_all_at_once_give(bars, monkeypatch, network):
    target = target_of(network)
    theta = states(target)
    v = states(target, 3)[1:]
    index = torch.arange(2 * 9).view(2, 9)
    x = target.held_out()[0]

    def computed() -> list[torch.Tensor]:
        batch = target.batch(index)
        return [
            target.potential(theta), *target.gradient(theta), *target.gradient_and_curvature(theta, v),
            *target.gradient_and_product(theta, v), batch.potential(theta), *batch.gradient(theta),
            *batch.gradient_and_curvature(theta, v), target.outputs(theta, x), target.curvature_diagonal(theta[0]),
        ]  # fmt: skip

    whole = computed()
    monkeypatch.setattr(target, "_rows_at_once", lambda chains: 7)
    assert len(list(target._pieces(target.all_rows(), 2))) == 6
    monkeypatch.setattr(bnn_curvature, "_JACOBIAN_NUMBERS", 20 * target.dim * CLASSES)
    for one, other in zip(whole, computed(), strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-9)


def test_a_batch_stands_for_all_rows_without_bias(bars):
    target = target_of("lenet5")
    theta = states(target, 4)
    every = target.gradient(theta)[1]
    batches = torch.arange(ROWS).view(4, ROWS // 4)
    parts = [target.batch(batches.roll(k, 0)).gradient(theta)[1] for k in range(4)]
    assert torch.allclose(sum(parts) / 4, every, atol=1e-8)


def test_chains_together_are_chains_one_after_another(bars, monkeypatch):
    """As a GPU computes them; here the same mathematics on a CPU."""
    target = target_of("lenet5_swish")
    theta, index = states(target, 3), torch.arange(30).view(3, 10)
    known = target.gradient(theta), target.batch(index).gradient(theta)
    monkeypatch.setattr(target, "_loops", lambda chains: False)
    again = target.gradient(theta), target.batch(index).gradient(theta)
    for one, other in zip([*known[0], *known[1]], [*again[0], *again[1]], strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-9)


def test_the_estimated_diagonal_is_the_exact_one_on_average(bars, monkeypatch):
    """200 passes over 10 parts: the relative error of a weight is at least (2 / 2,000)^0.5, 3%; and none is biased."""
    target = targets.BNN(nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, CLASSES)), bar_rows(), "categorical")
    target.to("cpu", torch.float64)
    theta = states(target, 1)[0]
    exact = target.curvature_diagonal(theta)
    monkeypatch.setattr(bnn_curvature, "_MOST_JACOBIAN", 0)
    monkeypatch.setattr(bnn_curvature, "_SIGNED_ROWS", 4)
    monkeypatch.setattr(bnn_curvature, "_SIGNED_TERMS", 2000)
    found = target.curvature_diagonal(theta)
    assert (found >= 0).all()
    kept = exact > 1e-3 * exact.max()
    ratio = (found / exact)[kept]
    assert float(ratio.mean()) == pytest.approx(1, abs=0.02)
    assert float(ratio.std()) < 0.1


def bar_rows() -> tuple[np.ndarray, np.ndarray]:
    """Return inputs as a network sees them, and classes."""
    return images().scaled("train")


@pytest.mark.slow
def test_a_descent_reads_batches_and_ends_where_all_rows_are_explained(bars, monkeypatch):
    target = target_of("lenet5", torch.float32)
    monkeypatch.setattr(targets.ImageNetwork, "descent_rows", 10)
    theta = states(target)
    descent, again = (Descent(target, theta, 150) for _ in range(2))
    descent.advance(150)
    again.advance(75)
    again.advance(75)
    assert descent.examples == 10 and torch.equal(descent.ends(), again.ends())
    assert float(target.potential(descent.best()[None])) < 0.5 * float(target.potential(theta).min())
    assert scores(target, descent.best()[None])["accuracy"] > 0.9


# What a sampler is given so that it is at its draws soon.
QUICK = {
    "batch_size": 10, "mode_steps": 20, "steps": 20, "first_epochs": 2, "epochs": 1, "thin": 1, "refresh_rate": 20.0,
    "draws_each": 2, "scale_events": 50, "warmup_events": 50, "leapfrogs": 2, "max_treedepth": 2, "mode_rows": 10,
}  # fmt: skip
OWN = {"laplace": {"structure": "diagonal"}, "pmcnet_light": {"draws_each": 3}}
REFUSED = {"pmcnet": "use the light variant"}
FAST = {"sgld", "pmcnet"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(c.registered, marks=[pytest.mark.slow] * (c.registered not in FAST)) for c in samplers.REGISTRY],
)
def test_every_sampler_samples_a_convolutional_network(bars, name):
    known = settings.declared(samplers.REGISTRY.get(name))
    chosen = {key: value for key, value in QUICK.items() if key in known} | OWN.get(name, {})
    spec = Spec("images", {"network": "lenet5"}, name, chosen, chains=2, draws=3, warmup=1)
    if name in REFUSED:
        with pytest.raises(BnnvizError, match=REFUSED[name]):
            ViewedRun(spec).prepare()
        return
    run = ViewedRun(spec)
    run.prepare()
    finished(run)
    assert run.error is None and run.draws.shape[1] == 3 and np.isfinite(run.draws).all()
    part = run.frame(["prediction"])["prediction"]
    assert part["kind"] == "classes" and len(part["mean"]) == TEST_ROWS
    assert bnnviz.measure(run)["rows"] == TEST_ROWS

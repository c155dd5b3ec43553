"""Rows, starts and parts of modules as people have them: loaders, whole numbers, trained weights, last layers."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import bnnviz
from bnnviz.engine.run.start_points import unpacked
from bnnviz.errors import BnnvizError

torch.manual_seed(0)
X, Y = torch.randn(10, 2), torch.randn(10)
FEW = {"draws": 5, "warmup": 5, "chains": 2, "settings": {"mode_steps": 10}}


def perceptron(outputs: int = 1) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, outputs))


def test_what_is_no_pair_of_arrays_is_refused() -> None:
    with pytest.raises(BnnvizError) as refused:
        bnnviz.BNN(perceptron(), DataLoader(TensorDataset(X, Y), batch_size=3))
    assert refused.value.field == "data"


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(7, 3), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.embedding(x).mean(1))


def test_an_embedding_reads_whole_numbers() -> None:
    rng = np.random.default_rng(0)
    tokens, labels = rng.integers(0, 7, (20, 4)), rng.integers(0, 2, 20)
    module = Words()
    target = bnnviz.BNN(module, (tokens, labels), likelihood="categorical")
    assert not target.x.is_floating_point()
    f = target.outputs(target.point()[None], tokens)[0]
    np.testing.assert_allclose(f, module(torch.as_tensor(tokens)).detach(), rtol=1e-5, atol=1e-6)
    run = bnnviz.sample(target, "hmc", **FEW)
    predicted = run.predict(tokens[:3])
    assert predicted.probabilities.shape == (3, 2)
    assert np.isfinite(run.summary()["nll"])
    assert run._run.frame(["prediction"])["prediction"]["kind"] == "classes"
    with pytest.raises(BnnvizError, match="integer inputs"):
        run.predict(tokens[:3] + 0.5)
    # What are whole numbers as floats is read too, and a module of real numbers goes on reading them as such.
    assert bnnviz.BNN(module, (tokens.astype(float), labels), likelihood="categorical").whole
    assert not bnnviz.BNN(nn.Linear(4, 2), (tokens, labels), likelihood="categorical").whole
    table = nn.Sequential(nn.Embedding(7, 1), nn.Flatten())
    column = bnnviz.BNN(table, (tokens[:, :1], rng.standard_normal(20)))
    assert len(bnnviz.sample(column, "hmc", **FEW).predict([[1], [2]])) == 2


@pytest.mark.parametrize("prior", ["equal", "fan_in", "learned"])
def test_chains_begin_at_the_weights_of_the_module(prior: str) -> None:
    module = perceptron()
    other = {name: value + 0.5 for name, value in module.state_dict().items()}
    target = bnnviz.BNN(module, (X, Y), prior=prior, prior_sd=0.7, noise="learned")
    for given, weights in (("module", module.state_dict()), (other, other), ([other, other], other)):
        run = bnnviz.start(target, "hmc", start=given, paused=True, **FEW)
        points = unpacked(run.spec.start_points)
        run.stop()
        assert not points[:, 13:].any()
        for name, value in weights.items():
            np.testing.assert_allclose(target.state_dict(torch.as_tensor(points[-1]))[name], value, rtol=1e-6)


def test_a_state_dict_that_does_not_fit_is_refused() -> None:
    target = bnnviz.BNN(perceptron(), (X, Y))
    weights = perceptron().state_dict()
    for given, statement in (
        ({**weights, "4.bias": torch.zeros(1)}, "has no 4.bias"),
        ({"0.weight": weights["0.weight"]}, "needs"),
        ({**weights, "0.bias": torch.zeros(4)}, "shape"),
        ({**weights, "0.bias": torch.full((3,), torch.nan)}, "non-finite"),
    ):
        with pytest.raises(BnnvizError, match=statement):
            bnnviz.start(target, "hmc", start=given, **FEW)
    with pytest.raises(BnnvizError, match="0.weight is not sampled"):
        bnnviz.start(
            bnnviz.BNN(perceptron(), (X, Y), sample="last"),
            "hmc",
            start={**weights, "0.weight": weights["0.weight"] + 1},
            **FEW,
        )


@pytest.mark.slow
def test_the_last_layer_alone_is_a_linear_model() -> None:
    """Features of frozen layers, a normal prior and noise: the posterior is normal, in closed form."""
    module = perceptron()
    target = bnnviz.BNN(module, (X, Y), sample="last", prior_sd=1.5, noise_sd=0.5).to("cpu", torch.float64)
    assert (target.dim, target.frozen) == (4, 9)
    assert list(target.shapes) == ["2.weight", "2.bias"]
    features = torch.cat([module[:2](X).detach().double(), torch.ones(10, 1)], 1)
    precision = features.mT @ features / 0.25 + torch.eye(4) / 1.5**2
    mean = torch.linalg.solve(precision, features.mT @ Y.double() / 0.25)
    assert float(target.gradient(mean[None])[1].abs().max()) < 1e-5  # the module's weights are float32
    np.testing.assert_allclose(target.curvature_matrix(mean) + torch.eye(4) / 1.5**2, precision, rtol=1e-5)
    run = bnnviz.sample(target, "laplace", draws=50, chains=2)
    for name, value in run.network_draws().target.state_dict(torch.as_tensor(run.draws[0, 0])).items():
        if name.startswith("0"):
            np.testing.assert_allclose(value, module.state_dict()[name], rtol=1e-6)


def test_parts_are_sampled_by_name() -> None:
    module = Words()
    data = (np.random.default_rng(0).integers(0, 7, (9, 4)), np.arange(9) % 2)
    assert bnnviz.BNN(module, data, "categorical", sample=["head"]).dim == 8
    assert bnnviz.BNN(module, data, "categorical", sample="embedding.weight").dim == 21
    assert bnnviz.BNN(module, data, "categorical", sample=["head.bias", "embedding"]).dim == 23
    assert all(p.requires_grad for p in module.parameters())
    tied = copy.deepcopy(module)
    tied.head = nn.Linear(3, 7)
    tied.head.weight = tied.embedding.weight
    assert bnnviz.BNN(tied, data, "categorical", sample=["head"]).dim == 28
    for wrong, statement in ((["hed"], "hed"), ([], "names no part"), ([1], "no such part")):
        with pytest.raises(BnnvizError, match=statement):
            bnnviz.BNN(module, data, "categorical", sample=wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "settings"),
    [
        ("mc_dropout", {"steps": 100}),
        ("bbb", {"steps": 100}),
        ("sgld", {"start": "random"}),
        ("bps", {"start": "random"}),
        ("laplace", {}),
    ],
)
def test_samplers_leave_frozen_parameters_alone(sampler: str, settings: dict) -> None:
    module = perceptron()
    module[0].requires_grad_(False)
    module.extend([nn.Tanh(), nn.Linear(1, 1)])
    target = bnnviz.BNN(module, (X, Y), prior_sd=1.2, noise_sd=0.4)
    run = bnnviz.sample(target, sampler, chains=2, draws=20, warmup=10, settings=settings)
    assert run.draws.shape == (2, 20, 6)
    assert np.isfinite(run.draws).all()

"""Ready-made networks and how their layers are written."""

from __future__ import annotations

import pytest
import torch

from bnnviz.errors import BnnvizError
from bnnviz.models import mlp, parse_hidden


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ((1, (25, 10), 1), 321),
        ((1, (50,), 1), 151),
        ((2, (100, 100), 1), 10_501),
        ((13, (50,), 1), 751),
        ((3, (), 2), 8),
    ],
)
def test_parameter_count(sizes, count):
    assert sum(p.numel() for p in mlp(*sizes).parameters()) == count


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("tanh", torch.tanh),
        ("relu", torch.relu),
        ("softplus", lambda z: torch.log1p(torch.exp(z))),
        ("silu", lambda z: z * torch.sigmoid(z)),
    ],
)
def test_forward_is_the_formula(activation, function):
    network = mlp(2, (4, 3), 1, activation).double()
    w1, b1, w2, b2, w3, b3 = network.parameters()
    x = torch.linspace(-2, 2, 10, dtype=torch.float64).reshape(5, 2)
    expected = function(function(x @ w1.T + b1) @ w2.T + b2) @ w3.T + b3
    torch.testing.assert_close(network(x), expected)


@pytest.mark.parametrize(
    ("sizes", "field"),
    [((0, (2,), 1), "inputs"), ((1, (2, -1), 1), "hidden"), ((1, (2,), True), "outputs"), ((1, (2.5,), 1), "hidden")],
)
def test_widths_that_are_no_widths_are_refused(sizes, field):
    with pytest.raises(BnnvizError, match=f"in {field} cannot be used") as caught:
        mlp(*sizes)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "text", ["", "-", "25-", "25--10", "25,10", "2.5", "0", "1025", "9" * 5000, "1-" * 8 + "1", "٣", "1_0", 50, None]
)
def test_bad_hidden_is_refused(text):
    with pytest.raises(BnnvizError, match="such as 50 or 25-10") as caught:
        parse_hidden(text)
    assert caught.value.field == "hidden"
    assert len(caught.value.sentence) < 200

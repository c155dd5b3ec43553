"""A function without a slope is refused before anything is sampled; whatever has one passes in silence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import bnnviz
from bnnviz.errors import BnnvizError

Density = Callable[[Tensor], Tensor]


#: Functions whose derivatives are zero where they change.
WITHOUT_SLOPE: dict[str, Density] = {
    "floor": lambda t: torch.floor((t**2).sum(-1)),
    "detached": lambda t: (t**2).sum(-1).detach() + 0 * t.sum(-1),
    "rounded": lambda t: (torch.round(t) ** 2).sum(-1),
    "compared": lambda t: (t.abs() > 1).sum(-1) * 2.0 + 0 * t.sum(-1),
    "one coordinate detached": lambda t: t[..., 0] ** 2 / 2 + t[..., 1].detach() ** 2 / 2,
    "one coordinate": lambda t: t[..., 0] ** 2 / 2 + torch.round(t[..., 1]) ** 2,
}
#: Functions that have a slope, however odd.
RIGHT: dict[str, Density] = {
    "narrow": lambda t: (t**2).sum(-1) * 5e5,
    "wide": lambda t: (t**2).sum(-1) * 5e-7,
    "two scales": lambda t: (t[..., 0] ** 2 * 1e6 + t[..., 1] ** 2 * 1e-6) / 2,
    "far off": lambda t: ((t - 1e4) ** 2).sum(-1) / 2,
    "large constant": lambda t: (t**2).sum(-1) / 2 + 1e6,
    "kinks": lambda t: torch.maximum(1.5 * t, -0.5 * t).sum(-1),
    "flat bottom": lambda t: torch.relu(t.abs() - 5).sum(-1) ** 2,
    "jump": lambda t: (t**2).sum(-1) / 2 + 2.0 * (t[..., 0] > 0),
    "waves": lambda t: (t**2).sum(-1) / 2 + torch.sin(1e5 * t).sum(-1),
    "long tails": lambda t: 1.5 * torch.log1p(t**2).sum(-1),
    "ridge": lambda t: (t[..., 0] ** 2) / 2 + 1e4 * (t[..., 1] - t[..., 0] ** 2) ** 2,
    "mixture": lambda t: -torch.logaddexp(-((t - 9) ** 2).sum(-1) / 2, -((t + 9) ** 2).sum(-1) / 2),
    "half in it": lambda t: t[..., 0].exp() - 2 * t[..., 0] + torch.where(t[..., 1] > 0, t[..., 1], torch.inf),
}


def reported(density: Density, sampler: str, dtype: torch.dtype) -> str:
    run = bnnviz.sample(density, sampler, dim=2, chains=2, draws=2, warmup=2, seed=1, dtype=dtype)
    return " ".join(map(str, run.summary()["notes"]))


@pytest.mark.parametrize("sampler", ["bps", "nuts", "sgld"])
@pytest.mark.parametrize("name", WITHOUT_SLOPE)
def test_what_has_no_slope_is_refused(name: str, sampler: str) -> None:
    with pytest.raises(BnnvizError, match="its gradient there is zero at all 16 points"):
        reported(WITHOUT_SLOPE[name], sampler, torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", RIGHT)
def test_what_has_a_slope_passes(name: str, dtype: torch.dtype) -> None:
    assert "gradient" not in reported(RIGHT[name], "nuts", dtype)

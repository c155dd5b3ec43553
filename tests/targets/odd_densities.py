"""Densities that people bring, kind by kind: their moments are integrals over a grid of their own values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import Gamma, MultivariateNormal

Density = Callable[[Tensor], Tensor]
EXACT = ("hmc", "nuts", "zigzag", "bps")
JUMPS = ("hmc", "nuts")


class Known(NamedTuple):
    """A density, its dimension, and the interval that holds each coordinate's mass."""

    density: Density
    dim: int = 1
    low: float = -10.0
    high: float = 10.0
    samplers: tuple[str, ...] = EXACT


class Kind(NamedTuple):
    """A kind of density and examples; bounded functions are compared where moments are infinite."""

    name: str
    known: tuple[Known, ...]
    bounded: bool = False
    raises: bool = False


class Refused(NamedTuple):
    """A kind of density that is refused or stopped, words of the sentence or the warning, and examples."""

    name: str
    says: str
    densities: tuple[Density, ...]
    sampler: str = "hmc"


# --- smooth

FACTOR = torch.tensor([[1.0, 0.0], [0.8, 0.6]])


def correlated(x: Tensor) -> Tensor:
    return -MultivariateNormal(torch.zeros(2).to(x), scale_tril=FACTOR.to(x)).log_prob(x)


def gumbel(x: Tensor) -> Tensor:
    return (x + torch.exp(-x)).sum(-1)


def bent(x: Tensor) -> Tensor:
    return x[:, 0].square() / 2 + 2 * (x[:, 1] - x[:, 0].square() / 2).square()


# --- second derivatives that are not finite


def two_peaks(x: Tensor) -> Tensor:
    """Two normal densities, whose second derivative by logaddexp is nan far from both."""
    return -torch.logaddexp(-(x - 1).square() / 2, -(x + 1).square() / 2).sum(-1)


def radial(x: Tensor) -> Tensor:
    return x.norm(dim=-1)


def three_halves(x: Tensor) -> Tensor:
    return x.abs().pow(1.5).sum(-1)


# --- kinks


def asymmetric(x: Tensor) -> Tensor:
    return torch.maximum(1.5 * x, -0.5 * x).sum(-1)


def laplace(x: Tensor) -> Tensor:
    return x.abs().sum(-1)


def relu(x: Tensor) -> Tensor:
    return ((torch.relu(x) - 1).square() + x.square() / 8).sum(-1)


def elastic(x: Tensor) -> Tensor:
    return x.square().sum(-1) / 2 + 2 * x.abs().amax(-1)


def wave(x: Tensor, period: float) -> Tensor:
    """A gradient that jumps up and down twice in a period."""
    return (x.abs() + 2.4 * ((x % period) - period / 2).abs()).sum(-1)


# --- edges


def gamma(x: Tensor) -> Tensor:
    """Gamma(3, 1), infinite outside."""
    return torch.where(x > 0, x - 2 * x.clamp_min(1e-30).log(), torch.inf).sum(-1)


def beta(x: Tensor) -> Tensor:
    """Beta(2, 3), not a number outside."""
    return -(x.log() + 2 * torch.log1p(-x)).sum(-1)


def slow_gamma(x: Tensor) -> Tensor:
    """Gamma(1.3, 1): the density vanishes slowly at its edge."""
    return torch.where(x > 0, x - 0.3 * x.clamp_min(1e-30).log(), torch.inf).sum(-1)


def half_normal(x: Tensor) -> Tensor:
    return torch.where(x > 0, x.square() / 2, torch.inf).sum(-1)


def box(x: Tensor) -> Tensor:
    return torch.where((x - 0.5).abs() < 0.5, 0 * x, torch.inf).sum(-1)


# --- jumps


def step(x: Tensor) -> Tensor:
    return (x.square() / 2 + math.log(3) * (x > 0.5)).sum(-1)


def whole(x: Tensor) -> Tensor:
    """A Poisson(3) number, rounded: it has no slope at all."""
    k = x.round()
    return torch.where(k < 0, torch.inf, torch.lgamma(k.clamp_min(0) + 1) - k * math.log(3)).sum(-1) + 0 * x.sum(-1)


def branch(x: Tensor) -> Tensor:
    return torch.where(x < 0, x.square(), 0.5 + x.square() / 4).sum(-1)


# --- holes


def ball(x: Tensor) -> Tensor:
    return torch.where(x.square().sum(-1) < 1, 0 * x.sum(-1), torch.inf)


def simplex(x: Tensor) -> Tensor:
    """Dirichlet(2, 3, 4), its last share computed."""
    last = 1 - x.sum(-1)
    inside = (x > 0).all(-1) & (last > 0)
    u = -x[:, 0].clamp_min(1e-30).log() - 2 * x[:, 1].clamp_min(1e-30).log() - 3 * last.clamp_min(1e-30).log()
    return torch.where(inside, u, torch.inf)


def ordered(x: Tensor) -> Tensor:
    """Two normal numbers in order."""
    return torch.where(x[:, 1] > x[:, 0], x.square().sum(-1) / 2, torch.inf)


def hole(x: Tensor) -> Tensor:
    """A normal density that is not a number beyond 1.5."""
    return torch.where(x > 1.5, torch.nan, x.square() / 2).sum(-1)


# --- minus infinity


def log_habit(x: Tensor) -> Tensor:
    """Gamma(3, 1) with -inf outside, as a log density has it."""
    return torch.where(x > 0, x - 2 * x.clamp_min(1e-30).log(), -torch.inf).sum(-1)


def spike(x: Tensor) -> Tensor:
    """A normal density, infinite in an interval."""
    return torch.where((x - 0.5).abs() < 0.2, -torch.inf, x.square() / 2).sum(-1)


def pole(x: Tensor) -> Tensor:
    """A density that is infinite at zero and has an integral."""
    return (x.square() / 2 + 0.25 * x.abs().log()).sum(-1)


# --- errors


def checked_gamma(x: Tensor) -> Tensor:
    """Gamma(4, 1) by a distribution that refuses what is not positive."""
    return -Gamma(torch.tensor(4.0).to(x), torch.tensor(1.0).to(x)).log_prob(x).sum(-1)


def cholesky(x: Tensor) -> Tensor:
    """A correlation, by the Cholesky factor of a matrix that has one between -1 and 1."""
    one, r = torch.ones_like(x[:, 0]), x[:, 0]
    factor = torch.linalg.cholesky(torch.stack([one, r, r, one], 1).view(-1, 2, 2))
    return -4 * factor.diagonal(dim1=1, dim2=2).log().sum(1) - r


# --- tails


def student(x: Tensor) -> Tensor:
    return 2 * torch.log1p(x.square() / 3).sum(-1)


def cauchy_like(x: Tensor) -> Tensor:
    return 1.25 * torch.log1p(x.square()).sum(-1)


KINDS = (
    Kind("Smooth, on all of space", (Known(correlated, 2), Known(gumbel, 2, -4, 25), Known(bent, 2, -6, 16))),
    Kind(
        "With second derivatives that are not finite: `logaddexp`, roots and norms at 0",
        (Known(two_peaks, 2), Known(radial, 2, -20, 20), Known(three_halves)),
    ),
    Kind(
        "With kinks: Laplace priors, hinge and quantile losses, ReLU",
        (Known(asymmetric, 2, -40, 14), Known(laplace, 1, -25, 25), Known(relu), Known(elastic, 2)),
    ),
    Kind(
        "With kinks up and down closer than a look ahead",
        (Known(partial(wave, period=1.0), 1, -25, 25), Known(partial(wave, period=0.5), 1, -25, 25)),
    ),
    Kind(
        "With an edge at which it vanishes, such as Gamma(3, 1) or Beta(2, 3)",
        (Known(gamma, 1, 0, 30), Known(beta, 2, 0, 1), Known(slow_gamma, 1, 0, 30, samplers=JUMPS)),
    ),
    Kind(
        "With an edge where it does not vanish: half-normal, uniform on a box",
        tuple(Known(*given, samplers=JUMPS) for given in ((half_normal, 1, 0, 10), (box, 2, 0, 1))),
    ),
    Kind(
        "That jumps itself: an indicator, a branch, whole numbers by rounding",
        (Known(step, samplers=JUMPS), Known(branch, samplers=JUMPS), Known(whole, 1, -0.5, 20.5, samplers=("hmc",))),
    ),
    Kind(
        "With a hole: a ball, a simplex by hand, an ordered vector, nan in one region",
        tuple(
            Known(*given, samplers=JUMPS) for given in ((ball, 2, -1, 1), (simplex, 2, 0, 1), (ordered, 2), (hole, 1))
        ),
    ),
    Kind(
        "That is infinite at a point or in a region: U = -inf, as where a log density is 0",
        tuple(Known(*given, samplers=JUMPS) for given in ((log_habit, 1, 0, 30), (spike, 1), (pole, 1, -8, 8))),
    ),
    Kind(
        "Defined by an operation that raises an error elsewhere (Cholesky factors, domains)",
        tuple(Known(*given, samplers=("hmc",)) for given in ((checked_gamma, 1, 0, 40), (cholesky, 1, -1, 1))),
        raises=True,
    ),
    Kind(
        "With tails as of t with 3 degrees of freedom",
        (Known(student, 1, -4000, 4000), Known(cauchy_like, 1, -4000, 4000)),
        bounded=True,
    ),
)


# --- refused


def one_for_all(x: Tensor) -> Tensor:
    return x.square().sum() / 2


def raises(x: Tensor) -> Tensor:
    raise ValueError("the scale must be positive")


EYE = torch.eye(2, dtype=torch.float64)


def branch_on_a_state(x: Tensor) -> Tensor:
    return x.square().sum() if x[0] > 0 else 2 * x.square().sum()


#: Kinds of which no other test has an example.
REFUSED = (
    Refused(
        "U or its gradient not finite at a hundred random points",
        "no valid initial position",
        (raises, lambda x: x.sum(-1) * torch.nan),
        "nuts",
    ),
    Refused(
        "A result of lower precision than the states",
        "returned (bfloat16|float16) for states of float32",
        (lambda x: x.square().sum(-1).half(), lambda x: x.bfloat16().square().sum(-1)),
    ),
    Refused(
        "A function of a single state",
        "takes a single state|torch.func.vmap\\(function\\) if your function takes a single state",
        (
            lambda x: torch.dot(x, x) / 2,
            lambda x: x @ EYE.to(x) @ x / 2,
            branch_on_a_state,
            lambda x: x[0].square() + x[1].square(),
        ),
    ),
    Refused(
        "A result of another shape than (chains,), or of complex numbers",
        "it must return one value per chain|returned complex numbers",
        (
            lambda x: x.square().sum(-1) / 2 + 0j,
            lambda x: (x.square().sum(-1) / 2).tolist(),
            lambda x: (x.square().sum(-1) / 2).detach().numpy(),
            one_for_all,
            lambda x: x.square() / 2,
            lambda x: x.square().sum(-1, keepdim=True),
            lambda x: float(x.square().sum()),
            lambda x: None,
            lambda x: (x.square().sum(-1), 0),
        ),
    ),
)

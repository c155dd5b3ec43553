"""Define densities with known moments and exact draws, for testing samplers."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import scipy
import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.files import plain_json
from bnnviz.targets.base import REGISTRY, Target

_MANY = {"size": {"least": 2}}


@REGISTRY.add
class Gaussian(Target):
    r"""Multivariate normal density, by default with autoregressive correlations in two dimensions.

    .. math:: U(x) = \tfrac12 (x - m)^\top \Sigma^{-1} (x - m), \qquad \Sigma_{ij} = s_i s_j \rho^{|i - j|}

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.Gaussian(mean=[1.0, 2.0], cov=[[1.0, 0.5], [0.5, 1.0]]).mean().tolist()
    [1.0, 2.0]
    """

    registered = "gaussian"
    title = "Gaussian"

    size = settings.Integer(2, bounds=(1, 2000), label="Dimension", doc="Number of coordinates.")
    correlation = settings.Number(
        0.6,
        bounds=(-0.99, 0.99),
        step=0.01,
        when=_MANY,
        doc="Correlation of neighbouring coordinates; it decays as a power of the distance.",
    )
    spread = settings.Number(
        1.0,
        bounds=(0.01, 100.0),
        scale="log",
        doc="Standard deviation of the last coordinate. The first coordinate has 1.",
    )
    mean_list = settings.Text("", label="Mean", doc="Mean as a JSON list, such as [0, 1]. Empty: zero.")
    cov_list = settings.Text(
        "", label="Covariance", when=_MANY, doc="Covariance as JSON rows. Empty: computed from the other settings."
    )

    def __init__(self, mean: Any = None, cov: Any = None, **values: Any) -> None:
        super().__init__(**values)
        mean = _parse(self.mean_list, "mean_list") if mean is None else np.asarray(mean, dtype=float)
        cov = _parse(self.cov_list, "cov_list") if cov is None else np.asarray(cov, dtype=float)
        self.dim = len(mean) if mean is not None else len(cov) if cov is not None else self.size
        self._mean = np.zeros(self.dim) if mean is None else mean
        self._cov = self._default_cov() if cov is None else cov
        _check_moments(self._mean, self._cov)
        precision = np.linalg.inv(self._cov)
        self.centre = torch.as_tensor(self._mean)
        self.precision = torch.as_tensor((precision + precision.T) / 2)

    def _default_cov(self) -> np.ndarray:
        index = np.arange(self.dim)
        sd = np.geomspace(1.0, self.spread, self.dim)
        return np.outer(sd, sd) * self.correlation ** np.abs(index[:, None] - index[None, :])

    def potential(self, x: Tensor) -> Tensor:
        """Return (x - m)' P (x - m) / 2."""
        d = x - self.centre
        return 0.5 * ((d @ self.precision) * d).sum(-1)

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and P (x - m)."""
        d = x - self.centre
        g = d @ self.precision
        return 0.5 * (g * d).sum(-1), g

    def gradient_and_product(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and P v."""
        return *self.gradient(x), v @ self.precision

    def quadratic(self) -> tuple[Tensor, Tensor]:
        """Return m and P."""
        return self.centre, self.precision

    def mean(self) -> np.ndarray:
        """Return the mean."""
        return self._mean

    def cov(self) -> np.ndarray:
        """Return the covariance."""
        return self._cov

    def exact_draws(self, count: int, seed: int = 0) -> np.ndarray:
        """Return independent draws (count, dim)."""
        return np.random.default_rng(seed).multivariate_normal(self._mean, self._cov, size=count)


def _parse(text: str, field: str) -> np.ndarray | None:
    if not text.strip():
        return None
    try:
        return np.asarray(plain_json(text), dtype=float)
    except (ValueError, TypeError, OverflowError):
        raise BnnvizError(f"{field} = {text!r} is not a JSON list of numbers; write it like [0, 1].", field) from None


def _check_moments(mean: np.ndarray, cov: np.ndarray) -> None:
    dim = mean.size
    if mean.ndim != 1 or dim == 0 or not np.isfinite(mean).all():
        raise BnnvizError("The mean must be a list of finite numbers; write it like [0, 1].", "mean_list")
    if cov.shape != (dim, dim):
        raise BnnvizError(
            f"A mean of length {dim} needs a covariance of {dim} rows of {dim}; this one has the shape {cov.shape}.",
            "cov_list",
        )
    if not np.isfinite(cov).all() or not np.allclose(cov, cov.T) or np.linalg.eigvalsh(cov).min() <= 0:
        raise BnnvizError("The covariance must be finite, symmetric and positive definite; check its rows.", "cov_list")


@REGISTRY.add
class Banana(Target):
    r"""Banana-shaped density in two dimensions: x1 ~ N(0, 1), x2 | x1 ~ N(bend (x1^2 - 1), width^2).

    .. math:: U(x) = \frac{x_1^2}{2} + \frac{(x_2 - b (x_1^2 - 1))^2}{2 w^2}

    The density was proposed by Haario, Saksman and Tamminen 1999, https://doi.org/10.1007/s001800050022.

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.Banana(bend=1.0, width=0.5).mean().tolist()
    [0.0, 0.0]
    """

    registered = "banana"
    title = "Banana"
    dim = 2

    bend = settings.Number(1.0, bounds=(0.0, 3.0), step=0.05, doc="Curvature of the ridge.")
    width = settings.Number(0.5, bounds=(0.05, 2.0), step=0.05, doc="Standard deviation across the ridge.")

    def potential(self, x: Tensor) -> Tensor:
        """Return x1^2/2 + (x2 - bend (x1^2 - 1))^2 / (2 width^2)."""
        across = (x[:, 1] - self.bend * (x[:, 0] ** 2 - 1)) / self.width
        return 0.5 * (x[:, 0] ** 2 + across**2)

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and its gradient in closed form."""
        first = x[:, 0]
        across = (x[:, 1] - self.bend * (first * first - 1)) / self.width**2
        gradient = torch.stack([first * (1 - 2 * self.bend * across), across], dim=1)
        return 0.5 * (first * first + self.width**2 * across * across), gradient

    def gradient_and_curvature(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and v' H v in closed form."""
        potential, gradient = self.gradient(x)
        first, along = x[:, 0], v[:, 0]
        turn = v[:, 1] - 2 * self.bend * first * along
        curvature = along**2 * (1 - 2 * self.bend * gradient[:, 1]) + (turn / self.width) ** 2
        return potential, gradient, curvature

    def mean(self) -> np.ndarray:
        """Return the mean, zero."""
        return np.zeros(2)

    def cov(self) -> np.ndarray:
        """Return the covariance, diag(1, width^2 + 2 bend^2)."""
        return np.diag([1.0, self.width**2 + 2 * self.bend**2])

    def exact_draws(self, count: int, seed: int = 0) -> np.ndarray:
        """Return independent draws (count, 2)."""
        rng = np.random.default_rng(seed)
        first = rng.standard_normal(count)
        return np.stack([first, self.bend * (first**2 - 1) + self.width * rng.standard_normal(count)], axis=1)

    def window(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return a plotting window that contains nearly all draws."""
        top = self.bend * (3.0**2 - 1) + 2 * self.width
        return (-3.6, 3.6), (-self.bend - 4 * self.width, top)


@REGISTRY.add
class DoubleWell(Target):
    r"""Double-well potential U = -2 t^2 + c t^4 in one dimension, with the two values of c in the functional-BNN paper.

    .. math:: U'(t) = 4 t (c t^2 - 1), \qquad \text{modes at } t = \pm c^{-1/2}, \text{ barrier } 1 / c

    Examples
    --------
    >>> from bnnviz import targets
    >>> import torch
    >>> targets.DoubleWell(reading="figure").potential(torch.tensor([[1.0]], dtype=torch.float64)).tolist()
    [-1.0]
    """

    registered = "double_well"
    title = "Double well"
    dim = 1

    reading = settings.Choice(
        "figure",
        objects=["figure", "text"],
        doc="figure: c = 1, modes at +-1, barrier 1; text: c = 0.2, modes at +-2.236, barrier 5.",
    )

    @property
    def quartic(self) -> float:
        """The coefficient c of t^4."""
        return 1.0 if self.reading == "figure" else 0.2

    def potential(self, x: Tensor) -> Tensor:
        """Return -2 t^2 + c t^4."""
        square = x[:, 0] ** 2
        return square * (self.quartic * square - 2)

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and -4 t + 4 c t^3."""
        square = x * x
        return self.potential(x), 4 * x * (self.quartic * square - 1)

    def gradient_and_curvature(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and (12 c t^2 - 4) v^2."""
        return *self.gradient(x), ((12 * self.quartic * x * x - 4) * v * v)[:, 0]

    def mean(self) -> np.ndarray:
        """Return the mean, zero by symmetry."""
        return np.zeros(1)

    def cov(self) -> np.ndarray:
        """Return the variance, computed using quadrature."""
        return np.array([[_well_variance(self.quartic)]])

    def exact_draws(self, count: int, seed: int = 0) -> np.ndarray:
        """Return independent draws (count, 1) using inversion on a fine grid."""
        grid = np.linspace(-6, 6, 200_001)
        density = np.exp(2 * grid**2 - self.quartic * grid**4 - 1 / self.quartic)
        cumulative = np.cumsum(density) / density.sum()
        return np.interp(np.random.default_rng(seed).random(count), cumulative, grid)[:, None]

    def window(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return a window around both wells."""
        side = 1.6 * math.sqrt(1 / self.quartic) + 0.6
        return (-side, side), (-side, side)


@functools.cache
def _well_variance(quartic: float) -> float:
    def weight(t: float) -> float:
        return math.exp(2 * t * t - quartic * t**4 - 1 / quartic)

    mass = scipy.integrate.quad(weight, -12, 12, points=[-1, 0, 1], limit=400)[0]
    return scipy.integrate.quad(lambda t: t * t * weight(t), -12, 12, points=[-1, 0, 1], limit=400)[0] / mass


@REGISTRY.add
class GaussianMixture(Target):
    r"""Mixture of isotropic Gaussians with equal weights and means that are evenly spaced on a circle.

    .. math::
        U(x) = -\log \sum_{k=1}^K e^{-|x - c_k|^2 / (2 w^2)}, \qquad
        c_k = r (\cos \tfrac{2 \pi k}{K}, \sin \tfrac{2 \pi k}{K})

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.GaussianMixture(components=2, radius=3.0).dim
    2
    """

    registered = "gaussian_mixture"
    title = "Gaussian mixture"
    dim = 2

    components = settings.Integer(3, bounds=(1, 12), doc="Number of Gaussians.")
    radius = settings.Number(
        3.0, bounds=(0.0, 20.0), step=0.1, doc="Distance of each Gaussian's centre from the origin."
    )
    width = settings.Number(1.0, bounds=(0.1, 5.0), scale="log", doc="Standard deviation of each Gaussian.")

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        angle = 2 * np.pi * np.arange(self.components) / self.components
        self._centres = self.radius * np.column_stack([np.cos(angle), np.sin(angle)])
        self.centres = torch.as_tensor(self._centres)

    def _closeness(self, x: Tensor) -> Tensor:
        return -0.5 / self.width**2 * (x[:, None] - self.centres).square().sum(-1)

    def potential(self, x: Tensor) -> Tensor:
        """Return the negative log of the sum of component densities."""
        return -torch.logsumexp(self._closeness(x), dim=1)

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and (x - weighted mean of the centres) / width^2."""
        closeness = self._closeness(x)
        share = torch.softmax(closeness, dim=1)
        return -torch.logsumexp(closeness, dim=1), (x - share @ self.centres) / self.width**2

    def gradient_and_curvature(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and ``|v|^2 / width^2`` minus the variance of the centres along v, over width^4."""
        share, along = torch.softmax(self._closeness(x), dim=1), v @ self.centres.T
        spread = (share * (along - (share * along).sum(1, keepdim=True)).square()).sum(1)
        return *self.gradient(x), v.square().sum(1) / self.width**2 - spread / self.width**4

    def mean(self) -> np.ndarray:
        """Return the mean of the centres."""
        return self._centres.mean(axis=0)

    def cov(self) -> np.ndarray:
        """Return the covariance of the centres plus width^2 on the diagonal."""
        return self.width**2 * np.eye(2) + np.cov(self._centres.T, bias=True)

    def exact_draws(self, count: int, seed: int = 0) -> np.ndarray:
        """Return independent draws (count, 2)."""
        rng = np.random.default_rng(seed)
        chosen = self._centres[rng.integers(self.components, size=count)]
        return chosen + self.width * rng.standard_normal((count, 2))

    def window(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return a window that contains four standard deviations around each centre."""
        low, high = self._centres.min(axis=0) - 4 * self.width, self._centres.max(axis=0) + 4 * self.width
        return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


@REGISTRY.add
class Funnel(Target):
    r"""Neal's funnel: v ~ N(0, spread^2), and the other coordinates are N(0, e^v).

    .. math:: U(v, x) = \frac{v^2}{2 s^2} + \frac{e^{-v} |x|^2 + (d - 1) v}{2}

    Source: Neal 2003, section 8, https://doi.org/10.1214/aos/1056562461.

    Examples
    --------
    >>> from bnnviz import targets
    >>> targets.Funnel(size=5).dim
    5
    """

    registered = "funnel"
    title = "Funnel"

    size = settings.Integer(2, bounds=(2, 100), label="Dimension", doc="Number of coordinates, including v.")
    spread = settings.Number(
        3.0,
        bounds=(0.1, 5.0),
        step=0.1,
        doc="Standard deviation of v. Neal uses 3; smaller values are easier to sample.",
    )

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.dim = self.size

    def potential(self, x: Tensor) -> Tensor:
        """Return ``v^2 / (2 spread^2) + e^-v |x|^2 / 2 + (dim - 1) v / 2``."""
        v, rest = x[:, 0], x[:, 1:]
        return 0.5 * ((v / self.spread).square() + torch.exp(-v) * rest.square().sum(1) + (self.dim - 1) * v)

    def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and its gradient in closed form."""
        v, rest = x[:, :1], x[:, 1:]
        pull = torch.exp(-v) * rest
        first = v / self.spread**2 + 0.5 * (self.dim - 1 - (pull * rest).sum(1, keepdim=True))
        return self.potential(x), torch.cat([first, pull], dim=1)

    def gradient_and_curvature(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, its gradient and v' H v in closed form."""
        rest, first, others = x[:, 1:], v[:, :1], v[:, 1:]
        # A square up to half of the first coordinate's contribution.
        turn = (others - first * rest).square() - 0.5 * (first * rest).square()
        curvature = (first[:, 0] / self.spread).square() + torch.exp(-x[:, 0]) * turn.sum(1)
        return *self.gradient(x), curvature

    def initial(self, chains: int, rng: torch.Generator) -> Tensor:
        """Return independent draws (chains, dim)."""
        noise = torch.randn(chains, self.dim, generator=rng, device=rng.device, dtype=self.dtype)
        v = self.spread * noise[:, :1]
        return torch.cat([v, torch.exp(0.5 * v) * noise[:, 1:]], dim=1)

    def mean(self) -> np.ndarray:
        """Return the mean, zero."""
        return np.zeros(self.dim)

    def cov(self) -> np.ndarray:
        """Return the covariance: spread^2, and E e^v = e^(spread^2 / 2) for the others."""
        return np.diag([self.spread**2] + (self.dim - 1) * [math.exp(0.5 * self.spread**2)])

    def exact_draws(self, count: int, seed: int = 0) -> np.ndarray:
        """Return independent draws (count, dim)."""
        noise = np.random.default_rng(seed).standard_normal((count, self.dim))
        v = self.spread * noise[:, :1]
        return np.hstack([v, np.exp(0.5 * v) * noise[:, 1:]])

    def window(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return a window that contains 99.5% of each coordinate."""
        side = _funnel_quantile(self.spread, 0.995)
        return (-3.2 * self.spread, 3.2 * self.spread), (-side, side)

    def names(self) -> list[str]:
        """Return v and x1, x2, ..."""
        return ["v", *(f"x{i}" for i in range(1, self.dim))]


@functools.cache
def _funnel_quantile(spread: float, level: float) -> float:
    """Return the value that the size of a coordinate other than v exceeds with probability 1 - level."""
    z = np.linspace(-8.0, 8.0, 2001)
    weight = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    sd = np.exp(0.5 * spread * z)
    return scipy.optimize.brentq(lambda side: weight @ scipy.special.erf(side / (sd * math.sqrt(2))) - level, 1e-9, 1e9)

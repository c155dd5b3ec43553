r"""Define likelihoods of classes: with a logit, with a logit for each class, and of ordered classes.

.. math::
    \text{bernoulli: } y f - \log(1 + e^f), \qquad
    \text{categorical: } f_y - \log \sum_k e^{f_k}, \qquad
    \text{ordinal: } P(y \le k) = s(c_{k + 1} - f),

with the logistic function s and cut points :math:`c_1 < \ldots < c_{K - 1}` (Bishop 2006, section 4.3, ISBN
978-0-387-31073-2; McCullagh 1980, https://doi.org/10.1111/j.2517-6161.1980.tb01109.x). The expected second derivatives
are :math:`p (1 - p)`, :math:`\mathrm{diag}(p) - p p^\top`, and :math:`\sum_k g_k^2 / p_k` with :math:`g_k = \mathrm{d}
p_k / \mathrm{d} f`. The probability of an ordered class is computed from

.. math:: s(a) - s(b) = s(a) \, s(-b) \, (1 - e^{b - a}), \qquad a > b.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from bnnviz.errors import BnnvizError
from bnnviz.targets.likelihoods.base import Constants, Likelihood


def _class_numbers(y: Tensor, name: str) -> Tensor:
    """Return class numbers (rows,) as integers."""
    if y.is_floating_point() and (y != y.round()).any():
        raise BnnvizError(f"The {name} likelihood needs integer class numbers as observations.", "data")
    return y.long()


class Bernoulli(Likelihood):
    """y in {0, 1} with logit f.

    Examples
    --------
    >>> import torch
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.Bernoulli().mean(torch.zeros(1, 1, 1)).tolist()
    [[0.5]]
    """

    name = "bernoulli"
    takes_logits = "a logit"

    def check(self, y: Tensor, outputs: int) -> None:
        """Raise an error if an observation is neither 0 nor 1."""
        if not ((y == 0) | (y == 1)).all():
            raise BnnvizError("A bernoulli likelihood needs observations that are 0 or 1.", "data")

    def derivatives(self, f: Tensor, y: Tensor, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss and its derivative by the outputs."""
        return self.loss(f, y), torch.sigmoid(f) - y[..., None], raw

    def curvature(self, f: Tensor, y: Tensor, raw: Tensor, first: Tensor, rate: Tensor) -> Tensor:
        """Return the second derivative of the loss along ``first``."""
        probability = torch.sigmoid(f)
        return (probability * (1 - probability) * first.square()).sum((1, 2))

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the variance of a label."""
        probability = torch.sigmoid(f)
        return (probability * (1 - probability))[..., None]

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        return y * f[..., 0] - functional.softplus(f[..., 0])

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected observation."""
        return torch.sigmoid(f[..., 0])


class Categorical(Likelihood):
    """y in {0, ..., K - 1} with K logits f.

    Examples
    --------
    >>> import torch
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.Categorical().mean(torch.zeros(1, 1, 2)).tolist()
    [[[0.5, 0.5]]]
    """

    name = "categorical"
    takes_logits = "logits"

    def width(self) -> tuple[int | None, str]:
        """Return the number of outputs, which is arbitrary."""
        return None, "(rows, classes), one output for each class"

    def kept(self, y: Tensor) -> Tensor:
        """Return integer class numbers."""
        return _class_numbers(y[:, 0], self.name)

    def check(self, y: Tensor, outputs: int) -> None:
        """Raise an error if a class has no output."""
        if len(y) and (y.min() < 0 or y.max() >= outputs):
            raise BnnvizError(
                f"The classes run from {int(y.min())} to {int(y.max())}; with {outputs} outputs"
                f" they must run from 0 to {outputs - 1}.",
                "data",
            )

    def derivatives(self, f: Tensor, y: Tensor, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss and its derivative by the outputs."""
        residual = torch.softmax(f, -1) - functional.one_hot(y, f.shape[-1]).to(f.dtype)
        return self.loss(f, y), residual, raw

    def curvature(self, f: Tensor, y: Tensor, raw: Tensor, first: Tensor, rate: Tensor) -> Tensor:
        """Return the second derivative of the loss along ``first``."""
        probability = torch.softmax(f, -1)
        spread = (probability * first.square()).sum(-1) - (probability * first).sum(-1).square()
        return spread.sum(-1)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the covariance of the class indicators."""
        probability = torch.softmax(f, -1)
        return torch.diag_embed(probability) - probability[..., None] * probability[..., None, :]

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log density of each observation."""
        chosen = torch.log_softmax(f, -1).gather(-1, y.expand(f.shape[0], -1).unsqueeze(-1))
        return chosen.squeeze(-1)

    def mean(self, f: Tensor) -> Tensor:
        """Return the expected observation."""
        return torch.softmax(f, -1)


class Ordinal(Likelihood):
    """Ordinal distribution of y in {0, ..., K - 1} with one output and K - 1 cut points.

    Parameters
    ----------
    classes : int, optional
        Number of classes K. The default is one more than the largest observation.
    cut_points : sequence of float, optional
        Increasing cut points. By default they are learned, starting from equally probable classes at f = 0, with
        standard normal priors of the shift of the first cut point and of the logarithms of the gaps.

    Examples
    --------
    >>> from bnnviz.targets import likelihoods
    >>> likelihoods.Ordinal(classes=4).parameters
    ('first cut point', 'log gap[0]', 'log gap[1]')
    """

    name = "ordinal"

    def __init__(self, classes: int | None = None, cut_points: Sequence[float] | None = None) -> None:
        cuts = None if cut_points is None else [float(cut) for cut in cut_points]
        if cuts is not None:
            rising = all(a < b for a, b in itertools.pairwise(cuts))
            if not cuts or not rising or not all(map(math.isfinite, cuts)):
                raise BnnvizError("cut_points must be finite and increasing.", "cut_points")
            if classes not in (None, len(cuts) + 1):
                raise BnnvizError(
                    f"{len(cuts)} cut points separate {len(cuts) + 1} classes, not {classes}; omit classes.", "classes"
                )
            classes = len(cuts) + 1
        if classes is not None and classes < 2:
            raise BnnvizError(f"classes = {classes} must be at least 2.", "classes")
        if cuts is None and classes is not None:
            cuts = [math.log(k / (classes - k)) for k in range(1, classes)]
            self.parameters = ("first cut point", *(f"log gap[{k}]" for k in range(classes - 2)))
        self._count = classes
        self._cuts = None if cuts is None else Constants(cuts)

    def fitted(self, y: Tensor) -> Self:
        """Return the likelihood with the number of observed classes."""
        super().fitted(y)
        if self._count is not None or not len(y):
            return self
        count = int(self.kept(y).max()) + 1
        if count < 2:
            raise BnnvizError(
                "All observations are of class 0 or below; an ordinal likelihood needs at least classes 0 and 1.",
                "data",
            )
        return type(self)(count)

    def kept(self, y: Tensor) -> Tensor:
        """Return integer class numbers."""
        return _class_numbers(y[:, 0], self.name)

    def check(self, y: Tensor, outputs: int) -> None:
        """Raise an error if a class is beyond the cut points."""
        if len(y) and (y.min() < 0 or y.max() >= self._count):
            raise BnnvizError(
                f"The classes run from {int(y.min())} to {int(y.max())}; {self._count} classes must run from 0"
                f" to {self._count - 1}.",
                "data",
            )

    def classes(self, outputs: int) -> int:
        """Return the number of classes."""
        return self._count

    def natural(self, raw: Tensor) -> dict[str, Tensor]:
        """Return the learned cut points."""
        return {"cut_points": self.at(raw).cut_points(raw)[:, 0]} if self.parameters else {}

    def cut_points(self, f: Tensor) -> Tensor:
        """Return the cut points, (K - 1,) or (chains, 1, K - 1)."""
        cuts = self._cuts.like(f)
        if self.raw is None:
            return cuts
        raw = self.raw.to(f)
        return torch.cat([cuts[:1] + raw[:, :1], (cuts[1:] - cuts[:-1]) * raw[:, 1:].exp()], 1).cumsum(1)[:, None]

    def log_probabilities(self, f: Tensor) -> Tensor:
        """Return the log probability of each class, (chains, rows, K)."""
        cuts = self.cut_points(f)
        above = cuts - f  # (chains, rows, K - 1)
        upper = functional.pad(functional.logsigmoid(above), (0, 1))
        lower = functional.pad(functional.logsigmoid(-above), (1, 0))
        gaps = torch.log(-torch.expm1(cuts[..., :-1] - cuts[..., 1:]))
        return upper + lower + functional.pad(gaps, (1, 1))

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the log probability of each observation."""
        logs = self.log_probabilities(f)
        return logs.gather(-1, y.expand(f.shape[:-1]).unsqueeze(-1)).squeeze(-1)

    def hessian(self, f: Tensor, y: Tensor) -> Tensor:
        """Return the expected second derivative."""
        above = torch.sigmoid(self.cut_points(f) - f)
        density = functional.pad(above * (1 - above), (1, 1))
        slope = density[..., :-1] - density[..., 1:]
        tiny = torch.finfo(f.dtype).tiny
        return (slope.square() / self.log_probabilities(f).exp().clamp_min(tiny)).sum(-1)[..., None, None]

    def mean(self, f: Tensor) -> Tensor:
        """Return the probability of each class."""
        return self.log_probabilities(f).exp()

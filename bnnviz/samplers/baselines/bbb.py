"""Sample by Bayes by Backprop."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY, Traits, counters, preset
from bnnviz.samplers.baselines.adam import LossGradient, Training
from bnnviz.samplers.baselines.descent import Descending, Rest
from bnnviz.samplers.baselines.text import ELBOText
from bnnviz.samplers.functional.base import Functional, MeanField
from bnnviz.samplers.random import RandomNumbers, log_normal
from bnnviz.targets import BNN, Target


class State(NamedTuple):
    """State of all chains between two steps."""

    x: Tensor  # (chains, dim): The means
    # (chains,): As in `bnnviz.samplers.baselines.descent.State`
    count: Tensor
    alive: Tensor
    training: Training
    c: Tensor  # (chains, 2, dim): The coefficients (mu, rho), sd = softplus(rho)
    adaptation: Rest


@REGISTRY.add
class BayesByBackprop(Functional, Descending):
    """Bayes by Backprop: variational inference with a factorised normal distribution of the weights.

    Adam minimises -ELBO = E_q[-log likelihood] + KL(q, prior) over the means and sds of q, sd = softplus(rho). The
    first term is averaged over a few draws; the second has a closed form (the paper estimates it too). A chain is one
    descent, followed by independent draws from its q, which ignore correlations between weights and are narrower than
    the posterior. On a density without a separate prior the second term is minus the entropy of q. With
    ``gradient="local"`` a multilayer perceptron draws the preactivations of each row instead of the weights, which has
    the same expectation and less noise; other modules and densities draw weights. Settings follow the PMCnet paper
    (learning rate 1e-3, three draws), but the learning rate decays and the prior is the target's. Source: Blundell et
    al. 2015; Kingma, Salimans and Welling 2015 (the local reparameterisation).
    """

    registered = "bbb"
    title = "Bayes by Backprop"
    trained = "c"
    traits = Traits(
        exact=False,
        converges=False,
        descends=True,
        has_density=True,
        functional=True,
        weighed_by="truth / mixture",
    )
    text = ELBOText
    width = 7

    learning_rate = settings.Number(1e-3, bounds=(1e-7, 1.0), scale="log", doc="Initial learning rate of Adam.")
    steps = settings.Integer(
        10_000, bounds=(1, 1_000_000), scale="log", doc="Number of Adam steps of the optimisation of each chain."
    )
    samples = settings.Integer(
        3,
        bounds=(1, 1000),
        scale="log",
        doc="Number of draws in the Monte Carlo estimate of the loss, at the cost of one gradient each.",
    )
    gradient = settings.Choice(
        "local",
        objects=["local", "weights"],
        doc="Random variables of a gradient. local: preactivations of each row, for multilayer perceptrons. weights:"
        " weights, shared by all rows.",
    )

    presets = [
        preset("paper", "As in the PMCnet paper", "A constant learning rate of 1e-3.", schedule="constant"),
        preset("quick", "Quick", "Ten times the learning rate, for small networks.", learning_rate=0.01, steps=3000),
    ]

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target, with a normal q."""
        self.reading = MeanField("softplus")
        super().prepare(target, mode)
        self._local = self.gradient == "local" and isinstance(target, BNN) and target.layers is not None

    @property
    def passes(self) -> int:
        """Passes over the rows of a batch per step: one for each draw."""
        return self.samples

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains with their first distributions."""
        c = self.begun(x0)
        return State(self.reading.centre(c), *counters(x0), Training.begun(c), c, Rest())

    def parts(self, trained: Tensor) -> dict[str, Tensor]:
        """Return the coefficients and the means."""
        return {"c": trained, "x": self.reading.centre(trained)}

    def slope(self, rng: RandomNumbers, trained: Tensor, batch: Any) -> LossGradient:
        """Return -ELBO of coefficients (chains, 2, dim), KL, and the gradient of -ELBO."""
        fit, g = (self._by_units if self._local else self._by_weights)(rng, trained, batch)
        mu, sd = trained[:, 0], self.reading.sd(trained)[:, 0]
        precision = self.target.prior_precision
        entropy = sd.log() + 0.5 * math.log(2 * math.pi * math.e)
        cross = (
            0.5 * (precision * (mu.square() + sd.square()) + math.log(2 * math.pi / precision)) if precision else 0.0
        )
        kl = (cross - entropy).sum(1)
        pull = torch.stack([(precision or 0.0) * mu, (precision or 0.0) * sd - 1 / sd], 1)
        pull[:, 1] *= self.reading.sd_slope(trained)[:, 0]
        return LossGradient(fit + kl, kl, g + pull)

    def _repeated(self, batch: Any) -> Any:
        """Return a batch repeated for each chain and draw."""
        return [part.repeat_interleave(self.samples, 0) for part in batch] if len(batch) else batch

    def _by_weights(self, rng: RandomNumbers, c: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return E_q[-log likelihood] (chains,) over draws of the weights, and its gradient (chains, 2, dim)."""
        z = rng.normal((len(c), self.samples, c.shape[2]), c.dtype)
        fit, g = self.fit(self.reading.at(c, z).flatten(0, 1), self._repeated(batch))
        g = g.view(z.shape)
        gradient = torch.stack([(g * slope).mean(1) for slope in self.reading.slopes(c, z)], 1)
        return fit.view(z.shape[:2]).mean(1), gradient

    def _by_units(self, rng: RandomNumbers, c: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
        """Return E_q[-log likelihood] (chains,) over draws of preactivations, and its gradient (chains, 2, dim)."""
        rows, target = self.source.rows(self._repeated(batch)), self.target
        draws, seen = self.samples * len(c), target.count(rows)
        noise = [rng.normal((draws, layer.outputs, seen), c.dtype) for layer in target.layers]
        if target.likelihood_dim:
            noise.append(rng.normal((draws, target.likelihood_dim), c.dtype))
        with torch.enable_grad():
            c = c.detach().requires_grad_(True)
            each = c.repeat_interleave(self.samples, 0)
            fit = target.fit_under_noise(each[:, 0], self.reading.sd(each)[:, 0], rows, noise)
            fit = fit.view(len(c), self.samples).mean(1)
            (gradient,) = torch.autograd.grad(fit.sum(), c)
        return fit.detach(), gradient

    def approximation(self, rng: RandomNumbers, state: State, count: int) -> tuple[Tensor, Tensor]:
        """Return equally many draws from the q of each converged chain, and their log density."""
        c = state.c[state.alive & (state.training.taken >= self.steps)]
        z = rng.normal((len(c), -(-count // max(len(c), 1)), c.shape[2]), c.dtype)
        return self.reading.at(c, z).flatten(0, 1), log_normal(z, self.reading.sd(c).double()).flatten()

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains restarted at x (chains, dim)."""
        return super().moved_to(rng, state, self.begun(x))

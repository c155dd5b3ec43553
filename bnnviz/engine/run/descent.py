r"""Descend to modes, for all chains at once: by Adam, or to the mass of a density by BFGS.

BFGS (`QuasiNewton`) has an estimate B of each chain's inverse Hessian. A step tries $x - \alpha B g$. It is accepted
under Armijo's condition; then $\alpha$ is reset to one, and B is updated from the differences s of positions and y of
gradients,

$$B \leftarrow (I - \rho s y^\top) B (I - \rho y s^\top) + \rho s s^\top, \qquad \rho = 1 / y^\top s,$$

if $y^\top s > 0$. Otherwise $\alpha$ decreases. A chain has converged after eight steps with $g^\top B g < $ dim / 200:
if B is right, U is then closer to its minimum than at draws. Chains that have not converged, or with U too large
compared to converged ones to have mass, move to the best of them. If no chain has converged they return to their
starting points: a hierarchical density may have no mode, and no mass where it is infinite. At an edge of the density,
with as many directions out of it as into it, no step of HMC is short enough; chains then start at random points near
it. Reference: J. Nocedal and S. J. Wright, Numerical Optimization, 2006, chapter 6, doi:10.1007/978-0-387-40065-5.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from bnnviz.samplers.baselines import newton
from bnnviz.samplers.baselines.adam import adam
from bnnviz.targets import Target
from bnnviz.targets.minibatch import Batch

_STEPS, _STEPS_BY_DIM = 100, 5
_NO_MASS, _NO_MASS_BY_DIM = 50.0, 5.0  # of U above its minimum
_CALM, _CALM_STEPS = 0.005, 8  # limit of g' B g relative to the dimension, and steps below it
_ARMIJO, _SHORTER = 1e-4, 0.3
_LEAST = 1e-10  # minimum alpha: shorter ones are lost in rounding
_LOOKS, _OUTSIDE = 16, 0.25  # points tested around an end, and the fraction outside at an edge
_SHORTEST = 40  # halvings of the way back from an edge
_ROUNDING = 1e-6  # relative increase of U tolerated as rounding in single precision


class Descent:
    """Adam on U for all chains from x (chains, dim), with a step that falls to zero; by batches of many rows."""

    def __init__(self, target: Target, x: Tensor, steps: int) -> None:
        self.target, self.steps, self.taken, self.seconds = target, steps, 0, 0.0
        self.x = self._last = x.detach().clone()
        # Not torch.optim, which imports torch's compiler and would delay a worker's first run by more than a second.
        self._mean, self._square = torch.zeros_like(self.x), torch.zeros_like(self.x)
        few = target.descent_rows
        self._batched = few is not None and few < (target.data_rows or 0)
        self.examples = few if self._batched else target.examples
        self._rng = torch.Generator(x.device).manual_seed(0)
        self.potential = torch.full(x.shape[:1], torch.inf, dtype=x.dtype)

    @property
    def done(self) -> bool:
        """Whether all steps are taken."""
        return self.taken >= self.steps

    def advance(self, steps: int) -> None:
        """Take some steps."""
        begun = time.perf_counter()
        for _ in range(min(steps, self.steps - self.taken)):
            self._step()
        self.seconds += time.perf_counter() - begun

    def _step(self) -> None:
        self.potential, slope = self._seen().gradient(self.x)
        lost = ~(torch.isfinite(self.potential) & torch.isfinite(slope).all(-1))
        if bool(lost.any()):
            # Lost chains move halfway back to a finite U, with zero momentum.
            self._last = torch.where(lost[:, None], self._last, self.x)
            self.x = torch.where(lost[:, None], 0.5 * (self.x + self._last), self.x)
            self._mean, self._square, slope = (
                torch.where(lost[:, None], 0.0, part) for part in (self._mean, self._square, slope)
            )
        else:
            self._last = self.x
        rate = self.target.descent_rate * (1 - self.taken / self.steps)
        self.taken += 1
        number, rates = torch.tensor([[self.taken], [rate]], dtype=torch.float64, device=self.x.device)
        move, self._mean, self._square = adam(slope, self._mean, self._square, number, rates)
        self.x = self.x - move

    @property
    def seconds_left(self) -> float:
        """Approximate seconds of the remaining steps; nan before the first."""
        return self.seconds / self.taken * (self.steps - self.taken) if self.taken else float("nan")

    def _seen(self) -> Target | Batch:
        """Return the target for the next step: all its rows, or a batch of them per chain."""
        if not self._batched:
            return self.target
        shape, rng = (len(self.x), self.examples), self._rng
        return self.target.batch(torch.randint(self.target.data_rows, shape, generator=rng, device=rng.device))

    def ends(self) -> Tensor:
        """Return the end of each chain, (chains, dim)."""
        return self.x.clone()

    starts = ends  # the starting points

    def best(self) -> Tensor:
        """Return the end with the smallest U, (dim,)."""
        ends = self.ends()
        potential = self.target.gradient(ends)[0]
        return ends[torch.where(torch.isfinite(potential), potential, torch.inf).argmin()]


class QuasiNewton(Descent):
    """BFGS from x (chains, dim) instead of Adam; it ends once all chains have converged or are lost."""

    def __init__(self, target: Target, x: Tensor) -> None:
        super().__init__(target, x, _STEPS + _STEPS_BY_DIM * target.dim)
        self._begun = self.x
        self._eye = torch.eye(x.shape[1], dtype=torch.float64, device=x.device)
        self._inverse = self._eye.expand(len(x), -1, -1)
        self._fresh = torch.ones(len(x), dtype=torch.bool, device=x.device)  # before the first update
        self._alpha: Tensor | None = None
        self._gradient = self._direction = torch.zeros_like(x, dtype=torch.float64)
        self._resting = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        self._calm = torch.zeros(len(x), device=x.device)
        self._ends: Tensor | None = None

    @property
    def done(self) -> bool:
        """Whether all chains have converged or are lost, or all steps are taken."""
        return self.taken >= self.steps or bool(self._resting.all())

    def advance(self, steps: int) -> None:
        """Take some steps, until all chains have ended."""
        for _ in range(steps):
            if self.done:
                return
            super().advance(1)

    def _step(self) -> None:
        self.taken += 1
        first = self._alpha is None
        trial = self.x if first else self.x + (self._alpha[:, None] * self._direction).to(self.x.dtype)
        potential, gradient = self._seen().gradient(trial)
        potential, gradient = potential.double(), gradient.double()
        finite = torch.isfinite(potential) & torch.isfinite(gradient).all(-1)
        if first:
            taken = finite
            # A first step of at most length one, whatever the scale of U.
            self._inverse = self._eye / torch.linalg.vector_norm(gradient, dim=-1).clamp_min(1.0)[:, None, None]
            self._alpha = torch.ones_like(potential)
        else:
            fall = _ARMIJO * self._alpha * (self._gradient * self._direction).sum(-1)
            taken = finite & (potential <= self.potential + fall + _ROUNDING * self.potential.abs()) & ~self._resting
            self._learn(taken, (trial - self.x).double(), gradient - self._gradient)
            self._alpha = torch.where(taken, 1.0, self._alpha * _SHORTER)
        self.x = torch.where(taken[:, None], trial, self.x)
        self.potential = torch.where(taken, potential, self.potential.double())
        self._gradient = torch.where(taken[:, None], gradient, self._gradient)
        direction = -torch.einsum("cij,cj->ci", self._inverse, self._gradient)
        decrement = -(self._gradient * direction).sum(-1)
        self._direction = direction
        # B is unknown at the first step.
        calm = (decrement < _CALM * self.x.shape[1]) & (not first)
        self._calm = torch.where(taken, torch.where(calm, self._calm + 1, 0.0), self._calm)
        self._calm = torch.where(calm & (self._alpha < _LEAST), _CALM_STEPS, self._calm)
        self._resting = (self._alpha < _LEAST) | self._arrived | ~torch.isfinite(self.potential)

    @property
    def _arrived(self) -> Tensor:
        return self._calm >= _CALM_STEPS

    def ends(self) -> Tensor:
        """Return the end of each chain (chains, dim); those that have not converged move to the best end."""
        if self._ends is not None:
            return self._ends.clone()
        target, whole = self.target.clone(), slice(None)
        ends, potential = self.x.clone(), torch.where(torch.isfinite(self.potential), self.potential, torch.inf)
        arrived, best = self._arrived.clone(), int(potential.argmin())
        if bool(torch.isfinite(potential[best])):
            refined = newton.refined(target, ends[best], whole)
            found = newton.place(target, refined)
            if found is not None and found.is_mode:
                ends[best], arrived[best] = refined, True
                potential[best] = target.gradient(refined[None])[0][0].double()
        self._ends = self._begun
        if bool(arrived.any()):
            potential = torch.where(arrived, potential, torch.inf)
            beyond = potential > potential.min() + _NO_MASS + _NO_MASS_BY_DIM * self.x.shape[1]
            self._ends = torch.where(beyond[:, None], ends[potential.argmin()], ends)
        return self._ends.clone()

    def starts(self) -> Tensor:
        """Return the starting points (chains, dim): the ends, or random points near an edge there."""
        ends, target = self.ends(), self.target.clone()  # with a separate counter of points
        rng = torch.Generator().manual_seed(1)
        spread = torch.linalg.cholesky_ex(self._inverse).L

        def around(scale: float) -> Tensor:
            noise = torch.randn(ends.shape, dtype=torch.float64, generator=rng).to(ends.device)
            return ends + (scale * torch.einsum("cij,cj->ci", spread, noise)).to(ends.dtype)

        outside = sum(~torch.isfinite(target.gradient(around(1.0))[0]) for _ in range(_LOOKS))
        at_edge = outside >= _OUTSIDE * _LOOKS
        highest = target.gradient(ends)[0] + _NO_MASS_BY_DIM * (1 + ends.shape[1])
        for halvings in range(_SHORTEST):
            if not bool(at_edge.any()):
                break
            trial = around(0.5**halvings)
            potential, gradient = target.gradient(trial)
            inside = at_edge & torch.isfinite(potential) & (potential < highest) & torch.isfinite(gradient).all(-1)
            ends = torch.where(inside[:, None], trial, ends)
            at_edge &= ~inside
        return ends

    def _learn(self, taken: Tensor, s: Tensor, y: Tensor) -> None:
        """Update the inverse Hessians (chains, dim, dim) of the chains that have taken a step."""
        curved = (s * y).sum(-1)
        good = taken & (curved > 1e-12 * torch.linalg.vector_norm(s, dim=-1) * torch.linalg.vector_norm(y, dim=-1))
        rho = torch.where(good, 1 / torch.where(good, curved, 1.0), 0.0)
        # The scale of the first step replaces the guess.
        scale = (curved / (y * y).sum(-1).clamp_min(1e-300))[:, None, None]
        inverse = torch.where((good & self._fresh)[:, None, None], scale * self._eye, self._inverse)
        self._fresh = self._fresh & ~good
        left = self._eye - rho[:, None, None] * s[:, :, None] * y[:, None, :]
        updated = left @ inverse @ left.mT + rho[:, None, None] * s[:, :, None] * s[:, None, :]
        self._inverse = torch.where(good[:, None, None], updated, self._inverse)

"""Functional Hamiltonian Monte Carlo."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.samplers.base import REGISTRY
from bnnviz.samplers.discrete import length
from bnnviz.samplers.functional.base import Energy, Functional, Hermite, MeanField, energy, quadrature
from bnnviz.samplers.mcmc.hamiltonian import Hamiltonian
from bnnviz.targets import Target


class State(NamedTuple):
    """All chains between two moves.

    Attributes
    ----------
    x : Tensor, shape (chains, dim)
        The functionals' means.
    v, c : Tensor, shape (chains, K, dim)
        Velocities of the coefficients, and the coefficients.
    count, alive : Tensor, shape (chains,)
        As of `bnnviz.samplers.discrete.State`.
    """

    x: Tensor
    v: Tensor
    count: Tensor
    alive: Tensor
    c: Tensor


class Info(NamedTuple):
    """What one move did, for every chain, shape (chains,).

    Attributes
    ----------
    potential, entropy, kinetic : Tensor
        The ledger where the move has led: mean of U, entropy, kinetic energy.
    accepted, chance, error : Tensor
        As of `bnnviz.samplers.mcmc.hmc.Info`.
    went : Tensor
        How far the mean has moved.
    failed : Tensor, bool
        The chain stood where the energy is not finite.
    """

    potential: Tensor
    entropy: Tensor
    kinetic: Tensor
    accepted: Tensor
    chance: Tensor
    error: Tensor
    went: Tensor
    failed: Tensor


@REGISTRY.add
class FuncHMC(Functional, Hamiltonian):
    """Hamiltonian Monte Carlo on functionals: a state is a distribution, from which draws are made.

    The energy of N(mu, sd^2) is the mean of U less log sd; the velocity is kept in part, v <- a v + sqrt(1 - a^2) xi,
    and turned where the trajectory's end is rejected (Horowitz 1991). The paper gives learning rate .2, momentum a = .5
    and 10 moves, not what a functional is nor the number of leapfrog steps: ``reading="mean_field"``, c = (mu, log sd),
    and 10 leaps are ours, after its section 4.1; ``reading="hermite"`` is the finite sum of basis functions of its
    section 3 (Beskos et al. 2011). Without the entropy sd goes to 0, and the sampler becomes HMC. What is drawn is the
    mixture of the functionals, which is wider than the target: twice its variance on a round Gaussian; weights exp(-U)
    over the mixture's density correct it in few dimensions. In one dimension means are by quadrature; in more by
    ``pairs`` of draws, fresh for each move, whose noise the acceptance does not know of.
    Source: the functional-BNN paper, section 5.1.
    """

    registered = "func_hmc"
    title = "FuncHMC"
    told = ("accepted", "entropy")
    exact = False

    leaps = settings.Integer(10, bounds=(1, 1000), scale="log", live=True, doc="Leapfrog steps of a trajectory.")
    momentum = settings.Number(
        0.5, bounds=(0.0, 0.999), step=0.05, live=True, doc="Share of the velocity that a move keeps."
    )
    metric = settings.Choice(
        "unit", objects=["diagonal", "unit"], doc="Scales of the coefficients: all one, or learnt in the tuning."
    )
    form = settings.Choice(
        "mean_field",
        objects=["mean_field", "hermite"],
        label="Reading",
        doc="What a functional is. mean_field: N(mu, sd^2). hermite: a sum of Hermite polynomials of a normal.",
    )
    terms = settings.Integer(
        4,
        bounds=(2, 8),
        when={"form": ["hermite"]},
        doc="Hermite polynomials; from 4 on a functional may have two modes.",
    )
    entropy = settings.Boolean(True, live=True, doc="Take the entropy from the energy; without it sd goes to 0.")
    pairs = settings.Integer(
        4,
        bounds=(2, 1000),
        scale="log",
        live=True,
        doc="Pairs of draws that a mean of U is made of, in two or more dimensions.",
    )

    def prepare(self, target: Target, mode: Tensor | None) -> None:
        """Bind the target and choose the functionals."""
        self.reading = MeanField("log") if self.form == "mean_field" else Hermite(self.terms)
        super().prepare(target, mode)
        count = 2 if self.form == "mean_field" else self.terms
        self.scale = torch.ones(count * target.dim, dtype=target.dtype, device=target.device)
        self._nodes, self._weights = quadrature(self.scale)
        if target.dim > 1:
            self._weights = torch.full((2 * self.pairs,), 0.5 / self.pairs, dtype=target.dtype, device=target.device)

    @property
    def examples_per_step(self) -> int:
        """Gradients of single rows that a move is charged for."""
        return self.target.examples * (1 + self.leaps) * len(self._weights)

    @property
    def width(self) -> int:
        """Numbers that a state holds of each chain and coordinate."""
        return 1 + 2 * len(self.scale) // self.target.dim

    def init(self, x0: Tensor, rng: torch.Generator) -> State:
        """Return the chains with their first functionals."""
        first = super().init(x0, rng)
        return self._begun(first.count, first.alive, self.begun(x0))

    def _begun(self, count: Tensor, alive: Tensor, c: Tensor) -> State:
        v = self.temperature**0.5 * self.rng.normal(c.shape, c.dtype)
        return State(self.reading.centre(c), v, count, alive, c)

    def first_size(self, x: Tensor) -> float:
        """Return half the step at which a leapfrog of the means along the largest curvature is no longer stable."""
        return self.set_size(self.largest_curvature(x) ** -0.5)

    def pre_draw(self, state: State) -> Any:
        """Draw where the means of U are taken: (chains, nodes, dim); nothing in one dimension.

        They come in pairs, z and -z, of mean square 1 in each coordinate: so the mean of a sum of squares is exact.
        """
        if self.target.dim == 1:
            return ()
        half = self.rng.normal((len(state.x), self.pairs, state.x.shape[1]), state.x.dtype)
        half = half / half.square().mean(1, keepdim=True).sqrt()
        return torch.cat([half, -half], 1)

    def _energy(self, c: Tensor, nodes: Any) -> tuple[Energy, Tensor]:
        nodes = self._nodes if isinstance(nodes, tuple) else nodes
        share = self.temperature if self.entropy else 0.0
        found = energy(self.reading, self.target, c, nodes, self._weights, share)
        return found, found.expected.double() - share * found.entropy.double()

    def kernel(self, state: State, pre_drawn: Any) -> tuple[State, Info]:
        """Follow a trajectory of every chain's functional and accept or reject its end."""
        keep, c = self.momentum, state.c
        fresh = self.temperature**0.5 * self.rng.normal(c.shape, c.dtype)
        begun = keep * state.v + (1 - keep**2) ** 0.5 * fresh
        h = (self.size() * self.scale).view(c.shape[1:])
        (here, before), v = self._energy(c, pre_drawn), begun
        found, value = here, before
        for _ in range(self.leaps):
            v = v - 0.5 * h * found.gradient
            c = c + h * v
            found, value = self._energy(c, pre_drawn)
            v = v - 0.5 * h * found.gradient
        error = value + _kinetic(v) - before - _kinetic(begun)
        acceptance_probability = torch.exp((-error / self.temperature).clamp_max(0.0)).nan_to_num(0.0)
        accepted = self.rng.uniform(acceptance_probability.shape, acceptance_probability.dtype) < acceptance_probability
        finite = torch.isfinite(before)
        taken = accepted[:, None, None]
        # A rejected trajectory is gone back on: the velocity that is kept turns.
        c, v = torch.where(taken, c, state.c), torch.where(taken, v, -begun)
        after, failed = self.moved(state, finite, x=self.reading.centre(c), v=v, c=c)
        if self.tuning:
            self.learn(after.c.flatten(1), acceptance_probability, after.alive)
        jump_distance = length(after.x - state.x)
        ledger = [torch.where(accepted, *parts) for parts in zip(found[:2], here[:2], strict=True)]
        return after, Info(
            *ledger,
            _kinetic(v),
            accepted.to(acceptance_probability.dtype),
            acceptance_probability,
            error,
            jump_distance,
            failed,
        )

    def resume(self, state: State, moved: bool = False) -> State:
        """Return the state to go on from; the functionals stay."""
        return state

    def placed(self, state: State, x: Tensor) -> State:
        """Return the state of chains that set out anew from x (chains, dim)."""
        return self._begun(state.count, state.alive, self.begun(x))

    def caption(self, info: Info, chain: int) -> str:
        """Say what became of a chain's functional, and its ledger."""
        parts = (info.error, info.chance, info.potential, info.entropy)
        error, acceptance_probability, potential, entropy = (float(part[chain]) for part in parts)
        fate = "accepted" if float(info.accepted[chain]) else "rejected: the functional stays and turns back"
        return (
            f"the energy changed by {error:.3g}; the new functional, of chance {acceptance_probability:.2f},"
            f" was {fate}."
            f" Mean of U {potential:.3g}, entropy {entropy:.3g}."
        )

    def told_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return acceptance and entropy."""
        return [["Acceptance; entropy", f"{means['accepted']:.2f}; {means['entropy']:.3g}", ""]]

    def told_words(self, means: dict[str, float]) -> str:
        """Return how many functionals were accepted."""
        return f"of which {100 * means['accepted']:.0f} % were accepted, each a whole distribution to draw from"

    def rebuilt(self, parts: list[Tensor]) -> State:
        """Return the state made of its tensors."""
        return State(*parts)


def _kinetic(v: Tensor) -> Tensor:
    return 0.5 * v.double().square().sum((1, 2))

"""Sample by sequential anchored ensembles."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.samplers.base import REGISTRY, counters, length, preset
from bnnviz.samplers.baselines.adam import Trained, Training, adam, squared
from bnnviz.samplers.baselines.text import AnchoredText
from bnnviz.samplers.minibatch import batch_size_setting
from bnnviz.samplers.random import RandomNumbers
from bnnviz.samplers.tree import choose
from bnnviz.targets import Target


class State(NamedTuple):
    """State of all chains between two steps."""

    # As in `bnnviz.samplers.baselines.descent.State`: a move is a member
    x: Tensor
    count: Tensor
    alive: Tensor
    training: Training
    # (chains, dim): The member's anchor, and the direction in which each coordinate moves, 1 or -1
    anchor: Tensor
    heading: Tensor


class Info(NamedTuple):
    """Info of one step for every chain, shape (chains,)."""

    # Statistics of a member whose training ends here, as in `bnnviz.samplers.baselines.adam.Info`; otherwise zero
    loss: Tensor
    penalty: Tensor
    accepted: Tensor  # Share of its anchor's coordinates whose move was accepted
    # Learning rate, and distance moved
    learning_rate: Tensor
    jump_distance: Tensor
    failed: Tensor  # bool: The chain met a non-finite value


class Walk(NamedTuple):
    """Anchors and headings (chains, dim) after a step, and the share of accepted coordinates (chains,)."""

    anchor: Tensor
    heading: Tensor
    accepted: Tensor


def guided_walk(anchor: Tensor, heading: Tensor, length: Tensor, uniform: Tensor, precision: float) -> Walk:
    """Move anchors (chains, dim) by |length| in their headings with the Metropolis probability, or reverse them."""
    there = anchor + heading * length.abs()
    moved_on = uniform < torch.exp(0.5 * precision * (anchor.square() - there.square()))
    accepted = moved_on.to(torch.float64).mean(1)
    return Walk(torch.where(moved_on, there, anchor), torch.where(moved_on, heading, -heading), accepted)


@REGISTRY.add
class SAE(Trained):
    """Sequential anchored ensembles: members are trained sequentially, each regularised toward an anchor.

    A member minimises -log likelihood + |theta - anchor|^2 / (2 tau^2), tau the prior's sd. Anchors follow a guided
    walk whose law is the prior, in small steps, so that a few epochs of Adam from the last member suffice; the first
    member, which is the tuning, takes more. A draw is a member. On a linear model with Gaussian noise, posterior
    precision P and mean m, converged members would follow N(m, P^-1 tau^-2 P^-1): the correct mean, but narrower than
    the posterior N(m, P^-1), since the data are not perturbed like the anchors. Members that lag behind their anchors
    are narrower still. Steps of anchors are in units of tau. Source: Delaunoy and Louppe 2022 (arXiv 2201.00649), whose
    code uses steps of 0.01 to 0.02; Gustafson 1998 (the guided walk).
    """

    registered = "sae"
    title = "Sequential anchored ensemble"
    info_means = {"loss": "loss", "penalty": "penalty", "accepted": "anchor acceptance"}
    text = AnchoredText
    width = 5

    batch_size = batch_size_setting(
        "Number of random data rows per gradient, redrawn for each step. Empty: all rows, so that an epoch is one"
        " step.",
        default=32,
    )
    schedule = settings.Choice(
        "cosine",
        objects=["linear", "cosine", "constant"],
        doc="Schedule of the learning rate of each member: linear or cosine decay to zero, or constant.",
    )
    later_rate = settings.Number(
        3e-3,
        bounds=(1e-7, 1.0),
        scale="log",
        label="Later learning rate",
        doc="Initial learning rate of all members but the first.",
    )
    first_epochs = settings.Integer(
        100, bounds=(1, 100_000), scale="log", unit="epochs", doc="Number of training epochs of the first member."
    )
    epochs = settings.Integer(
        2, bounds=(1, 1000), scale="log", unit="epochs", doc="Number of training epochs of later members."
    )
    anchor_step = settings.Number(
        0.02,
        bounds=(1e-4, 10.0),
        scale="log",
        unit="prior sd",
        doc="Standard deviation of the steps of the anchors. With small steps, training is fast but the ensemble"
        " spreads slowly.",
    )

    presets = [
        preset(
            "paper", "As in the authors' code", "Five epochs per member, steps of 0.01.", epochs=5, anchor_step=0.01
        ),
        preset("wide", "Wide steps", "Steps of 0.2 with ten epochs each.", epochs=10, anchor_step=0.2),
    ]

    def check(self, target: Target) -> None:
        """Raise if the target has no prior for anchors or no rows for epochs."""
        if target.prior_precision is None or target.data_rows is None:
            raise BnnvizError(
                f"{self.title} needs a posterior with data rows and a normal prior for its anchors, but"
                f" {target.describe_value()} is not one; choose another sampler or a network.",
                "sampler",
            )

    @property
    def tuning_limit(self) -> int:
        """Maximum number of tuning steps: the first member's training."""
        return self.first_epochs * self.epoch

    def init(self, x0: Tensor, rng: RandomNumbers) -> State:
        """Return the chains at their initial positions, with anchors from the prior."""
        anchor = self.target.prior_precision**-0.5 * rng.normal(x0.shape, x0.dtype)
        heading = torch.where(rng.uniform(x0.shape, x0.dtype) < 0.5, -1.0, 1.0).to(x0.dtype)
        return State(x0, *counters(x0), Training.begun(x0), anchor, heading)

    def training_steps(self, state: State) -> Tensor:
        """Return the number of training steps of each chain's member, (chains,)."""
        return torch.where(state.count == 0, self.first_epochs, self.epochs).to(state.training.taken.dtype) * self.epoch

    def pre_draw(self, rng: RandomNumbers, state: State) -> tuple:
        """Draw the batch and, if a member ends, random numbers of the anchors' walk."""
        (batch,), shape = super().pre_draw(rng, state), state.x.shape
        if self.host_sync and not bool((state.training.taken + 1 >= self.training_steps(state)).any()):
            return batch, None
        return batch, (rng.normal(shape, state.x.dtype), rng.uniform(shape, state.x.dtype))

    def kernel(self, rng: RandomNumbers, state: State, batch: Any, random_numbers: Any) -> tuple[State, Info]:
        """Train every chain's member by one step; if its training ends, move the anchor."""
        fit, g = self.fit(state.x, batch)
        penalty, pull = squared(state.x - state.anchor, self.target.prior_precision)
        loss, steps = fit + penalty, self.training_steps(state)
        taken = state.training.taken
        first = torch.where(state.count == 0, self.learning_rate, self.later_rate).to(taken.dtype)
        rate = first * self.scheduled(taken / steps)
        step = adam(g + pull, state.training.mean, state.training.square, taken + 1, rate)
        finite = torch.isfinite(loss) & torch.isfinite(step.move).all(1)
        training = Training(step.mean, step.square, taken + 1, loss, penalty)
        ended, walk, anchor, heading = taken + 1 >= steps, None, state.anchor, state.heading
        if random_numbers is not None:
            step_length, precision = self.anchor_step * self.target.prior_precision**-0.5, self.target.prior_precision
            normal, uniform = random_numbers
            walk = guided_walk(anchor, heading, step_length * normal, uniform, precision)
            training = choose(ended, training.restarted(), training)
            anchor, heading = choose(ended, walk.anchor, anchor), choose(ended, walk.heading, heading)
        after, failed = self.moved(
            state, finite, x=state.x - step.move, training=training, anchor=anchor, heading=heading
        )
        after = after._replace(count=state.count + (ended & after.alive))
        nothing = torch.zeros_like(rate)
        statistics = [
            torch.where(ended, part, 0.0) for part in (loss, penalty, nothing if walk is None else walk.accepted)
        ]
        return after, Info(*statistics, rate, length(step.move), failed)

    def is_tuned(self, state: State) -> bool:
        """Return whether every living chain has its first member."""
        return bool((state.count >= 1)[state.alive].all())

    def moved_to(self, rng: RandomNumbers, state: State, x: Tensor) -> State:
        """Return the state of chains whose members restart at x (chains, dim)."""
        return state._replace(x=x, training=state.training.restarted())

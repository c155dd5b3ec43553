"""Describe the moves of trained samplers and of the Laplace approximation."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.base import length
from bnnviz.samplers.text import MoveText

_LOSS = "{loss:.4g} = {fit:.4g} + {penalty:.4g}"


class TrainedText(MoveText):
    """Describe a step of Adam and the parts of the loss."""

    move = "the loss was {loss:.4g}; Adam at learning rate {learning_rate:.2g} moves the chain by {jump_distance:.3g}."
    table = {"Loss = fit + penalty": _LOSS}
    words = "with a loss of {loss:.4g} on average"

    def mean_rows(self, means: dict[str, float]) -> list[list[str]]:
        """Return the loss and its parts."""
        return super().mean_rows(means | {"fit": means["loss"] - means["penalty"]})


class DescentText(TrainedText):
    """Describe the progress of descents."""

    waiting = "The descent has not begun yet."
    table = {"Loss = fit + prior": _LOSS}
    #: The draws at rest.
    at_rest = "every draw is its end point."

    def caption(self, state: Any, info: Any, chain: int) -> str:
        """Describe a chain's step."""
        if float(info.learning_rate[chain]) > 0:
            return super().caption(state, info, chain)
        return f"the descent has ended, with a loss of {float(info.loss[chain]):.4g}; {self.at_rest}"

    def rows(self, state: Any) -> list[list[str]]:
        """Return the progress of the descents and the chains' losses."""
        sampler, taken, loss = self.sampler, state.training.taken[state.alive], state.training.loss[state.alive]
        if not len(taken):
            return []
        least, rate = float(taken.min()), 0.0
        if least < sampler.steps:
            rate = sampler.learning_rate * float(sampler.scheduled(taken.min() / sampler.steps))
        epochs = least / sampler.epoch
        shown = f"{epochs:,.0f}" if epochs >= 100 else f"{epochs:.3g}"
        return [
            ["Step of the descent; epoch", f"{least:,.0f} of {sampler.steps:,}; {shown}", ""],
            ["Learning rate", f"{rate:.2g}" if rate else "– (the descent has ended)", ""],
            ["Loss, lowest to highest", f"{float(loss.min()):.4g} to {float(loss.max()):.4g}", ""],
        ]


class DropoutText(DescentText):
    """Describe draws of a network with dropped units."""

    at_rest = "each draw drops other units of the trained network."


class ELBOText(DescentText):
    """Describe descents of -ELBO."""

    table = {"-ELBO = fit + KL": _LOSS}
    words = "with an ELBO of {elbo:.4g} on average"
    at_rest = "draws come from the fitted distribution."

    def mean_words(self, means: dict[str, float]) -> str:
        """Return the ELBO."""
        return super().mean_words(means | {"elbo": -means["loss"]})

    def rows(self, state: Any) -> list[list[str]]:
        """Return the progress of the descents, and the sds."""
        sd = self.sampler.reading.sd(state.c[state.alive])
        if not sd.numel():
            return []
        shown = f"{float(sd.min()):.2g} to {float(sd.max()):.2g}"
        return [*super().rows(state), ["Sd of the weights, smallest to largest", shown, ""]]


class AnchoredText(TrainedText):
    """Describe the training of members of a sequential anchored ensemble and the walk of their anchors."""

    waiting = "The first member is not trained yet."
    move = (
        "a member is trained, with a loss of {loss:.4g}, including {penalty:.4g} from its anchor; {accepted:.0%} of the"
        " anchor's coordinates moved on, the others reversed."
    )
    table = {"Loss = fit + anchor": _LOSS, "Anchor acceptance": "{accepted:.3f}"}
    words = "each a member, with a loss of {loss:.4g} on average; anchors were accepted at {accepted:.1%}"

    def rows(self, state: Any) -> list[list[str]]:
        """Return the training progress of the current members."""
        sampler, alive = self.sampler, state.alive
        if not bool(alive.any()):
            return []
        epoch = float(state.training.taken[alive].max()) / sampler.epoch
        epochs = float(sampler.training_steps(state)[alive].max()) / sampler.epoch
        members, distance = float(state.count[alive].min()), length((state.x - state.anchor)[alive]).mean()
        return [
            ["Members; epoch of the next", f"{members:,.0f}; {epoch:.2g} of {epochs:.0f}", ""],
            ["Distance to the anchor", f"{float(distance):.3g}", ""],
        ]


class LaplaceText(MoveText):
    """Describe draws of the normal approximation."""

    waiting = "Nothing has been drawn yet."
    move = "a draw from the normal law at the mode, {distance:.3g} away from it."
    table = {"Distance of draws to the mode": "{distance:.3g}"}
    words = "each an independent draw, on average {distance:.3g} from the mode"

    def rows(self, state: Any) -> list[list[str]]:
        """Return the sds."""
        scale = self.sampler.scale
        sd = scale if scale.ndim == 1 else scale.square().sum(0).sqrt()
        return [["Sd of the weights, smallest to largest", f"{float(sd.min()):.2g} to {float(sd.max()):.2g}", ""]]

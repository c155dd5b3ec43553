"""Describe the moves of stochastic-gradient samplers."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.text import MoveText


class DriftText(MoveText):
    """Describe how far gradient and noise move chains."""

    move = "U was {potential:.4g}; the gradient moves the chain by {drift:.3g}, noise by {noise:.3g}."
    table = {"A move: by gradient, by noise": "{drift:.3g}, {noise:.3g}"}
    words = "on average {drift:.3g} by the gradient and {noise:.3g} by noise"

    def rows(self, state: Any) -> list[list[str]]:
        """Return the step size."""
        sizes = self.sampler.sizes(state.adaptation, state.count)[state.alive]
        return [["Step size", f"{float(sizes.mean()):.3g}", ""]] if len(sizes) else []


class PreconditionedText(DriftText):
    """Add the range of the preconditioner's entries."""

    def rows(self, state: Any) -> list[list[str]]:
        """Return the step size, and the smallest and largest entry of the preconditioner."""
        shape = self.sampler.preconditioner(state.square[state.alive])
        if not shape.numel():
            return []
        return [*super().rows(state), ["Preconditioner", f"{float(shape.min()):.2g} to {float(shape.max()):.2g}", ""]]

"""What the samplers that move by the gradient of a batch say of their moves."""

from __future__ import annotations

from typing import Any

from bnnviz.samplers.text import Text


class DriftText(Text):
    """Says how far gradient and chance move chains."""

    move = "U was {potential:.4g}; the gradient moves the chain by {drift:.3g}, chance by {noise:.3g}."
    table = {"A move: by gradient, by chance": "{drift:.3g}, {noise:.3g}"}
    words = "on average {drift:.3g} by the gradient and {noise:.3g} by chance"

    def rows(self, state: Any) -> list[list[str]]:
        """Return the step size."""
        sizes = self.sampler.sizes(state.adaptation, state.count)[state.alive]
        return [["Step size", f"{float(sizes.mean()):.3g}", ""]] if len(sizes) else []


class PreconditionedText(DriftText):
    """Says also how far the preconditioner's entries lie apart."""

    def rows(self, state: Any) -> list[list[str]]:
        """Return the step size, and the preconditioner's smallest and largest entry."""
        shape = self.sampler.preconditioner(state.square[state.alive])
        if not shape.numel():
            return []
        return [*super().rows(state), ["Preconditioner", f"{float(shape.min()):.2g} to {float(shape.max()):.2g}", ""]]

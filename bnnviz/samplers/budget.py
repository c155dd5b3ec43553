"""Say what a sampler would do with so much time: what an automatic choice compares.

A sampler that may be chosen for a network on a table has a class method ``proposal`` (`bnnviz.samplers.base.Sampler`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: Draws of each chain that a budget is planned for, and the most where it turns out to be larger.
DRAWS, MOST_DRAWS = 400, 1000


class Budget(NamedTuple):
    """What there is to spend, and on what."""

    gradients: float  # Gradients of all rows, of all chains at once, that the time allows
    chains: int
    rows: int  # Data rows
    dim: int


class BudgetProposal(NamedTuple):
    """What a sampler would do with a budget."""

    settings: dict[str, Any]  # Its settings by name
    # Of each chain
    warmup: int
    draws: int
    reason: str  # What speaks for it, as a clause

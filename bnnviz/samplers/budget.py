"""Estimate the results of a sampler within a time budget, for the automatic choice of a sampler.

A sampler that may be chosen for a network on a table has a class method ``proposal`` (`bnnviz.samplers.base.Sampler`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: Planned number of draws per chain, and its maximum if the budget proves larger.
DRAWS, MOST_DRAWS = 400, 1000


class Budget(NamedTuple):
    """The available computing time and the size of the problem."""

    gradients: float  # Full-data gradients of all chains at once that the time allows
    chains: int
    rows: int  # Data rows
    dim: int


class BudgetProposal(NamedTuple):
    """A sampler's plan for a budget."""

    settings: dict[str, Any]  # Its settings by name
    # Per chain
    warmup: int
    draws: int
    reason: str  # The argument for it, as a clause

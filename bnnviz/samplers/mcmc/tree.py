"""Build trees of leapfrog points without recursion: find the smaller subtrees that a point starts or ends.

The points of a subtree are numbered from 0. A point with an even number starts subtrees of two and more points; its
momentum is the checkpoint of a level, the number of ones in the binary number without its last digit. A point with an
odd number ends as many subtrees as its number has trailing ones: those of the levels below. Reference: D. Phan,
N. Pradhan and M. Jankowiak, Composable effects for flexible and accelerated probabilistic programming in NumPyro, 2019,
algorithm 2, doi:10.48550/arXiv.1912.11554.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
from torch import Tensor


class Levels(NamedTuple):
    """The checkpoint levels for each point number, bool."""

    written: Tensor  # (2^depth, depth, 1): Levels for which the point's momentum is a checkpoint
    ended: Tensor  # (2^depth, depth): Levels whose subtrees end with the point


@functools.lru_cache(maxsize=8)
def levels(depth: int, device: torch.device) -> Levels:
    """Return the levels of trees of at most this depth."""
    number = torch.arange(1 << depth, device=device)
    places = torch.arange(depth, device=device)
    bits = (number[:, None] >> places) & 1
    highest = bits[:, 1:].sum(1, keepdim=True)
    lowest = highest - bits.cumprod(1).sum(1, keepdim=True) + 1
    even = bits[:, :1] == 0
    return Levels((even & (places == highest))[..., None], ~even & (places >= lowest) & (places <= highest))


@functools.lru_cache(maxsize=8)
def zeros(chains: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return zeros (chains,), in float64 and as bool."""
    none = torch.zeros(chains, dtype=torch.float64, device=device)
    return none, none.bool()


def is_turning(first: Tensor, last: Tensor, total: Tensor) -> Tensor:
    """Return whether an end (..., dim) of a trajectory moves against the sum of its momenta, its ends counting half."""
    total = total - 0.5 * (first + last)
    return torch.minimum((first * total).sum(-1), (last * total).sum(-1)) <= 0

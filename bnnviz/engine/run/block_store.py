"""Where the draws lie of many checkpoints of one run: each stretch of them once, whoever has it.

Draws are only added to, until a store thins itself, so checkpoints of one run have most of theirs in common.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor

BLOCK = 16  # draws of each chain


class BlockStore:
    """Keeps blocks of draws by their content.

    Attributes
    ----------
    asked : set of str
        The blocks that were put or found again since somebody emptied this.
    """

    def __init__(self) -> None:
        self._blocks: dict[str, Tensor] = {}
        self.asked: set[str] = set()

    def put(self, draws: Tensor, known: list[str], whole: int) -> list[str]:
        """Keep draws, and return the names of their blocks.

        Parameters
        ----------
        draws : Tensor, shape (chains, draws, dim)
        known : list of str
            The names of the first blocks, as far as they cannot be others; it is added to.
        whole : int
            Draws that every chain has; those before will not change.
        """
        names = []
        for place, first in enumerate(range(0, draws.shape[1], BLOCK)):
            name = known[place] if place < len(known) else None
            if name not in self._blocks:
                # A copy of its own: one that is a view would hold all draws.
                block = draws[:, first : first + BLOCK].detach().cpu().contiguous().clone()
                name = _name(block)
                self._blocks.setdefault(name, block)
                if place == len(known) and first + BLOCK <= whole:
                    known.append(name)
            names.append(name)
        self.asked.update(names)
        return names

    def get(self, names: list[str]) -> Tensor | None:
        """Return the draws (chains, draws, dim) of these blocks; None of no block."""
        return torch.cat([self._blocks[name] for name in names], dim=1) if names else None

    def keep(self, names: Iterable[str]) -> None:
        """Forget all other blocks."""
        self._blocks = {name: self._blocks[name] for name in names}

    def size(self, names: Iterable[str]) -> int:
        """Return how many bytes these blocks take."""
        return sum(self._blocks[name].numel() * self._blocks[name].element_size() for name in names)


def _name(block: Tensor) -> str:
    digest = hashlib.blake2b(block.numpy(), digest_size=16)
    digest.update(f"{block.dtype} {tuple(block.shape)}".encode())
    return digest.hexdigest()

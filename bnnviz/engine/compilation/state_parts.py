"""Take a state apart into its tensors, and keep the tensors of several steps as rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bnnviz.samplers import Sampler
from bnnviz.samplers.tree import flat, rebuilt


class StateParts:
    """The tensors of a state: first those needed between the steps of a block (`Sampler.outline`), then the rest."""

    def __init__(self, sampler: Sampler, state: Any) -> None:
        # No tensor twice, so that each is identifiable.
        own = rebuilt(state, (part.clone(memory_format=torch.contiguous_format) for part in flat(state)))
        self._template, self._outline = own, sampler.outline(own)
        parts, asked = flat(own), {id(part) for part in flat(self._outline)}
        self._order = sorted(range(len(parts)), key=lambda number: id(parts[number]) not in asked)
        self.tensors, self.outlined = self.of(own), len(asked)

    def of(self, state: Any) -> list[Tensor]:
        """Return the tensors of a state."""
        parts = flat(state)
        return [parts[number] for number in self._order]

    def state(self, tensors: list[Tensor]) -> Any:
        """Return the state of tensors."""
        parts: list[Any] = [None] * len(self.tensors)
        for number, part in zip(self._order, tensors, strict=True):
            parts[number] = part
        return rebuilt(self._template, iter(parts))

    def outline(self, tensors: list[Tensor]) -> Any:
        """Return the needed parts of a state from its first tensors."""
        return rebuilt(self._outline, iter(tensors))

    def place(self, name: str) -> int:
        """Return the position of the first tensor of a needed part, by the part's name."""
        return field_names(self._outline).index(name)


class StepRows:
    """Tensors of several steps, each a row of a larger tensor."""

    def __init__(self, tables: list[Tensor], count: int) -> None:
        self.tables, self.count = tables, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, step: int) -> list[Tensor]:
        # Copies: a stored view, as in the figure of a path, would keep the whole table.
        return [table[step].clone() for table in self.tables]

    def view(self, step: int) -> list[Tensor]:
        """Return the tensors of a step as views, which must not be stored."""
        return [table[step] for table in self.tables]

    def column(self, place: int) -> Tensor:
        """Return the rows of the tensor at a position, (steps, ...)."""
        return self.tables[place][: self.count]


def field_names(state: Any) -> list[str]:
    """Return the field name of each tensor of a state."""
    return [name for name, part in zip(state._fields, state, strict=True) for _ in flat(part)]

"""Take a state apart into its tensors, and keep the tensors of several steps as rows."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from bnnviz.samplers import Sampler
from bnnviz.samplers.tree import builder, flat, rebuilt


class StateParts:
    """The tensors of a state: first those needed between the steps of a block (`Sampler.outline`), then the rest."""

    def __init__(self, sampler: Sampler, state: Any) -> None:
        # No tensor twice, so that each is identifiable.
        own = rebuilt(state, iter([part.clone() for part in flat(state)]))
        outline, parts = sampler.outline(own), flat(own)
        asked = {id(part) for part in flat(outline)}
        self._order = sorted(range(len(parts)), key=lambda number: id(parts[number]) not in asked)
        self.count, self.outlined = len(parts), len(asked)
        self._built, self._outlined = builder(own), builder(outline)
        self._names = field_names(outline)

    def of(self, state: Any) -> list[Tensor]:
        """Return the tensors of a state."""
        parts = flat(state)
        return [parts[number] for number in self._order]

    def state(self, tensors: list[Tensor]) -> Any:
        """Return the state of tensors."""
        parts: list[Any] = [None] * self.count
        for number, part in zip(self._order, tensors, strict=True):
            parts[number] = part
        return self._built(parts)

    def outline(self, tensors: list[Tensor]) -> Any:
        """Return the needed parts of a state from its first tensors."""
        return self._outlined(tensors)

    def place(self, name: str) -> int:
        """Return the position of the first tensor of a needed part, by the part's name."""
        return self._names.index(name)


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

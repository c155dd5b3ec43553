"""Pack the tensors of a state into one vector per data type, so that a program has few inputs and outputs.

That pays if few parts of the states between the steps of a block are needed (`Traits.ends`); otherwise each tensor
would be taken out of its vector again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers import Sampler
from bnnviz.samplers.tree import builder, flat, rebuilt

_FEW = 8  # vectors whose rows are copied one by one: moves of a packed state have many steps
_ALONE = 3  # minimum dimensions of a tensor that stays separate


class PackedPlace(NamedTuple):
    """The position of a tensor: its vector, start and end there, and shape; ``alone`` if it is a vector by itself."""

    vector: int
    first: int
    end: int
    shape: torch.Size
    alone: bool


class Packing:
    """The positions of tensors in vectors, by data type; those of more than two dimensions stay separate."""

    def __init__(self, parts: list[Tensor], together: bool) -> None:
        members: dict[Any, list[int]] = {}
        for number, part in enumerate(parts):
            members.setdefault(part.dtype if together and part.ndim < _ALONE else number, []).append(number)
        self._members, self.vectors = list(members.values()), len(members)
        self._sizes = [[math.prod(parts[number].shape) for number in numbers] for numbers in self._members]
        places = {}
        for vector, (numbers, sizes) in enumerate(zip(self._members, self._sizes, strict=True)):
            first = 0
            for number, size in zip(numbers, sizes, strict=True):
                places[number] = PackedPlace(vector, first, first + size, parts[number].shape, len(numbers) == 1)
                first += size
        self.places = [places[number] for number in range(len(parts))]

    def packed(self, parts: list[Tensor]) -> list[Tensor]:
        """Return the vectors of tensors."""
        return [
            parts[numbers[0]].contiguous()
            if len(numbers) == 1
            else torch.cat([parts[number].reshape(-1) for number in numbers])
            for numbers in self._members
        ]

    def copied(self, parts: list[Tensor]) -> list[Tensor]:
        """Return the vectors of tensors as copies."""
        vectors = zip(self.packed(parts), self._members, strict=True)
        return [vector.clone() if len(numbers) == 1 else vector for vector, numbers in vectors]

    def unpacked(self, vectors: list[Tensor]) -> list[Tensor]:
        """Return the tensors as views of the vectors."""
        parts: list[Any] = [None] * len(self.places)
        for vector, numbers, sizes in zip(vectors, self._members, self._sizes, strict=True):
            if len(numbers) == 1:
                parts[numbers[0]] = vector
                continue
            for number, piece in zip(numbers, torch.split_with_sizes(vector, sizes), strict=True):
                shape = self.places[number].shape
                parts[number] = piece if len(shape) == 1 else piece.view(shape)
        return parts


class StatePacking:
    """The positions of a state in vectors: first the parts needed between the steps of a block, then the rest."""

    def __init__(self, sampler: Sampler, state: Any) -> None:
        # No tensor twice, so that each is identifiable.
        own = rebuilt(state, iter([part.clone() for part in flat(state)]))
        outline, parts = sampler.outline(own), flat(own)
        asked = {id(part) for part in flat(outline)}
        self._asked = [number for number, part in enumerate(parts) if id(part) in asked]
        self._order = [*self._asked, *(number for number, part in enumerate(parts) if id(part) not in asked)]
        together = sampler.traits.ends is not None
        first, *rest = (
            Packing([parts[number] for number in numbers], together)
            for numbers in (self._asked, self._order[len(self._asked) :])
        )
        self.packings = (first, *(packing for packing in rest if packing.places))
        self._built, self._outlined = builder(own), builder(outline)
        self._names = field_names(outline)

    @property
    def outlined(self) -> int:
        """Number of vectors of the needed parts."""
        return self.packings[0].vectors

    @property
    def vectors(self) -> int:
        """Number of vectors."""
        return sum(packing.vectors for packing in self.packings)

    def packed(self, state: Any) -> list[Tensor]:
        """Return the vectors of a state."""
        parts = flat(state)
        parts, vectors = [parts[number] for number in self._order], []
        for packing in self.packings:
            vectors += packing.packed(parts[: len(packing.places)])
            parts = parts[len(packing.places) :]
        return vectors

    def state(self, vectors: list[Tensor]) -> Any:
        """Return the state of vectors."""
        parts: list[Any] = [None] * len(self._order)
        for number, part in zip(self._order, self._unpacked(vectors), strict=True):
            parts[number] = part
        return self._built(parts)

    def _unpacked(self, vectors: list[Tensor]) -> list[Tensor]:
        parts, at = [], 0
        for packing in self.packings:
            parts += packing.unpacked(vectors[at : at + packing.vectors])
            at += packing.vectors
        return parts

    def outline(self, vectors: list[Tensor]) -> Any:
        """Return the needed parts of a state from its first vectors."""
        return self._outlined(self.packings[0].unpacked(vectors))

    def place(self, name: str) -> PackedPlace:
        """Return the position of the first tensor of a needed part, by the part's name."""
        return self.packings[0].places[self._names.index(name)]


class StepRows:
    """Vectors of several steps, each a row of a matrix."""

    def __init__(self, matrices: list[Tensor], count: int) -> None:
        self.matrices, self.count = matrices, count
        self._views: list[tuple[Tensor, ...]] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, step: int) -> list[Tensor]:
        # Copies: a stored view, as in the figure of a path, would keep the whole matrix.
        return [matrix[step].clone() for matrix in self.matrices]

    def view(self, step: int) -> tuple[Tensor, ...]:
        """Return the vectors of a step as views, which must not be stored."""
        if len(self.matrices) <= _FEW:
            return tuple(matrix[step] for matrix in self.matrices)
        self._views = self._views or list(zip(*(matrix.unbind() for matrix in self.matrices), strict=True))
        return self._views[step]

    def column(self, place: PackedPlace) -> Tensor:
        """Return the tensor at a position, (steps, *shape)."""
        rows = self.matrices[place.vector][: self.count]
        return rows if place.alone else rows[:, place.first : place.end].view(len(rows), *place.shape)


def field_names(state: Any) -> list[str]:
    """Return the field name of each tensor of a state."""
    return [name for name, part in zip(state._fields, state, strict=True) for _ in flat(part)]

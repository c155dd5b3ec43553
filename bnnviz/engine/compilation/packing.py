"""Pack the tensors of a state into one vector for each data type: what a program takes and returns is few tensors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers import Sampler
from bnnviz.samplers.tree import builder, flat, rebuilt

_ALONE = 3  # dimensions from which on a tensor is a vector by itself


class Place(NamedTuple):
    """Where a tensor lies: the number of its vector, its first and last but one element there, and its shape."""

    vector: int
    first: int
    end: int
    shape: torch.Size


class Packing(NamedTuple):
    """How tensors lie in vectors, one for each data type; one of more than two dimensions stays by itself, as it is.

    A loop over all the elements of such a tensor would be compiled to code that has to find each index by division.

    Attributes
    ----------
    members : tuple of tuple of int
        The numbers of the tensors in each vector.
    places : tuple of Place
        One for each tensor.
    """

    members: tuple[tuple[int, ...], ...]
    places: tuple[Place, ...]

    @classmethod
    def of(cls, parts: list[Tensor]) -> Packing:
        """Return how tensors like these lie."""
        members: dict[Any, list[int]] = {}
        for number, part in enumerate(parts):
            members.setdefault(part.dtype if part.ndim < _ALONE else number, []).append(number)
        places = {}
        for vector, numbers in enumerate(members.values()):
            first = 0
            for number in numbers:
                end = first + math.prod(parts[number].shape)
                places[number] = Place(vector, first, end, parts[number].shape)
                first = end
        return cls(tuple(map(tuple, members.values())), tuple(places[number] for number in range(len(parts))))

    def packed(self, parts: list[Tensor]) -> list[Tensor]:
        """Return the vectors of tensors: copies, but for those that stay by themselves."""
        return [
            parts[numbers[0]].contiguous()
            if parts[numbers[0]].ndim >= _ALONE
            else torch.cat([parts[number].reshape(-1) for number in numbers])
            for numbers in self.members
        ]

    def unpacked(self, vectors: list[Tensor]) -> list[Tensor]:
        """Return the tensors: views of the vectors."""
        places = self.places
        parts: list[Any] = [None] * len(places)
        for vector, numbers in zip(vectors, self.members, strict=True):
            if len(numbers) == 1 and vector.ndim == len(places[numbers[0]].shape):
                parts[numbers[0]] = vector
                continue
            pieces = vector.split([places[number].end - places[number].first for number in numbers])
            for number, piece in zip(numbers, pieces, strict=True):
                parts[number] = piece if len(places[number].shape) == 1 else piece.view(places[number].shape)
        return parts


class StatePacking:
    """How a state lies in vectors: first what is asked of it between the steps of a block, then the rest.

    Parameters
    ----------
    sampler : Sampler
        Says what is asked (`Sampler.outline`).
    state : Any
        Without its adaptation.
    """

    def __init__(self, sampler: Sampler, state: Any) -> None:
        # No tensor twice, so that each can be told from the others.
        own = rebuilt(state, iter([part.clone() for part in flat(state)]))
        outline, parts = sampler.outline(own), flat(own)
        asked = {id(part) for part in flat(outline)}
        self._asked = [number for number, part in enumerate(parts) if id(part) in asked]
        self._order = [*self._asked, *(number for number, part in enumerate(parts) if id(part) not in asked)]
        first, *rest = (
            Packing.of([parts[number] for number in numbers])
            for numbers in (self._asked, self._order[len(self._asked) :])
        )
        self.packings = (first, *(packing for packing in rest if packing.places))
        self._built, self._outlined = builder(own), builder(outline)
        self._names = field_names(outline)

    @property
    def outlined(self) -> int:
        """How many of the vectors are of what is asked."""
        return len(self.packings[0].members)

    @property
    def vectors(self) -> int:
        """How many vectors there are."""
        return sum(len(packing.members) for packing in self.packings)

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
            parts += packing.unpacked(vectors[at : at + len(packing.members)])
            at += len(packing.members)
        return parts

    def outline(self, vectors: list[Tensor]) -> Any:
        """Return what is asked of a state, of its first vectors."""
        return self._outlined(self.packings[0].unpacked(vectors))

    def place(self, name: str) -> Place:
        """Return where the first tensor of a part lies that is asked of it, by the part's name."""
        return self.packings[0].places[self._names.index(name)]


class Stacked:
    """Vectors of several steps, one above the other, stacked when they are asked for.

    Parameters
    ----------
    vectors : list of list of Tensor
    """

    def __init__(self, vectors: list[list[Tensor]]) -> None:
        self._vectors = vectors
        self._stacked: dict[int, Tensor] = {}

    def column(self, place: Place) -> Tensor:
        """Return what lies at a place, (steps, *shape)."""
        if place.vector not in self._stacked:
            self._stacked[place.vector] = torch.stack([each[place.vector] for each in self._vectors])
        stacked, steps = self._stacked[place.vector], len(self._vectors)
        return stacked if stacked.ndim > _ALONE else stacked[:, place.first : place.end].view(steps, *place.shape)


def field_names(state: Any) -> list[str]:
    """Return the name of the field that each tensor of a state is in."""
    return [name for name, part in zip(state._fields, state, strict=True) for _ in flat(part)]

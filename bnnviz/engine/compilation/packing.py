"""Pack the tensors of a state into one vector for each data type: what a program takes and returns is few tensors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bnnviz.samplers import Sampler
from bnnviz.samplers.tree import builder, flat, rebuilt


class Place(NamedTuple):
    """Where a tensor lies: the number of its vector, its first and last but one element there, and its shape."""

    vector: int
    first: int
    end: int
    shape: torch.Size


class Packing(NamedTuple):
    """How tensors lie in vectors, one for each data type.

    Attributes
    ----------
    dtypes : tuple of torch.dtype
    places : tuple of Place
        One for each tensor.
    """

    dtypes: tuple[torch.dtype, ...]
    places: tuple[Place, ...]

    @classmethod
    def of(cls, parts: list[Tensor]) -> Packing:
        """Return how tensors like these lie."""
        dtypes = tuple(dict.fromkeys(part.dtype for part in parts))
        ends = dict.fromkeys(dtypes, 0)
        places = []
        for part in parts:
            first = ends[part.dtype]
            ends[part.dtype] += math.prod(part.shape)
            places.append(Place(dtypes.index(part.dtype), first, ends[part.dtype], part.shape))
        return cls(dtypes, tuple(places))

    def packed(self, parts: list[Tensor]) -> list[Tensor]:
        """Return the vectors of tensors: copies."""
        return [torch.cat([part.reshape(-1) for part in parts if part.dtype == dtype]) for dtype in self.dtypes]

    def unpacked(self, vectors: list[Tensor]) -> list[Tensor]:
        """Return the tensors: views of the vectors."""
        return [vectors[place.vector][place.first : place.end].view(place.shape) for place in self.places]

    def column(self, vectors: list[list[Tensor]], number: int) -> Tensor:
        """Return one of the tensors of several lists of vectors, (lists, *shape)."""
        place = self.places[number]
        stacked = torch.stack([each[place.vector] for each in vectors])
        return stacked[:, place.first : place.end].view(len(vectors), *place.shape)


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
        self._names = {name: at for at, name in enumerate(_names(outline))}

    @property
    def outlined(self) -> int:
        """How many of the vectors are of what is asked."""
        return len(self.packings[0].dtypes)

    @property
    def vectors(self) -> int:
        """How many vectors there are."""
        return sum(len(packing.dtypes) for packing in self.packings)

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
            parts += packing.unpacked(vectors[at : at + len(packing.dtypes)])
            at += len(packing.dtypes)
        return parts

    def outline(self, vectors: list[Tensor]) -> Any:
        """Return what is asked of a state, of its first vectors."""
        return self._outlined(self.packings[0].unpacked(vectors))

    def column(self, vectors: list[list[Tensor]], name: str) -> Tensor:
        """Return a part of several states by its name, (states, *shape)."""
        return self.packings[0].column(vectors, self._names[name])


def _names(outline: Any) -> list[str]:
    """Return the name of the field that each tensor of a state is in."""
    return [name for name, part in zip(outline._fields, outline, strict=True) for _ in flat(part)]

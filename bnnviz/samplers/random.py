"""Draw a run's random numbers: from its generator, or in advance for a compiled step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor


class Draw(NamedTuple):
    """One request for random numbers."""

    law: str
    shape: tuple[int, ...]
    dtype: torch.dtype


class RandomNumbers:
    """Random numbers from one generator, in the order of the requests."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator

    def uniform(self, shape: Iterable[int], dtype: torch.dtype) -> Tensor:
        """Return uniform numbers in [0, 1)."""
        return self.make(Draw("uniform", tuple(shape), dtype))

    def normal(self, shape: Iterable[int], dtype: torch.dtype) -> Tensor:
        """Return standard normal numbers."""
        return self.make(Draw("normal", tuple(shape), dtype))

    def exponential(self, shape: Iterable[int], dtype: torch.dtype) -> Tensor:
        """Return exponential numbers of mean 1."""
        return self.make(Draw("exponential", tuple(shape), dtype))

    def make(self, draw: Draw) -> Tensor:
        """Return the random numbers of a request."""
        return self.maker(draw)()

    def maker(self, draw: Draw) -> Callable[[], Tensor]:
        """Return a function that draws the random numbers of a request at each call."""
        generator = self.generator
        device, dtype = generator.device, draw.dtype
        if draw.law == "uniform":
            return partial(torch.rand, draw.shape, generator=generator, device=device, dtype=dtype)
        if draw.law == "normal":
            return partial(torch.randn, draw.shape, generator=generator, device=device, dtype=dtype)
        return lambda: torch.empty(draw.shape, device=device, dtype=dtype).exponential_(generator=generator)


def seeded(seed: int, device: str | torch.device = "cpu") -> RandomNumbers:
    """Return the random numbers of a seed."""
    return RandomNumbers(torch.Generator(device).manual_seed(seed))


def log_normal(z: Tensor, sds: Tensor) -> Tensor:
    """Return the log density (...,) of mean + L z for z (..., dim), with the diagonal of a triangular L as ``sds``."""
    z = z.double()
    return -(0.5 * z.square() + sds.abs().log() + 0.5 * math.log(2 * math.pi)).sum(-1)


class RecordedNumbers(RandomNumbers):
    """Random numbers that record a step's requests, so that they can be drawn in advance."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__(generator)
        self.draws: list[Draw] = []

    def make(self, draw: Draw) -> Tensor:
        """Return the random numbers of a request and record it."""
        self.draws.append(draw)
        return super().make(draw)


class PreDrawnNumbers(RandomNumbers):
    """Random numbers drawn in advance, returned in order."""

    def __init__(self, numbers: Iterable[Tensor]) -> None:
        self._numbers = iter(numbers)

    def make(self, draw: Draw) -> Tensor:
        """Return the next random numbers."""
        return next(self._numbers)

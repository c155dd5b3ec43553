"""Detect inputs or observations whose scale the prior of a network does not expect."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from bnnviz.messages import Message, Remedy

#: Maximum factor between a scale and 1. Weights that are N(0, 1) give functions that vary over inputs of scale 1.
FAR = 30.0


def of_inputs(x: Tensor) -> Iterator[Message]:
    """Report the column of inputs x (rows, inputs) whose scale is furthest from 1, if it is far."""
    for column, mean, sd in _far(x):
        table = Remedy("give BNN a table of bnnviz.data.read_table")
        yield Message("raw_inputs", Remedy("standardise the inputs"), table, column=column + 1, mean=mean, sd=sd)


def of_observations(y: Tensor) -> Iterator[Message]:
    """Report observations y (rows, columns) of real numbers whose scale is far from 1."""
    for _, mean, sd in _far(y):
        units = Remedy("set prior_sd and noise_sd in their unit")
        yield Message("raw_observations", Remedy("standardise them"), units, mean=mean, sd=sd)


def _far(values: Tensor) -> Iterator[tuple[int, float, float]]:
    """Yield number, mean and sd of the column whose scale is furthest from 1, if it is far."""
    sds, means = values.double().std(0, correction=0), values.double().mean(0)
    # Far too small matters as well as far too large; a constant column has no scale.
    size = torch.maximum(torch.maximum(sds, means.abs()), 1 / sds)
    worst = int(torch.where(sds > 0, size, 0.0).argmax())
    if sds[worst] > 0 and size[worst] > FAR:
        yield worst, float(means[worst]), float(sds[worst])

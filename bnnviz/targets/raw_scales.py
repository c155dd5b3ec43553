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
    sds, offsets = _size(x)
    varies = sds > 0
    if not varies.any():
        return
    size = torch.maximum(sds, offsets)
    # Far too small matters as well as far too large; a constant column has no scale.
    distance = torch.where(varies, torch.maximum(size.log(), -sds.log()), -torch.inf)
    worst = int(distance.argmax())
    if distance[worst] > torch.tensor(FAR).log():
        table = Remedy("give BNN a table of bnnviz.data.read_table")
        mean, sd = float(x[:, worst].mean()), float(sds[worst])
        yield Message("raw_inputs", Remedy("standardise the inputs"), table, column=worst + 1, mean=mean, sd=sd)


def of_observations(y: Tensor) -> Iterator[Message]:
    """Report observations y (rows, columns) of real numbers whose scale is far from 1."""
    sds, offsets = _size(y)
    if float(torch.maximum(sds, offsets).max()) > FAR or 0 < float(sds.max()) < 1 / FAR:
        worst = int(torch.maximum(sds, offsets).argmax())
        units = Remedy("set prior_sd and noise_sd in their unit")
        mean, sd = float(y[:, worst].mean()), float(sds[worst])
        yield Message("raw_observations", Remedy("standardise them"), units, mean=mean, sd=sd)


def _size(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sds and the absolute means of columns, in double precision."""
    values = values.double()
    return values.std(0, correction=0), values.mean(0).abs()

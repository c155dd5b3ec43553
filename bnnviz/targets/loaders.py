"""Read rows from PyTorch: a DataLoader, a Dataset, or a list of pairs (input, observation)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, RandomSampler, SequentialSampler, TensorDataset

from bnnviz.errors import BnnvizError


def pair(given: Any) -> tuple[Any, Any] | None:
    """Return inputs and observations of a DataLoader, a Dataset or a list of pairs; None for anything else.

    A loader that shuffles or drops the last rows is read in the order of its data set, since a posterior uses all rows
    in any order.
    """
    if isinstance(given, DataLoader):
        return _joined(_batches(given), torch.cat, "batch of the DataLoader")
    if isinstance(given, TensorDataset):
        if len(given.tensors) != 2:
            raise BnnvizError(
                f"The TensorDataset has {len(given.tensors)} tensors; give one of inputs and one of observations.",
                "data",
            )
        return given.tensors
    if isinstance(given, Dataset):
        return _joined([given[k] for k in range(_length(given))], _stacked, "row of the Dataset")
    if isinstance(given, list) and given and all(isinstance(each, tuple) and len(each) == 2 for each in given):
        return _joined(given, _stacked, "row")
    return None


def _length(given: Any) -> int:
    try:
        return len(given)
    except TypeError as error:
        raise BnnvizError(
            f"The {type(given).__name__} has no length and may be infinite; give a list of the rows of the posterior.",
            "data",
        ) from error


def _batches(loader: DataLoader) -> Iterable[Any]:
    _length(loader)
    whole = type(loader.sampler) in (RandomSampler, SequentialSampler) and loader.batch_size is not None
    whole = whole and len(loader.sampler) == _length(loader.dataset)
    if not whole or (isinstance(loader.sampler, RandomSampler) and loader.sampler.replacement):
        return list(loader)
    size, rows = loader.batch_size, len(loader.dataset)
    places = [range(first, min(first + size, rows)) for first in range(0, rows, size)]
    return [loader.collate_fn([loader.dataset[k] for k in some]) for some in places]


def _joined(parts: Iterable[Any], join: Any, what: str) -> tuple[Tensor, Tensor]:
    found: tuple[list[Any], list[Any]] = ([], [])
    for part in parts:
        if not isinstance(part, tuple | list) or len(part) != 2:
            kind = f"{len(part)} parts" if isinstance(part, tuple | list) else f"a {type(part).__name__}"
            raise BnnvizError(f"Each {what} must be a pair (inputs, observations), not {kind}.", "data")
        for side, value in zip(found, part, strict=True):
            side.append(value)
    if not found[0]:
        raise BnnvizError("The data have no rows; give at least one.", "data")
    try:
        inputs, observations = (join([torch.as_tensor(value) for value in side]) for side in found)
    except (TypeError, ValueError, RuntimeError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise BnnvizError(
            f"The rows cannot be stacked ({first:.120}); give rows of equal shape, for example by a transform or"
            " padding.",
            "data",
        ) from error
    return inputs, observations


def _stacked(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values))

"""Compute a sampler's gradients from all data rows or from a batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bnnviz import settings
from bnnviz.errors import BnnvizError
from bnnviz.samplers.random import RandomNumbers
from bnnviz.targets import Target
from bnnviz.targets.minibatch import Controlled, Rows, choose_rows


def refuse_without_rows(target: Target, batch_size: int | None) -> None:
    """Raise if batches are requested for a target without data rows."""
    if batch_size is not None and target.data_rows is None:
        raise BnnvizError(
            f"batch_size = {batch_size} needs a target with data rows, but {target.describe_value()} has no rows;"
            " leave it empty.",
            "batch_size",
        )


def batch_size_setting(doc: str, default: int | None = None, live: bool = False) -> settings.Integer:
    """Return the setting for the number of rows of a batch."""
    return settings.Integer(
        default,
        bounds=(1, 1_000_000),
        scale="log",
        live=live,
        allow_None=True,
        label="Mini-batch",
        unit="rows",
        empty="all rows",
        doc=doc,
    )


class MiniBatch:
    """Source of gradients: batches of rows, drawn uniformly for each chain, or all rows."""

    def __init__(
        self, target: Target, size: int | None = None, held: bool = False, anchor: Tensor | None = None
    ) -> None:
        # A fresh batch for every evaluation is exact if the envelope bounds the rate of every batch. A batch held until
        # the next event, as in the PDMP paper, is biased, since it becomes part of the state.
        self._target, self._size = target, size
        self._all = size is None or size >= target.data_rows
        self.held, self.noisy = held and not self._all, not held and not self._all
        self._anchor = None if anchor is None or self._all else anchor[None]
        self._known = None if self._anchor is None else target.gradient(self._anchor)

    @property
    def examples(self) -> int:
        """Data rows per gradient."""
        if self._all:
            return self._target.examples
        return self._size if self._anchor is None else 2 * self._size

    def hold(self, chains: int, rng: RandomNumbers) -> Any:
        """Return a held batch for each chain (chains, size); empty if none is held."""
        return self._draw(chains, rng) if self.held else ()

    def _draw(self, chains: int, rng: RandomNumbers) -> Tensor:
        return choose_rows(rng.uniform((chains, self._target.data_rows), torch.float32), self._size)

    def draw(self, held: Any, chains: int, rng: RandomNumbers) -> Any:
        """Return the rows of the next batch, (chains, size, ...), gathered before the step; empty if it uses all."""
        if self._all:
            return ()
        return self._target.read(held if self.held else self._draw(chains, rng))

    def of(self, rows: Any) -> Any:
        """Return an object that computes the derivatives of U on a batch's rows."""
        if self._all:
            return self._target
        batch = self._target.seen_from(*rows)
        return batch if self._anchor is None else Controlled(batch, self._anchor, *self._known)

    def rows(self, rows: Any) -> Rows:
        """Return the rows of a batch and their weight."""
        return self._target.all_rows() if self._all else self._target.weighted(*rows)

    def seen_by(self, held: Any, chain: int) -> Any:
        """Return the derivatives behind one chain's rate at any points: on its held batch, or by all rows."""
        return self._OneBatch(self, self._target.read(held[chain : chain + 1])) if self.held else self._target

    class _OneBatch:
        """One chain's batch, for any number of points."""

        def __init__(self, source: MiniBatch, rows: tuple[Tensor, Tensor]) -> None:
            self._source, self._rows = source, rows

        def gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
            """Return U (n,) and its gradient (n, dim) on the batch."""
            return self._source.of([part.expand(len(x), *part.shape[1:]) for part in self._rows]).gradient(x)

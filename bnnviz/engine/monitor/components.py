"""Follow principal components and single coordinates of the draws, kept up to date as draws come in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bnnviz import diagnostics
from bnnviz.engine.protocol import AnyRun
from bnnviz.errors import BnnvizError

_PCA_ROWS = 600
_PCA_GROWTH = 1.6
PCA_FIRST = 40  # draws
CANONICAL = "canonical"  # code of messages on canonical draws
_LABELS = {1: "PC 1", 2: "PC 2", -1: "last PC"}
_WIDEST = 64  # maximum hidden units to search for the nearest order
MOST_CANONICALISED = 2_000_000  # numbers at once
# A kind and a number; for a sample statistic its index in `Sampler.sample_stats`.
Choice = tuple[str, int]
_STAT = "stat"


class Component(NamedTuple):
    """One number per draw: label, values (living chains, draws), key of the projection, and whether it is canonical."""

    label: str
    values: np.ndarray
    key: tuple
    canonical: bool


def canonical_form(run: AnyRun) -> Callable[..., np.ndarray]:
    """Return the function that takes draws (..., dim) of a run to their canonical form."""
    reference = run.origin.double().cpu().numpy() if _matches(run) and run.origin is not None else None
    return partial(diagnostics.canonical, layers=run.target.units, reference=reference)


def _matches(run: AnyRun) -> bool:
    """Return whether layers are narrow enough to search for the order nearest to the first chain's start."""
    return max(layer.outputs for layer in run.target.units[:-1]) <= _WIDEST


class Components:
    """Fit principal axes to a run's draws, and project the draws, or on request their canonical forms."""

    def __init__(self, run: AnyRun) -> None:
        self._run = run
        self.pca: diagnostics.pca.Axes | None = None
        self.basis = 0
        self._plain: diagnostics.pca.Axes | None = None  # of the draws themselves
        self._canonical = False
        self._fitted = 0  # draws
        self._last: tuple[diagnostics.pca.Axes, np.ndarray] | None = None
        self._choice: Choice = ("pc", 1)
        self._known: dict[tuple[Choice, bool], tuple[tuple, np.ndarray]] = {}

    def forget(self) -> None:
        """Drop results of earlier draws; keep the axes until there are enough draws for others."""
        self._fitted = 0
        self._known = {}

    def look_like(self, other: Components) -> None:
        """Use the axes and the followed quantity of another run until there are enough draws for others."""
        self.pca, self._plain, self._last = other.pca, other._plain, other._last
        self._canonical, self._fitted, self._choice = other._canonical, other._fitted, other._choice
        self.basis = other.basis + 1
        self._known = {}

    @property
    def canonicalise(self) -> Callable[..., np.ndarray] | None:
        """The function that takes draws (..., dim) to their displayed representatives, or None."""
        return canonical_form(self._run) if self._canonical else None

    @property
    def canonical_warning(self) -> str:
        """Note on canonical draws; "" for a target without them."""
        hidden = self._run.target.units[:-1]
        if not hidden:
            return ""
        signs = " and with the signs" if any(layer.activation in diagnostics.ODD for layer in hidden) else ""
        order = "nearest to where the first chain started" if _matches(self._run) else "of their first incoming weights"
        return (
            f"Hidden units are shown in the order{signs} {order}: this joins no modes that differ otherwise, and where"
            " it cuts the space a path seems to jump, so it is for looking, not for moments."
        )

    def show_canonical(self, shown: bool) -> None:
        """Show canonical representatives of the draws, or the draws themselves."""
        if shown == self._canonical:
            return
        if shown and not self._run.target.units:
            raise BnnvizError("This target has no hidden units. Omit canonical.", "plane")
        self._canonical = shown
        self.pca, self._last = None, None
        self.basis += 1
        self.forget()
        self.refit()

    def follow(self, choice: dict[str, Any]) -> None:
        """Follow a component as in `ViewedRun.watch`."""
        self._choice = self._checked(choice)
        self._known = {which: known for which, known in self._known.items() if which == (("pc", 1), False)}

    def _checked(self, choice: dict[str, Any]) -> Choice:
        dim = self._run.target.dim
        if choice.get("kind") == "coordinate":
            index = choice.get("i")
            if not isinstance(index, int) or not 0 <= index < dim:
                raise BnnvizError(f"There is no coordinate {index!r} to follow; choose 0 to {dim - 1}.", "component")
            return "coordinate", index
        if choice.get("kind") == _STAT:
            name, names = choice.get("name"), self._run.sampler.sample_stats()
            if name not in names:
                known = f"choose {', '.join(names)}" if names else "it does not have any"
                raise BnnvizError(f"This sampler has no sample statistic {name!r:.60} to follow; {known}.", "component")
            return _STAT, names.index(name)
        number = choice.get("number")
        if choice.get("kind") != "pc" or number not in _LABELS:
            raise BnnvizError(f"A component is a coordinate or a pc of number 1, 2 or -1, not {choice!r}.", "component")
        return "pc", number

    def refit(self) -> None:
        """Fit the axes again when the draws have grown by more than half since the last fit."""
        run = self._run
        count = run.store.common(run.alive) * int(run.alive.sum())
        if run.target.dim <= 2 or count < max(PCA_FIRST, _PCA_GROWTH * self._fitted):
            return
        rows = self._rows()
        self._plain = self.pca = diagnostics.principal_axes(rows)
        if self._canonical:
            self.pca = diagnostics.principal_axes(self.canonicalise(rows))
        self._fitted = count
        self.basis += 1

    def _rows(self) -> np.ndarray:
        """Return the draws (n, dim) for the fit of the axes."""
        draws = self._run.store.view(self._run.alive)
        stride = max(1, -(-draws.shape[0] * draws.shape[1] // _PCA_ROWS))
        rows = draws.flatten(0, 1)[::stride].cpu()
        # Copies of large networks do not fit into memory.
        return (rows if rows.numel() > MOST_CANONICALISED else rows.double()).numpy()

    def looked_at(self, draws: Tensor) -> np.ndarray:
        """Return draws (..., dim), in canonical form if requested."""
        rows = draws.double().cpu().numpy()
        return self.canonicalise(rows) if self._canonical else rows

    @property
    def first(self) -> Component:
        """The first principal component of the draws themselves, or before there are axes the first coordinate."""
        return self._component(("pc", 1), False)

    @property
    def coordinate(self) -> int | None:
        """Index of the followed coordinate; None if another quantity is followed."""
        return self._choice[1] if self._choice[0] == "coordinate" else None

    @property
    def followed(self) -> Component:
        """The followed quantity."""
        return self._component(self._choice, self._canonical and self._choice[0] != _STAT)

    @property
    def label(self) -> str:
        """Label of the followed quantity."""
        return self._label(self._at_hand(self._of_draws, self._canonical)[0], self._canonical)

    def of(self, draws: Tensor) -> np.ndarray:
        """Return the followed quantity (chains, draws) for draws (chains, draws, dim)."""
        choice, axes = self._at_hand(self._of_draws, self._canonical)
        return self._values(choice, draws, axes, self._canonical)

    @property
    def _of_draws(self) -> Choice:
        """The followed quantity for draws without sample statistics: the first component by default."""
        return ("pc", 1) if self._choice[0] == _STAT else self._choice

    def _at_hand(self, choice: Choice, canonical: bool) -> tuple[Choice, diagnostics.pca.Axes | None]:
        """Return a choice with the axes, or a coordinate as long as there are no axes."""
        axes = self.pca if canonical else self._plain
        kind, number = choice
        if kind == "pc" and axes is None:
            return ("coordinate", 0 if number == 1 else min(1, self._run.target.dim - 1)), None
        return choice, axes

    def _component(self, choice: Choice, canonical: bool) -> Component:
        run = self._run
        choice, axes = self._at_hand(choice, canonical)
        draws = run.store.view(run.alive)
        key = (*choice, canonical, self.basis, run.store.every, tuple(run.alive))
        held, values = self._known.get((choice, canonical), (None, None))
        if held != key:
            values = np.empty((len(draws), 0))
        if choice[0] == _STAT:
            values = run.draw_stats.view(run.alive)[..., choice[1]].cpu().numpy()
        elif values.shape[1] < draws.shape[1]:
            new = self._values(choice, draws[:, values.shape[1] :], axes, canonical)
            values = np.concatenate([values, new], axis=1)
            self._known[choice, canonical] = key, values
        return Component(self._label(choice, canonical), values, key, canonical)

    def _values(self, choice: Choice, draws: Tensor, axes: diagnostics.pca.Axes | None, canonical: bool) -> np.ndarray:
        """Return the projections (chains, draws) of draws (chains, draws, dim)."""
        kind, number = choice
        if kind == "coordinate" and not canonical:
            return draws[..., number].double().cpu().numpy()
        if kind == "coordinate":
            direction, centre = np.eye(1, draws.shape[-1], number)[0], 0.0
        else:
            if number == -1 and (self._last is None or self._last[0] is not self.pca):  # fitted on demand
                rows = self._rows()
                self._last = self.pca, diagnostics.last_axis(self.canonicalise(rows) if self._canonical else rows)
            direction = self._last[1] if number == -1 else axes.axes[:, number - 1]
            centre = float(axes.centre @ direction)
        if not canonical:
            axis = torch.as_tensor(direction, dtype=draws.dtype, device=draws.device)
            return (draws @ axis).double().cpu().numpy() - centre
        parts = torch.split(draws.flatten(0, 1), max(1, MOST_CANONICALISED // draws.shape[-1]))
        return np.concatenate([self.looked_at(part) @ direction for part in parts]).reshape(draws.shape[:2]) - centre

    def _label(self, choice: Choice, canonical: bool) -> str:
        kind, number = choice
        if kind == _STAT:
            return self._run.sampler.sample_stats()[number]
        label = self._run.target.names()[number] if kind == "coordinate" else _LABELS[number]
        return label if not canonical else f"{label} ({CANONICAL})"
